//! Measures calls to a webhook without the dispatcher: with a bare POST request, and with admit's client.

use std::sync::Arc;
use std::time::Duration;

use admission_webhook_client::{HttpsCaller, NoServices};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kubernetes_admission::caller::{Call, Caller as _};
use kubernetes_admission::config::Phase;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use crate::fixtures::{Entry, pod, webhooks};
use crate::meter::Meter;
use crate::webhook::Webhook;

pub(crate) fn run(meter: &mut Meter) {
    if !meter.wants("call/") {
        return;
    }
    let server = Webhook::start();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "object": pod(700)},
    });
    let review = Bytes::from(review.to_string());

    let connection = Mutex::new(meter.runtime().block_on(connect(&server)));
    let host = server.address.to_string();
    meter.measure(
        "call/bare POST, HTTP/1.1",
        || review.clone(),
        async |review| {
            let request = Request::post("/allow?timeout=10s")
                .header("host", host.as_str())
                .header("accept", "application/json, */*")
                .header("content-type", "application/json")
                .header("user-agent", "kube-apiserver-admission")
                .body(Full::new(review.clone()))
                .unwrap();
            let mut connection = connection.lock().await;
            connection.ready().await.unwrap();
            let response = connection.send_request(request).await.unwrap();
            assert!(!response.into_body().collect().await.unwrap().to_bytes().is_empty());
        },
    );

    let caller = HttpsCaller::new(Arc::new(NoServices));
    let webhooks = webhooks(&server, 1, &Entry::default());
    let webhook = webhooks.first().unwrap();
    meter.measure(
        "call/client",
        || review.clone(),
        async |review| {
            let call = Call {
                client_config: &webhook.client_config,
                phase: Some(Phase::Mutating),
                body: review.clone(),
                timeout: Duration::from_secs(10),
                trace: None,
            };
            assert_eq!(caller.call(call).await.unwrap().status, 200);
        },
    );
}

async fn connect(server: &Webhook) -> SendRequest<Full<Bytes>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_bundle.as_bytes()).unwrap()).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let stream = TcpStream::connect(server.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let name = ServerName::from(server.address.ip());
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}
