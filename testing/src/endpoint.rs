//! Serves a webhook under test over TLS with the name of its Service.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use certs::{CertificateAuthority, InvalidName, Name};
use http::StatusCode;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::error::Error;
use crate::record::{Call, Recorder};
use crate::service_name::ServiceName;
use crate::{LOOPBACK, client};

/// The maximum size of a request or response body, in bytes.
const MAX_BODY: usize = 64 << 20;

/// The server of a webhook. It stops when dropped.
#[derive(Debug)]
pub(crate) struct Endpoint {
    port: u16,
    serving: JoinHandle<()>,
}

impl Endpoint {
    /// Serves `webhook` on a free port of 127.0.0.1 and records each call.
    pub(crate) async fn start(
        service: &ServiceName,
        webhook: Router,
        authority: &CertificateAuthority,
        recorder: Arc<Recorder>,
    ) -> Result<Self, Error> {
        let tls = TlsAcceptor::from(Arc::new(tls(service, authority)?));
        let failed = |error| Error::Listen { service: service.to_string(), error };
        let listener = TcpListener::bind((LOOPBACK, 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let recording = Recording { service: service.to_string(), recorder };
        let router = webhook.layer(axum::middleware::from_fn_with_state(recording, record));
        let serving = tokio::spawn(async move {
            loop {
                // An error concerns a connection that has already been closed.
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (tls, service) = (tls.clone(), TowerToHyperService::new(router.clone()));
                tokio::spawn(async move {
                    if let Ok(stream) = tls.accept(stream).await {
                        let server = auto::Builder::new(TokioExecutor::new());
                        // The API server reports how a connection ended.
                        drop(server.serve_connection(TokioIo::new(stream), service).await);
                    }
                });
            }
        });
        Ok(Self { port, serving })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Creates a TLS configuration with a certificate for the name of the Service and for 127.0.0.1.
///
/// Source: apiserver pkg/util/webhook/client.go, `HookClient`: the server name is `NAME.NAMESPACE.svc`.
fn tls(service: &ServiceName, authority: &CertificateAuthority) -> Result<rustls::ServerConfig, Error> {
    let unusable = |error: &dyn std::fmt::Display| Error::Certificate(error.to_string());
    let name: Result<Name, InvalidName> = format!("{}.{}.svc", service.name, service.namespace).parse();
    let names = [name.map_err(|error| unusable(&error))?, Name::Ip(LOOPBACK)];
    let leaf = authority.issue(&names).map_err(|error| unusable(&error))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(leaf.certificate_pem.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes()).map_err(|error| unusable(&error))?;
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_no_client_auth()
        .with_single_cert(chain.map_err(|error| unusable(&error))?, key)
        .map_err(|error| unusable(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[derive(Clone)]
struct Recording {
    service: String,
    recorder: Arc<Recorder>,
}

/// Records a call on arrival, and its response later, because the API server can disconnect before the response.
async fn record(
    State(Recording { service, recorder }): State<Recording>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let place = recorder.called(
        client::trace_id(&head.headers),
        Call {
            service,
            path: head.uri.path().to_owned(),
            review: serde_json::from_slice(&body).unwrap_or_default(),
            response: None,
        },
    );
    let response = next.run(Request::from_parts(head, Body::from(body))).await;
    let (head, body) = response.into_parts();
    match to_bytes(body, MAX_BODY).await {
        Ok(body) => {
            recorder.responded(place, head.status, &body);
            Response::from_parts(head, Body::from(body))
        }
        // The webhook aborted its response, so this response is aborted, too.
        Err(error) => {
            let broken = futures::stream::once(std::future::ready(Err::<Bytes, _>(error)));
            Response::from_parts(head, Body::from_stream(broken))
        }
    }
}
