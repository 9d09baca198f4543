//! Serves a router over TLS until it is stopped.
//!
//! `axum::serve` would be shorter, but has no limits: of connections, of heads, of the time that a handshake or the end
//! may take.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::Failure;

/// Further connections wait in the kernel.
const CONNECTIONS: usize = 1024;
/// A handshake, and the head of a request, must be there within this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests under way may still take this long when the server is stopped.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// As many as kube-apiserver grants a connection.
const STREAMS_PER_CONNECTION: u32 = 100;
/// The largest head that kube-apiserver takes.
const HEAD_BYTES: usize = 1 << 20;

/// A bound socket on which nobody is served yet.
pub(crate) struct Socket {
    socket: std::net::TcpListener,
    address: SocketAddr,
}

impl Socket {
    /// Where it is bound, with the port that was free.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Binds, or says what to do.
pub(crate) fn bind(address: SocketAddr) -> Result<Socket, Failure> {
    let socket = std::net::TcpListener::bind(address).and_then(|socket| {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Socket { socket, address })
    });
    socket.map_err(|error| {
        let advice = if error.kind() == std::io::ErrorKind::AddrInUse {
            "; choose another port, or 0 for a free one"
        } else {
            ""
        };
        Failure::environment(format!("cannot listen on {address}: {error}{advice}"))
    })
}

/// A socket on which a router is served.
pub(crate) struct Listener {
    accepting: JoinHandle<()>,
    stop: CancellationToken,
}

impl Listener {
    /// Starts to serve.
    pub(crate) fn start(
        socket: Socket,
        tls: Arc<rustls::ServerConfig>,
        router: Router,
    ) -> Result<Self, Failure> {
        let listener = TcpListener::from_std(socket.socket)
            .map_err(|error| Failure::environment(format!("cannot listen on {}: {error}", socket.address)))?;
        let stop = CancellationToken::new();
        let server = Server { tls: TlsAcceptor::from(tls), router, stop: stop.clone() };
        Ok(Self { accepting: tokio::spawn(server.accept(listener)), stop })
    }

    /// Closes the socket, lets the requests under way end, and cuts off what does not.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        // The only errors are that it was aborted, which it was not, and that it panicked, which was reported.
        let _ = self.accepting.await;
    }
}

#[derive(Clone)]
struct Server {
    tls: TlsAcceptor,
    router: Router,
    stop: CancellationToken,
}

impl Server {
    async fn accept(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                accepted = accept_one(&listener, &places) => accepted,
            };
            match accepted {
                Ok((stream, peer, place)) => {
                    let server = self.clone();
                    connections.spawn(async move {
                        server.connection(stream, peer).await;
                        drop(place);
                    });
                }
                // Most often there are too many open files, which only time can heal.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        let last = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_REQUESTS, last).await;
        connections.shutdown().await;
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr) {
        // Without it a small answer waits for the client's acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let accepted = tokio::select! {
            () = self.stop.cancelled() => return,
            accepted = tokio::time::timeout(PATIENCE, self.tls.accept(stream)) => accepted,
        };
        // The client sees why a handshake failed.
        let Ok(Ok(stream)) = accepted else { return };
        let router = self.router;
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Some(PATIENCE))
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX));
        let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
        tokio::select! {
            // How it ends is seen by the client.
            _ = connection.as_mut() => return,
            () = self.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }
}

/// Waits for a place before it takes a connection.
async fn accept_one(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}
