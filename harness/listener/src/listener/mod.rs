//! Serves a router over TLS until it is stopped.
//!
//! `axum::serve` would be shorter, but does not limit connections, request headers, or the time for a handshake, a
//! request, a response, and a shutdown.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use kubernetes_api_server::{Authenticator, ClientCertificate};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::clients::ClientAuthorities;
use crate::connection_slots::{ConnectionSlot, ConnectionSlots, FIRST_REQUEST, Watcher};
use crate::delivery::{Delivered, Deliveries};

/// The interval of HTTP/2 pings to a client.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The time limit for closing an idle connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The time limit for active requests after the server is stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of concurrent HTTP/2 streams, as in kube-apiserver.
const STREAMS_PER_CONNECTION: u32 = 100;
/// The HTTP/2 flow-control window of a stream: the maximum number of unread bytes of one request body.
///
/// Source: apiserver `pkg/server/secure_serving.go`, `resourceBody99Percentile`.
const STREAM_WINDOW: u32 = 256 << 10;
/// The HTTP/2 flow-control window of a connection: the maximum number of unread bytes of all requests.
///
/// kube-apiserver's window is larger: the window of a stream times the maximum number of streams.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The maximum size of request headers, in bytes, as in kube-apiserver.
const HEAD_BYTES: usize = 1 << 20;
/// The length of the kernel's queue of connections to accept, unless the kernel's limit is lower.
///
/// Source: Go's net, `maxListenerBacklog`: `/proc/sys/net/core/somaxconn`, which is 4096 by default.
const BACKLOG: i32 = 4096;
/// The size of the kernel's buffer for unread responses, in bytes. The kernel allocates twice as much memory.
///
/// By default, the buffer would grow to megabytes per connection.
const SEND_BUFFER: usize = 32 << 10;
/// The size of the kernel's buffer for unread requests, in bytes. The kernel allocates twice as much memory.
const RECEIVE_BUFFER: usize = 128 << 10;
/// The size, in bytes, of the TLS buffer for response data that the kernel does not accept yet.
const TLS_BUFFER: usize = 16 << 10;
/// The number of unsent bytes of an HTTP/2 stream at which the response is paused.
const STREAM_BUFFER: usize = 16 << 10;

/// A bound socket that is not served yet.
#[derive(Debug)]
pub struct Socket {
    socket: std::net::TcpListener,
    address: SocketAddr,
}

impl Socket {
    /// Binds `address`; port 0 picks a free port.
    ///
    /// # Errors
    /// Returns [`ListenError`] if the port is in use, or if the address does not belong to this host.
    pub fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let socket = std::net::TcpListener::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            rustix::net::listen(&socket, BACKLOG)?;
            // Accepted connections inherit the buffer sizes.
            rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        });
        socket.map_err(|source| ListenError { address, source })
    }

    /// Returns the bound address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The reason why an address cannot be served. If the port is in use, the message suggests another port.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}{}", advice(.source))]
pub struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

fn advice(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse { "; choose another port, or 0 for a free one" } else { "" }
}

/// A socket that serves a router.
#[derive(Debug)]
pub struct Listener {
    accepting: JoinHandle<()>,
    stop: CancellationToken,
}

impl Listener {
    /// Starts to serve `router` on `socket`.
    ///
    /// `authenticator` must be the router's authenticator; a connection with an authenticated user is evicted only if
    /// it is idle. `clients` verify client certificates, if `tls` is configured to request them.
    ///
    /// # Errors
    /// Returns [`ListenError`] if the socket cannot be used.
    pub fn start(
        socket: Socket,
        tls: Arc<rustls::ServerConfig>,
        router: Router,
        authenticator: Authenticator,
        clients: Option<ClientAuthorities>,
    ) -> Result<Self, ListenError> {
        let Socket { socket, address } = socket;
        let listener = TcpListener::from_std(socket).map_err(|source| ListenError { address, source })?;
        let stop = CancellationToken::new();
        let server = Server {
            tls: TlsAcceptor::from(tls),
            router,
            authenticator: Arc::new(authenticator),
            clients,
            slots: ConnectionSlots::new(),
            stop: stop.clone(),
        };
        Ok(Self { accepting: tokio::spawn(server.accept(listener)), stop })
    }

