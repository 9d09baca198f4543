//! Serves a router over TLS, or treats connections as [`Connection`] specifies.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use rustls::pki_types::CertificateDer;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::extensions::ClientCertificate;
use super::http::Http;
use super::slots::{Activity, Slots};
use super::tls::Tls;
use crate::Connection;
use crate::metrics::Metrics;

/// The timeout for a TLS handshake; the default of Go clients.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The grace period for calls that are in progress when the listener stops.
const GRACE_PERIOD: Duration = Duration::from_millis(500);
/// The TLS alert `protocol_version`, as a TLS 1.0 record.
///
/// Source: RFC 5246, 7.2.
const PROTOCOL_VERSION_ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];
/// The first byte of a TLS handshake record.
///
/// Source: RFC 8446, 5.1.
const HANDSHAKE: u8 = 22;

/// A socket that serves a router.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    stop: CancellationToken,
    tls: Arc<Tls>,
    slots: Arc<Slots>,
}

impl Listener {
    /// Listens on `address` and serves `router` with a maximum number of connections.
    pub(crate) async fn start(
        address: SocketAddr,
        connection: Connection,
        tls: Tls,
        router: Router,
        connections: usize,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let tls = Arc::new(tls);
        let http = Http { router, stop: stop.clone() };
        let server = Server { connection, tls: Arc::clone(&tls), http, metrics };
        let slots = Arc::new(Slots::new(connections));
        let accepting = tokio::spawn(server.accept(listener, Arc::clone(&slots)));
        Ok(Self { address, accepting, stop, tls, slots })
    }

    /// Changes the maximum number of connections.
    pub(crate) fn set_connections(&self, most: usize) {
        self.slots.resize(most);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Stops listening, waits up to half a second for calls in progress, and closes all connections.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        // The task was not aborted, and a panic was already reported.
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
    connection: Connection,
    tls: Arc<Tls>,
    http: Http,
    metrics: Arc<Metrics>,
}

impl Server {
    /// Accepts connections until the listener stops. All open connections end with this task.
    async fn accept(self, listener: TcpListener, slots: Arc<Slots>) {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = self.http.stop.cancelled() => break,
                accepted = accept_one(&listener) => accepted,
            };
            match accepted {
                Ok(stream) => {
                    // Other connections wait in the kernel.
                    let slot = tokio::select! {
                        () = self.http.stop.cancelled() => break,
                        slot = slots.take() => slot,
                    };
                    let server = self.clone();
                    connections.spawn(async move {
                        tokio::select! {
                            () = server.connection(stream, &slot.activity) => {}
                            () = slot.activity.ends.cancelled() => {}
                        }
                        drop(slot);
                    });
                }
                // Usually too many open files: wait and try again.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        let last_calls = async { while connections.join_next().await.is_some() {} };
        // Remaining calls are aborted.
        let _ = tokio::time::timeout(GRACE_PERIOD, last_calls).await;
        connections.shutdown().await;
    }

    /// Handles a connection as [`Connection`] specifies. Ignores errors, because the caller sees them.
    async fn connection(self, mut stream: TcpStream, activity: &Arc<Activity>) {
        let _open = self.metrics.connected();
        // The buffer is on the heap, because a hanging connection keeps it for a long time.
        let mut buffer = vec![0; 4096];
        match self.connection {
            // A refusing port does not have a listener.
            Connection::Accepted | Connection::ClientCertificate | Connection::Refused => {
                self.shake_hands(stream, activity).await;
            }
            Connection::TlsOrPlainHttp => {
                let mut first = [0];
                match stream.peek(&mut first).await {
                    Ok(1) if first == [HANDSHAKE] => self.shake_hands(stream, activity).await,
                    Ok(_) | Err(_) => self.http.http1(stream, activity).await,
                }
            }
            Connection::PlainHttp => self.http.http1(stream, activity).await,
            Connection::Closed => {
                // Unread data would turn the close into a reset.
                let _: io::Result<usize> = self.read(&mut stream, &mut buffer).await;
            }
            Connection::Reset => {
                let _: io::Result<usize> = self.read(&mut stream, &mut buffer).await;
                let _: io::Result<()> = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
            Connection::Silent => {
                while self.read(&mut stream, &mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
            }
            Connection::Tls11 => {
                let _: io::Result<usize> = self.read(&mut stream, &mut buffer).await;
                let _: io::Result<()> = stream.write_all(&PROTOCOL_VERSION_ALERT).await;
            }
        }
    }

    /// Performs a TLS handshake and serves HTTP. Ignores a failed handshake, because the caller sees the reason.
    async fn shake_hands(&self, stream: TcpStream, activity: &Arc<Activity>) {
        let acceptor = TlsAcceptor::from(self.tls.next());
        let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream).into_fallible()).await;
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err((_, mut stream))) => {
                self.metrics.handshake_failed();
                // Unread data would turn the close into a reset, which can overtake the TLS alert.
                let _: io::Result<()> = stream.shutdown().await;
                let mut rest = [0; 1024];
                let drained = async { while stream.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {} };
                let _ = tokio::time::timeout(GRACE_PERIOD, drained).await;
                return;
            }
            Err(_) => {
                self.metrics.handshake_failed();
                return;
            }
        };
        let session = stream.get_ref().1;
        let mut http = self.http.clone();
        if let Some(certificate) = session.peer_certificates().and_then(|chain| chain.first()) {
            http.router = http.router.layer(Extension(ClientCertificate(common_name(certificate))));
        }
        match session.alpn_protocol() {
            Some(b"h2") => http.http2(stream, activity).await,
            Some(_) | None => http.http1(stream, activity).await,
        }
    }

    /// Reads bytes from the caller; returns 0 if the caller disconnects or the listener stops.
    async fn read(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        tokio::select! {
            read = stream.read(buffer) => read,
            () = self.http.stop.cancelled() => Ok(0),
        }
    }
}

/// Returns the common name in a certificate, or an empty string if there is none.
fn common_name(certificate: &CertificateDer<'_>) -> Arc<str> {
    let parsed = x509_parser::parse_x509_certificate(certificate).ok().map(|(_, parsed)| parsed);
    let name = parsed.as_ref().and_then(|parsed| parsed.subject().iter_common_name().next());
    name.and_then(|name| name.as_str().ok()).unwrap_or_default().into()
}

async fn accept_one(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    // The end of a handshake and the response are small writes. Without this option, the second waits until the first
    // is acknowledged, which takes 40 ms if the peer delays acknowledgments.
    let _: std::io::Result<()> = stream.set_nodelay(true);
    Ok(stream)
}
