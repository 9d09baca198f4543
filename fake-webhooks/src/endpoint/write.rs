//! Sends the requests of side effects.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::client_config::{ClientConfig, ClientConfigError};
use crate::Write;

/// The timeout for a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("invalid URL: {0}")]
    Url(#[from] url::ParseError),
    #[error("the URL has no host or port")]
    Host,
    #[error("the URL is a path, which requires a kubeconfig")]
    Path,
    #[error(transparent)]
    Kubeconfig(#[from] ClientConfigError),
    #[error("the caBundle cannot be read: {0}")]
    CaBundle(#[from] rustls::pki_types::pem::Error),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("the host is not a valid server name: {0}")]
    Name(#[from] rustls::pki_types::InvalidDnsNameError),
    #[error(transparent)]
    Connect(#[from] std::io::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("timed out after {TIMEOUT:?}")]
    Late(#[from] tokio::time::error::Elapsed),
}

/// Sends the request and returns the status of the response.
pub(super) async fn send(request: &Write) -> Result<StatusCode, WriteError> {
    tokio::time::timeout(TIMEOUT, over_tcp(request)).await?
}

async fn over_tcp(write: &Write) -> Result<StatusCode, WriteError> {
    let mut server = ClientConfig {
        server: String::new(),
        ca_bundle: write.ca_bundle.clone(),
        token: write.token.clone(),
    };
    if let Some(file) = &write.kubeconfig {
        server = server.or_from(file)?;
    }
    let target = write.url.as_str();
    let url = match (target.starts_with('/'), &write.kubeconfig) {
        (true, None) => return Err(WriteError::Path),
        (true, Some(_)) => format!("{}{target}", server.server.trim_end_matches('/')).parse::<url::Url>()?,
        (false, _) => target.parse::<url::Url>()?,
    };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(WriteError::Host);
    };
    let host = host.trim_matches(['[', ']']);
    let mut request = http::Request::post(&url[url::Position::BeforePath..url::Position::AfterQuery])
        .header(HOST, &url[url::Position::BeforeHost..url::Position::AfterPort])
        .header(CONTENT_TYPE, "application/json");
    if !server.token.is_empty() {
        request = request.header(AUTHORIZATION, format!("Bearer {}", server.token));
    }
    let request = request.body(Full::new(Bytes::from(write.body.to_string())))?;
    let stream = TcpStream::connect((host, port)).await?;
    if url.scheme() == "http" {
        return exchange(stream, request).await;
    }
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(server.ca_bundle.as_bytes()) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())?;
    exchange(TlsConnector::from(Arc::new(tls)).connect(name, stream).await?, request).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: http::Request<Full<Bytes>>,
) -> Result<StatusCode, WriteError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    connection.abort();
    Ok(answer?.status())
}