    /// Closes the socket, waits for active requests, and aborts requests that exceed the time limit.
    pub async fn stop(self) {
        self.stop.cancel();
        // The task is never aborted, and a panic in it has already been reported.
        let _ = self.accepting.await;
    }
}

#[derive(Clone)]
struct Server {
    tls: TlsAcceptor,
    router: Router,
    authenticator: Arc<Authenticator>,
    clients: Option<ClientAuthorities>,
    slots: Arc<ConnectionSlots>,
    stop: CancellationToken,
}

impl Server {
    async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = self.stop.cancelled() => break,
                accepted = self.accept_one(&listener) => accepted,
            };
            if let Ok((stream, peer, slot)) = accepted {
                connections.spawn(self.clone().connection(stream, peer, slot));
            } else {
                // Usually there are too many open files: evict a connection, which takes a moment.
                self.slots.evict_one();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        drop(listener);
        let last = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, last).await;
        connections.shutdown().await;
    }

    async fn accept_one(
        &self,
        listener: &TcpListener,
    ) -> io::Result<(TcpStream, SocketAddr, ConnectionSlot)> {
        let (stream, peer) = listener.accept().await?;
        Ok((stream, peer, self.slots.take().await))
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr, slot: ConnectionSlot) {
        // Otherwise, a small response waits for the client's acknowledgment of the previous one.
        let _ = stream.set_nodelay(true);
        let watcher = slot.watcher();
        let accepted = async {
            stream.readable().await?;
            watcher.record_activity();
            self.tls.accept(stream).await
        };
        let accepted = tokio::select! {
            () = self.stop.cancelled() => return,
            () = watcher.evicted() => return,
            () = watcher.timed_out() => return,
            accepted = accepted => accepted,
        };
        // The client sees why a handshake failed.
        let Ok(mut stream) = accepted else { return };
        stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER));
        let certificate = self.clients.as_ref().zip(stream.get_ref().1.peer_certificates());
        let certificate = certificate.and_then(|(clients, certificates)| clients.user(certificates));
        let stream = TokioIo::new(Connected { stream, slot });
        let deliveries = Deliveries::default();
        let mut builder = auto::Builder::new(deliveries.clone());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(FIRST_REQUEST).max_buf_size(HEAD_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Some(PING_INTERVAL))
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .max_send_buf_size(STREAM_BUFFER)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX));
        let service = service_fn(self.service(peer, certificate, &watcher, &deliveries));
        let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
        tokio::select! {
            // The client sees how the connection ends.
            _ = connection.as_mut() => {}
            () = watcher.evicted() => {}
            () = deliveries.overdue() => {}
            () = watcher.timed_out() => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection).await;
            }
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
        watcher.record_http_end();
    }

    /// Returns the function that passes the requests of one connection to the router.
    fn service(
        &self,
        peer: SocketAddr,
        certificate: Option<ClientCertificate>,
        watcher: &Watcher,
        deliveries: &Deliveries,
    ) -> impl Fn(Request<Incoming>) -> BoxedAnswer + use<> {
        let (router, authenticator) = (self.router.clone(), Arc::clone(&self.authenticator));
        let (watcher, deliveries) = (watcher.clone(), deliveries.clone());
        move |mut request| {
            let is_known = authenticator.knows(request.headers(), certificate.as_ref());
            let under_way = watcher.request(is_known);
            let delivery = deliveries.next();
            request.extensions_mut().insert(ConnectInfo(peer));
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            let answer = router.clone().oneshot(request);
            Box::pin(async move {
                let answer = answer.await?;
                Ok(answer.map(|body| Delivered { body, delivery, _request: under_way }))
            })
        }
    }
}

type BoxedAnswer =
    Pin<Box<dyn Future<Output = Result<hyper::Response<Delivered>, std::convert::Infallible>> + Send>>;

/// A TLS connection and its slot. The connection keeps the slot after an upgrade from HTTP to WebSocket.
#[derive(Debug)]
struct Connected {
    stream: TlsStream<TcpStream>,
    slot: ConnectionSlot,
}

impl AsyncRead for Connected {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.slot.count_sent(buffer.filled().len() - before))
    }
}

impl AsyncWrite for Connected {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
