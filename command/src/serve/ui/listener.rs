//! Serves the page on a loopback socket.
//!
//! Connections are limited. A connection ends if its client sends no request in time or does not read a response, and the
//! router can end it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::stalled::Stalled;
use crate::Failure;

/// The maximum number of connections. Further connections wait.
const MAX_CONNECTIONS: usize = 64;
/// The time limit for the headers of a request, and for the next request of an idle connection.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of the headers of a request, and of the unsent data after which a response waits, in bytes.
const BUFFER: usize = 64 << 10;
/// The size of the kernel's buffer for unread responses, in bytes. The kernel allocates twice as much memory.
///
/// By default, the buffer would grow to megabytes, and a client that reads slowly would not make room in it in time.
const SEND_BUFFER: usize = 32 << 10;

/// Ends the connection of a request.
#[derive(Clone, Debug)]
pub(super) struct Connection(CancellationToken);

impl Connection {
    pub(super) fn end(&self) {
        self.0.cancel();
    }
}

/// A bound socket that is not served yet.
#[derive(Debug)]
pub(super) struct Socket {
    socket: std::net::TcpListener,
    pub(super) port: u16,
}

impl Socket {
    /// Binds a free port on loopback.
    pub(super) fn bind() -> io::Result<Self> {
        let socket = std::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        socket.set_nonblocking(true)?;
        // Accepted connections inherit the size.
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
        let port = socket.local_addr()?.port();
        Ok(Self { socket, port })
    }

    /// Serves `router` until the returned value is dropped or stopped.
    pub(super) fn serve(self, router: Router) -> Result<Serving, Failure> {
        let listener = TcpListener::from_std(self.socket).map_err(Failure::environment)?;
        let stop = CancellationToken::new();
        Ok(Serving { accepting: tokio::spawn(accept(listener, router, stop.clone())), stop })
    }
}

/// A socket that serves a router.
#[derive(Debug)]
pub(super) struct Serving {
    accepting: JoinHandle<()>,
    stop: CancellationToken,
}

impl Serving {
    /// Closes the socket and all connections.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // The task is never aborted, and a panic in it has already been reported.
        let _ = self.accepting.await;
    }
}

async fn accept(listener: TcpListener, router: Router, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = async {
                // The semaphore is never closed.
                let slot = Arc::clone(&slots).acquire_owned().await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((listener.accept().await?.0, slot))
            } => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                let router = router.clone();
                connections.spawn(async move {
                    // Otherwise, a small response waits for the client's acknowledgment of the previous one.
                    let _ = stream.set_nodelay(true);
                    serve(stream, router).await;
                    drop(slot);
                });
            }
            // Usually there are too many open files.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    connections.shutdown().await;
}

/// Serves the requests of one connection.
pub(super) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router) {
    let end = CancellationToken::new();
    let service = TowerToHyperService::new(router.layer(Extension(Connection(end.clone()))));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(Stalled::new(stream)), service);
    tokio::select! {
        // The client sees how the connection ends.
        _ = connection => {}
        () = end.cancelled() => {}
    }
}
