//! Runs a minimal webhook on a separate thread. The webhook responds immediately.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use certs::{CertificateAuthority, Name};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The address of a webhook, and the CA certificate to trust.
pub(crate) struct Webhook {
    pub(crate) address: SocketAddr,
    /// The CA certificate in PEM format.
    pub(crate) ca_bundle: String,
    /// The number of reviews that were answered.
    pub(crate) calls: Arc<AtomicUsize>,
}

/// A JSON Patch that adds a label, in base64: `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`.
const PATCH: &str = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7ImEiOiJiIn19XQ==";

impl Webhook {
    /// Serves `/allow` and `/patch` over HTTP/1.1 until the process ends.
    pub(crate) fn start() -> Self {
        let authority = CertificateAuthority::new("benches").unwrap();
        let leaf = authority.issue(&[Name::Ip(Ipv4Addr::LOCALHOST.into())]).unwrap();
        let chain = CertificateDer::pem_slice_iter(leaf.certificate_pem.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes()).unwrap();
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, TlsAcceptor::from(Arc::new(tls)), counter));
        });
        Self { address, ca_bundle: authority.certificate_pem().to_owned(), calls }
    }
}

async fn serve(listener: std::net::TcpListener, tls: TlsAcceptor, calls: Arc<AtomicUsize>) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (tls, calls) = (tls.clone(), Arc::clone(&calls));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let counted = service_fn(|request| {
                calls.fetch_add(1, Ordering::Relaxed);
                answer(request)
            });
            // The connection ends when the client disconnects.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), counted).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let patches = request.uri().path() == "/patch";
    let body = request.into_body().collect().await.unwrap().to_bytes();
    // The UID is the first member of the request.
    let head = String::from_utf8_lossy(body.get(..200).unwrap_or(&body));
    let uid = head.split_once(r#""uid":""#).and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default();
    let patch =
        if patches { format!(r#","patchType":"JSONPatch","patch":"{PATCH}""#) } else { String::new() };
    let review = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":"{uid}","allowed":true{patch}}}}}"#
    );
    Ok(Response::builder().header("content-type", "application/json").body(Full::from(review)).unwrap())
}
