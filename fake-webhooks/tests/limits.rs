//! Tests the limits with peers that try to exhaust memory or connections.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use fake_webhooks::{Fake, FakeWebhook, HttpVersions, Limits};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

async fn start(limits: Limits) -> FakeWebhook {
    FakeWebhook::start(Fake { limits, http: HttpVersions::Http1, ..Fake::default() }).await.unwrap()
}

type Stream = rustls::StreamOwned<rustls::ClientConnection, std::net::TcpStream>;

/// Opens a blocking TLS connection. It must not be used on the threads of the fake.
fn connect(fake: &FakeWebhook) -> Stream {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(fake.ca_bundle().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    rustls::StreamOwned::new(client, std::net::TcpStream::connect(fake.address()).unwrap())
}

/// Sends bytes and returns the status line of the response.
fn status_line(stream: &mut Stream, request: &[u8]) -> String {
    // A request that is rejected early is not read completely.
    let _ = stream.write_all(request);
    let _ = stream.flush();
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_headers_are_rejected() {
    let fake = start(Limits::default()).await;
    let head = |bytes: usize| {
        format!("POST / HTTP/1.1\r\nhost: a\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "x".repeat(bytes))
    };
    assert_eq!(status_line(&mut connect(&fake), head(32 << 10).as_bytes()), "HTTP/1.1 400 Bad Request");
    assert_eq!(fake.journal().len(), 1);
    let refused = status_line(&mut connect(&fake), head(256 << 10).as_bytes());
    // Unread data turns the close into a reset, which can overtake the response.
    assert!(["HTTP/1.1 431 Request Header Fields Too Large", ""].contains(&refused.as_str()), "{refused}");
    assert_eq!(fake.journal().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_bodies_share_the_size_limit() {
    let fake = start(Limits { bodies_bytes: 64 << 10, ..Limits::default() }).await;
    let request = |promised: usize, sent: usize| {
        format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {promised}\r\n\r\n{}", "x".repeat(sent))
    };
    let mut slow = connect(&fake);
    slow.write_all(request(60_000, 50_000).as_bytes()).unwrap();
    slow.flush().unwrap();
    // Until the slow body reserves its size, there is room for both.
    let busy = "HTTP/1.1 503 Service Unavailable";
    let mut answer = String::new();
    for _ in 0..10_000 {
        answer = status_line(&mut connect(&fake), request(40_000, 40_000).as_bytes());
        if answer == busy {
            break;
        }
    }
    assert_eq!(answer, busy);
    assert_eq!(status_line(&mut slow, "x".repeat(10_000).as_bytes()), "HTTP/1.1 400 Bad Request");
    let answer = status_line(&mut connect(&fake), request(40_000, 40_000).as_bytes());
    assert_eq!(answer, "HTTP/1.1 400 Bad Request", "the place is free again");
}

const CALL: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";

#[tokio::test(flavor = "multi_thread")]
async fn idle_connection_is_replaced_by_a_new_one() {
    let fake = start(Limits { connections: 1, ..Limits::default() }).await;
    let bad = "HTTP/1.1 400 Bad Request";
    let mut first = connect(&fake);
    assert_eq!(status_line(&mut first, CALL), bad);
    assert_eq!(status_line(&mut connect(&fake), CALL), bad);
    // Reads the rest of the response and the end of the connection.
    let _ = std::io::copy(&mut first, &mut std::io::sink());
    assert_eq!(status_line(&mut first, CALL), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_connections_wait_if_all_connections_have_calls_in_progress() {
    let behavior = serde_json::from_str(r#"{"sequence": [{"timeout": {}}, "allow"]}"#).unwrap();
    let limits = Limits { connections: 1, ..Limits::default() };
    let fake = Fake { behavior, limits, http: HttpVersions::Http1, ..Fake::default() };
    let fake = FakeWebhook::start(fake).await.unwrap();
    let mut first = connect(&fake);
    first.write_all(CALL).unwrap();
    first.flush().unwrap();
    fake.wait_for_calls(1, Duration::from_secs(60)).await.unwrap();
    let mut second = connect(&fake);
    second.sock.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(status_line(&mut second, CALL), "", "nobody shakes hands with it");
    drop(first);
    second.sock.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(status_line(&mut second, CALL), "HTTP/1.1 400 Bad Request");
}

#[tokio::test(start_paused = true)]
async fn stalled_handshake_times_out() {
    let fake = start(Limits::default()).await;
    let silent = tokio::net::TcpStream::connect(fake.address()).await.unwrap();
    let mut bytes = [0];
    loop {
        silent.readable().await.unwrap();
        match silent.try_read(&mut bytes) {
            Ok(read) => break assert_eq!(read, 0),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}
