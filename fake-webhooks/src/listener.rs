//! Accepts connections and serves a router on them over TLS, until it is dropped.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::endpoint::CloseConnection;
use crate::metrics::Metrics;
use crate::tls::Identity;
use crate::{Certificate, TlsError};

/// A handshake must have ended within this time: the same that Go's clients grant.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Heads of requests must be there within this time. It also ends idle connections.
const PATIENCE: Duration = Duration::from_secs(120);
/// The largest head of a request. Also as much as is read ahead of a connection with HTTP/1.1.
const HEAD_BYTES: u32 = 64 << 10;
/// How long calls under way may still take when the listener is asked to stop.
const LAST_CALLS: Duration = Duration::from_millis(500);
const STREAMS_PER_CONNECTION: u32 = 100;

/// A socket on which a router is served.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    stop: CancellationToken,
    identity: Identity,
    shown: Shown,
}

/// The TLS configuration of the handshakes that begin.
type Shown = Arc<RwLock<Arc<rustls::ServerConfig>>>;

impl Listener {
    /// Starts to serve.
    pub(crate) async fn start(
        address: SocketAddr,
        identity: Identity,
        tls: rustls::ServerConfig,
        router: Router,
        connections: usize,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let shown = Arc::new(RwLock::new(Arc::new(tls)));
        let server = Server { shown: Arc::clone(&shown), router, metrics, stop: stop.clone() };
        let accepting = tokio::spawn(server.accept(listener, Arc::new(Semaphore::new(connections))));
        Ok(Self { address, accepting, stop, identity, shown })
    }

    /// Every handshake from now on shows a new certificate of this kind. Connections that are open stay.
    pub(crate) fn rotate(&self, certificate: Certificate) -> Result<(), TlsError> {
        let tls = Arc::new(self.identity.configuration(certificate)?);
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = tls;
        Ok(())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops to listen, gives the calls under way half a second, and returns when nothing is left.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        // The only errors are that it was aborted, which it was not, and that it panicked, which was reported.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[derive(Clone)]
struct Server {
    shown: Shown,
    router: Router,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
}

impl Server {
    /// Accepts until it is stopped. The connections end with the set that they are in.
    async fn accept(self, listener: TcpListener, permits: Arc<Semaphore>) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                accepted = accept_one(&listener, &permits) => accepted,
            };
            match accepted {
                Ok((stream, permit)) => {
                    let server = self.clone();
                    connections.spawn(async move {
                        server.connection(stream).await;
                        drop(permit);
                    });
                }
                // Most often there are too many open files, which only time can heal.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        let last_calls = async { while connections.join_next().await.is_some() {} };
        // What still hangs is cut off.
        let _ = tokio::time::timeout(LAST_CALLS, last_calls).await;
        connections.shutdown().await;
    }

    async fn connection(self, stream: TcpStream) {
        let _open = self.metrics.connected();
        let tls = Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner));
        // A failed handshake is the caller's affair: it sees the reason, and there is no call to write down.
        let accepted = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await;
        let Ok(Ok(stream)) = accepted else {
            self.metrics.handshake_failed();
            return;
        };
        let router = self.router;
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let router = router.clone();
            async move { router.oneshot(request).await.map_err(never).and_then(unless_closed) }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(HEAD_BYTES as usize);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .max_header_list_size(HEAD_BYTES);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = connection.as_mut() => return,
            () = self.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        // How it ends is seen by the caller.
        let _ = connection.await;
    }
}

/// Waits for a place before it takes a connection, so that callers queue in the kernel and not here.
async fn accept_one(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // The end of a handshake and the answer are small writes: together with delayed acknowledgements, holding the second
    // back costs every new connection 40 ms.
    let _: std::io::Result<()> = stream.set_nodelay(true);
    Ok((stream, permit))
}

/// An error makes hyper close the connection.
fn unless_closed(response: Response) -> Result<Response, Closed> {
    match response.extensions().get::<CloseConnection>() {
        Some(CloseConnection) => Err(Closed),
        None => Ok(response),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("closed on purpose")]
struct Closed;

fn never(error: Infallible) -> Closed {
    match error {}
}
