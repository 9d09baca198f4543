//! Establishes connections: TCP, the tunnel through a proxy, TLS, and the HTTP handshake.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::{Service, ServiceExt as _};
use url::Url;

use super::proxy::ProxyRoute;
use super::stream::{Stream, dialled};
use super::target::{Target, basic};
use super::tls_stream::{LenientTls, Records};

/// The interval of keep-alive probes on an idle connection.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// The number of failed keep-alive probes after which a connection is closed.
const KEEPALIVE_RETRIES: u32 = 3;
/// The time after which a connection is closed if sent data remains unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// The time limit for a TLS handshake.
///
/// Source: client-go transport/cache.go, `tlsTransportCache.get`; Go net/http/transport.go, `addTLS`.
/// Rule: HTTP-22.
const TLS_HANDSHAKE: Duration = Duration::from_secs(10);

/// The body of a request.
pub(super) type Body = Full<Bytes>;
type BoxError = Box<dyn StdError + Send + Sync>;

/// A handle that sends requests on one connection.
#[derive(Debug)]
pub(super) enum Sender {
    Http1(http1::SendRequest<Body>, oneshot::Receiver<End>),
    Http2(http2::SendRequest<Body>),
}

/// How an HTTP/1.1 connection ended.
#[derive(Debug)]
pub(super) struct End {
    error: Option<hyper::Error>,
    /// The received bytes that could not be parsed.
    pub(super) unread: Bytes,
}

/// The reason why a connection could not be established.
#[derive(Debug)]
pub(super) enum DialError {
    /// The TCP or TLS connection could not be established.
    Connect(BoxError),
    /// The HTTP handshake failed.
    Http(hyper::Error),
}

impl From<hyper::Error> for DialError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

/// A proxy that is reached over plain HTTP.
#[derive(Debug)]
pub(super) struct Proxy {
    uri: Uri,
    /// The value of the `Proxy-Authorization` header.
    pub(super) authorization: Option<HeaderValue>,
    /// The destination of the tunnel, if it differs from the host of the request's URL.
    service: Option<Uri>,
}

/// Establishes connections to one webhook.
pub(super) struct Dialer {
    connector: HttpConnector<Resolver>,
    tls: TlsConnector,
    proxy: Option<Proxy>,
}

impl Dialer {
    /// Creates a dialer that connects to `addresses` or, if that slice is empty, to the host in the URL.
    ///
    /// # Errors
    /// Returns a message if the URL of the proxy is not supported.
    pub(super) fn new(
        tls: rustls::ClientConfig,
        addresses: &[SocketAddr],
        proxy: Option<&ProxyRoute>,
    ) -> Result<Self, String> {
        let resolver = Resolver { addresses: addresses.into(), system: GaiResolver::new() };
        let mut connector = HttpConnector::new_with_resolver(resolver);
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_keepalive(Some(KEEPALIVE));
        connector.set_keepalive_interval(Some(KEEPALIVE));
        connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let proxy = proxy.map(|ProxyRoute { proxy, service }| {
            let uri = |url: &Url| Ok::<_, String>(Target::new(url.as_str(), None)?.uri);
            let service = service.as_ref().map(uri).transpose()?;
            Ok::<_, String>(Proxy { uri: uri(proxy)?, authorization: basic(proxy), service })
        });
        Ok(Self { connector, tls: TlsConnector::from(Arc::new(tls)), proxy: proxy.transpose()? })
    }

    /// Returns the proxy that forwards requests to `target` without a tunnel; `None` if `target` uses TLS.
    pub(super) fn forwarder(&self, target: &Target) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| target.is_plain())
    }

    /// Establishes a connection that is ready for requests to `target`.
    pub(super) async fn dial(&self, target: &Target) -> Result<Sender, DialError> {
        let scheme = target.uri.scheme_str().unwrap_or_default();
        if target.is_plain() {
            let uri = self.proxy.as_ref().map_or(&target.uri, |proxy| &proxy.uri);
            let tcp = self.tcp(uri).await.map_err(DialError::Connect)?;
            return Ok(http1_over(tcp).await?);
        }
        if scheme != "https" {
            return Err(DialError::Connect(io::Error::other(format!("unsupported scheme {scheme}")).into()));
        }
        let stream = async {
            let tcp = match &self.proxy {
                Some(proxy) => self.tunnel(proxy, &target.uri).await?,
                None => self.tcp(&target.uri).await?,
            };
            let host = target.uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            match timeout(TLS_HANDSHAKE, self.tls.connect(name, Records::new(tcp))).await {
                Ok(stream) => Ok(stream.map_err(io::Error::other)?),
                Err(_elapsed) => Err("net/http: TLS handshake timeout".into()),
            }
        };
        let stream = stream.await.map_err(DialError::Connect)?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            Ok(Sender::Http2(http2_over(stream).await?))
        } else {
            Ok(http1_over(LenientTls(stream)).await?)
        }
    }

    async fn tcp(&self, uri: &Uri) -> Result<Stream, BoxError> {
        Ok(self.connector.clone().map_response(dialled).oneshot(uri.clone()).await?.into_inner())
    }

    async fn tunnel(&self, proxy: &Proxy, uri: &Uri) -> Result<Stream, BoxError> {
        let mut tunnel = Tunnel::new(proxy.uri.clone(), self.connector.clone().map_response(dialled));
        if let Some(authorization) = &proxy.authorization {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let uri = proxy.service.as_ref().unwrap_or(uri);
        Ok(tunnel.oneshot(uri.clone()).await?.into_inner())
    }
}

async fn http1_over<T>(stream: T) -> hyper::Result<Sender>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, mut connection) = http1::handshake(TokioIo::new(stream)).await?;
    let (ended, end) = oneshot::channel();
    tokio::spawn(async move {
        let result = poll_fn(|context| connection.poll_without_shutdown(context)).await;
        let parts = connection.into_parts();
        // The receiver has been dropped unless a request, or the connection before its first request, failed.
        let _ = ended.send(End { error: result.err(), unread: parts.read_buf });
        let _ = parts.io.into_inner().shutdown().await;
    });
    match sender.ready().await {
        Ok(()) => Ok(Sender::Http1(sender, end)),
        // The error that ended the connection is more specific.
        Err(error) if error.is_closed() => Err(end.await.ok().and_then(|end| end.error).unwrap_or(error)),
        Err(error) => Err(error),
    }
}

async fn http2_over<T>(stream: T) -> hyper::Result<http2::SendRequest<Body>>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    sender.ready().await?;
    Ok(sender)
}

/// A resolver that returns the fixed addresses of a service or, if there are none, asks the system's resolver.
#[derive(Clone)]
struct Resolver {
    addresses: Arc<[SocketAddr]>,
    system: GaiResolver,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let known = self.addresses.to_vec();
        if !known.is_empty() {
            return Box::pin(std::future::ready(Ok(known.into_iter())));
        }
        let looked_up = self.system.clone().oneshot(name);
        Box::pin(async move { Ok(looked_up.await?.collect::<Vec<_>>().into_iter()) })
    }
}
