//! Runs a webhook on the loopback interface that responds as configured.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use certs::{CertificateAuthority, Leaf};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The HTTP response of the webhook.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The HTTP status code. An invalid code becomes 200.
    pub(super) status: u16,
    /// The value of the `Content-Type` header; empty omits the header.
    pub(super) content_type: String,
    /// The body, in which `$UID` is replaced with the UID of the review.
    pub(super) body: Vec<u8>,
}

/// A webhook that runs on the runtime of this thread.
#[derive(Clone)]
pub(super) struct Webhook {
    /// The URL of the webhook: `https://127.0.0.1:PORT/`.
    pub(super) url: String,
    /// The CA of the webhook's certificate, as PEM.
    pub(super) ca_bundle: String,
    state: Arc<State>,
}

struct State {
    answer: Mutex<Answer>,
    /// The certificate to present instead of the webhook's own certificate.
    shown: Mutex<Option<Vec<u8>>>,
    leaf: Leaf,
}

thread_local! {
    static WEBHOOK: RefCell<Option<Rc<Webhook>>> = const { RefCell::new(None) };
}

impl Webhook {
    /// Returns the webhook of this thread, after starting it on first use.
    pub(super) async fn of_this_thread() -> Rc<Self> {
        if let Some(webhook) = WEBHOOK.with_borrow(Clone::clone) {
            return webhook;
        }
        let webhook =
            Rc::new(Self::start().await.unwrap_or_else(|error| panic!("no webhook on loopback: {error}")));
        WEBHOOK.set(Some(Rc::clone(&webhook)));
        webhook
    }

    async fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let authority = CertificateAuthority::new("law")?;
        let leaf = authority.issue(&["127.0.0.1".parse()?])?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}/", listener.local_addr()?);
        let state = Arc::new(State { answer: Mutex::default(), shown: Mutex::default(), leaf });
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Ok(Self { url, ca_bundle: authority.certificate_pem().to_owned(), state })
    }

    /// Sets the response to all subsequent calls.
    pub(super) fn answer(&self, answer: Answer) {
        *self.state.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// Sets the certificate (DER) for new connections; `None` restores the webhook's own certificate.
    pub(super) fn show(&self, der: Option<Vec<u8>>) {
        *self.state.shown.lock().unwrap_or_else(PoisonError::into_inner) = der;
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let Some(tls) = server_config(&state) else { return };
    let Ok(stream) = TlsAcceptor::from(Arc::new(tls)).accept(stream).await else { return };
    let service = service_fn(|request| respond(request, &state));
    // A client may disconnect at any time.
    let _: Result<(), hyper::Error> =
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn server_config(state: &State) -> Option<ServerConfig> {
    let shown = state.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let certificate = match shown {
        Some(der) => CertificateDer::from(der),
        None => CertificateDer::from_pem_slice(state.leaf.certificate_pem.as_bytes()).ok()?,
    };
    let key = PrivateKeyDer::from_pem_slice(state.leaf.key_pem.as_bytes()).ok()?;
    let key = ring::default_provider().key_provider.load_private_key(key).ok()?;
    // Does not check that the key belongs to the certificate: the client must detect this.
    let certified = rustls::sign::CertifiedKey::new(vec![certificate], key);
    Some(
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .ok()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified))),
    )
}

async fn respond(request: Request<Incoming>, state: &State) -> Result<Response<Full<Bytes>>, Infallible> {
    let review = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
    let answer = state.answer.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut response = Response::new(Full::new(with_uid(&answer.body, &review).into()));
    if let Ok(status) = answer.status.try_into() {
        *response.status_mut() = status;
    }
    if let Ok(content_type) = answer.content_type.parse() {
        response.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    }
    Ok(response)
}

/// Replaces each `$UID` in the body with the UID of `review`.
pub(super) fn with_uid(body: &[u8], review: &[u8]) -> Vec<u8> {
    const PLACE: &[u8] = b"$UID";
    let review: serde_json::Value = serde_json::from_slice(review).unwrap_or_default();
    let uid = review.pointer("/request/uid").and_then(serde_json::Value::as_str).unwrap_or_default();
    let mut filled = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(PLACE.len()).position(|window| window == PLACE) {
        let (before, after) = rest.split_at(at);
        filled.extend_from_slice(before);
        filled.extend_from_slice(uid.as_bytes());
        rest = after.get(PLACE.len()..).unwrap_or_default();
    }
    filled.extend_from_slice(rest);
    filled
}
