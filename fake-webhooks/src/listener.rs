//! Accepts connections and serves a router on them over TLS, or does to them what [`Connection`] says, until it is
//! dropped.

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

use crate::Connection;
use crate::connection::Http;
use crate::endpoint::ClientCertificate;
use crate::metrics::Metrics;
use crate::slots::{Activity, Slots};
use crate::tls::Tls;

/// A handshake must have ended within this time: the same that Go's clients grant.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// How long calls under way may still take when the listener is asked to stop.
const LAST_CALLS: Duration = Duration::from_millis(500);
/// A fatal alert, in a record of TLS 1.0: "protocol version". Source: RFC 5246, 7.2.
const PROTOCOL_VERSION_ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];
/// The first byte of a handshake. Source: RFC 8446, 5.1.
const HANDSHAKE: u8 = 22;

/// A socket on which a router is served.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    stop: CancellationToken,
    tls: Arc<Tls>,
    slots: Arc<Slots>,
}

impl Listener {
    /// Starts to serve, so many connections at a time.
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

    /// Serves so many connections at a time from now on.
    pub(crate) fn set_connections(&self, most: usize) {
        self.slots.resize(most);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
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
    connection: Connection,
    tls: Arc<Tls>,
    http: Http,
    metrics: Arc<Metrics>,
}

impl Server {
    /// Accepts until it is stopped. The connections end with the set that they are in.
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
                    // All others wait meanwhile, in the kernel.
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

    /// How a connection ends is seen by the caller.
    async fn connection(self, mut stream: TcpStream, activity: &Arc<Activity>) {
        let _open = self.metrics.connected();
        // On the heap: a connection that hangs would keep it.
        let mut buffer = vec![0; 4096];
        match self.connection {
            // Nothing can be refused that was accepted: such a port has no listener.
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
                // What was not read would turn the end into a reset.
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

    /// A failed handshake is the caller's affair: it sees the reason, and there is no call to write down.
    async fn shake_hands(&self, stream: TcpStream, activity: &Arc<Activity>) {
        let acceptor = TlsAcceptor::from(self.tls.next());
        let shaken = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream).into_fallible()).await;
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err((_, mut stream))) => {
                self.metrics.handshake_failed();
                // What was not read would turn the end into a reset, which may overtake the alert that says why.
                let _: io::Result<()> = stream.shutdown().await;
                let mut rest = [0; 1024];
                let drained = async { while stream.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {} };
                let _ = tokio::time::timeout(LAST_CALLS, drained).await;
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

    /// Bytes of the caller; none when it says nothing more, or when the listener stops.
    async fn read(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        tokio::select! {
            read = stream.read(buffer) => read,
            () = self.http.stop.cancelled() => Ok(0),
        }
    }
}

/// Empty if the certificate says none.
fn common_name(certificate: &CertificateDer<'_>) -> Arc<str> {
    let parsed = x509_parser::parse_x509_certificate(certificate).ok().map(|(_, parsed)| parsed);
    let name = parsed.as_ref().and_then(|parsed| parsed.subject().iter_common_name().next());
    name.and_then(|name| name.as_str().ok()).unwrap_or_default().into()
}

async fn accept_one(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    // The end of a handshake and the answer are small writes: together with delayed acknowledgements, holding the second
    // back costs every new connection 40 ms.
    let _: std::io::Result<()> = stream.set_nodelay(true);
    Ok(stream)
}
