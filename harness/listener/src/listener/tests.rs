//! Tests the time limits for peers. The clock is paused, and advances to the next deadline if no task can run.

use axum::body::{Body, Bytes};
use axum::response::IntoResponse as _;

use futures::stream;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper::header::AUTHORIZATION;
use hyper_util::rt::TokioExecutor;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_api_server::{ApiServer, Authentication, Options};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::Credentials;

/// A number of bytes that exceeds all buffers between a server and its client.
const MUCH: usize = 64 << 20;

struct Served {
    address: SocketAddr,
    tls: rustls::ClientConfig,
    _listener: Listener,
}

/// Starts a server whose response to `/endless` never ends.
fn serve() -> Served {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.address();
    let credentials = Credentials::new(address).unwrap();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(credentials.certificate_authority_pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let router = Router::new().fallback(async |request: axum::extract::Request| match request.uri().path() {
        "/endless" => {
            Body::from_stream(stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(&[0; 1 << 14]))))
                .into_response()
        }
        _ => "answer".into_response(),
    });
    let authentication =
        Authentication::BearerToken { token: "secret".to_owned(), user: UserInfo::default() };
    let authenticator = ApiServer::new(Options::default()).authenticator(authentication);
    let config = Arc::new(credentials.server_config(None).unwrap());
    Served { address, tls, _listener: Listener::start(socket, config, router, authenticator, None).unwrap() }
}

impl Served {
    async fn connect(&self, protocol: &str) -> TlsStream<TcpStream> {
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::IpAddress(self.address.ip().into());
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await.unwrap()
    }
}

/// Reads until the server closes or resets the connection, and returns the number of bytes.
async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> usize {
    let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
    while let Ok(read) = stream.read(&mut buffer).await {
        count += read;
        assert!(count < MUCH, "there is no end");
        if read == 0 {
            break;
        }
    }
    count
}

#[tokio::test(start_paused = true)]
async fn the_first_request_has_a_time_limit() {
    let served = serve();
    let started = Instant::now();
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    assert_eq!(read_to_end(&mut silent).await, 0);
    assert_eq!(started.elapsed().as_secs(), FIRST_REQUEST.as_secs());
    for (protocol, sent) in [
        ("http/1.1", ""),
        ("http/1.1", "GET / HTTP/1.1\r\nHost: a"),
        ("h2", ""),
        ("h2", "PRI * HTTP/2.0\r\n"),
    ] {
        let started = Instant::now();
        let mut stream = served.connect(protocol).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        read_to_end(&mut stream).await;
        assert_eq!(started.elapsed().as_secs(), FIRST_REQUEST.as_secs(), "{protocol} {sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unauthenticated_peer_cannot_prolong_its_time_limit() {
    let served = serve();
    let started = Instant::now();
    let mut stream = served.connect("http/1.1").await;
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    while stream.write_all(b"a: b\r\n").await.is_ok() {
        assert!(started.elapsed() < 2 * FIRST_REQUEST);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_http_1_response_is_cut_off() {
    let served = serve();
    let mut stream = served.connect("http/1.1").await;
    let request = "GET /endless HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    // The response continues for as long as the client reads it.
    let mut part = vec![0; MUCH];
    stream.read_exact(&mut part).await.unwrap();
    // The clock may have advanced while the last bytes were in flight.
    tokio::time::sleep(Duration::from_secs(300)).await;
    read_to_end(&mut stream).await;
}

#[tokio::test(start_paused = true)]
async fn an_unread_http_2_response_is_cut_off_without_affecting_others() {
    let served = serve();
    let stream = TokioIo::new(served.connect("h2").await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let get = |path: &'static str| {
        let request = Request::get(format!("https://localhost{path}")).header(AUTHORIZATION, "Bearer secret");
        let mut sender = sender.clone();
        async move { sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap() }
    };
    let mut unread = get("/endless").await.into_body();
    let mut read = get("/endless").await.into_body();
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for _ in 0..16 {
            read.frame().await.unwrap().unwrap();
        }
    }
    let cut_off = async {
        let mut count = 0;
        while let Some(Ok(frame)) = unread.frame().await {
            count += frame.into_data().unwrap().len();
            assert!(count < MUCH, "there is no end");
        }
    };
    cut_off.await;
    assert!(read.frame().await.unwrap().is_ok());
    assert_eq!(get("/").await.into_body().collect().await.unwrap().to_bytes(), "answer");
}
