//! Tests the time limits for clients.
//!
//! The clock is paused, and advances to the next deadline if no task can run. The connections are in memory, because the
//! clock would also advance while the kernel transports data.

use tokio::io::{DuplexStream, duplex};
use tokio::time::{Instant, sleep};

use super::*;
use crate::serve::ui::listener::{self, HEADER_TIMEOUT};
use crate::serve::ui::stalled::UNREAD_TIMEOUT;

/// Opens a connection that sends `text`.
async fn connect(page: &Page, text: &str) -> DuplexStream {
    let (mut client, server) = duplex(64 << 10);
    tokio::spawn(listener::serve(server, page.router.clone()));
    client.write_all(text.as_bytes()).await.unwrap();
    client
}

/// Opens the stream of requests of a page with 8 MiB of requests.
async fn follow(page: &Page) -> DuplexStream {
    page.recent.add(&format!("\"{}\"", "x".repeat(MAX_REQUEST_BYTES - 2)));
    let text = text_of("GET /requests", &[&page.host(), &page.authorization()]);
    let mut stream = connect(page, &text).await;
    assert!(head(&mut stream).await.contains("200 ok"));
    stream
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_loses_its_connection() {
    let page = Page::start();
    let stream = follow(&page).await;
    sleep(UNREAD_TIMEOUT + Duration::from_secs(1)).await;
    let read = timeout(Duration::from_secs(1), body(stream)).await;
    assert!(read.is_ok_and(|read| read.len() <= 64 << 10), "the connection stays open");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_keeps_its_connection() {
    let page = Page::start();
    let mut stream = follow(&page).await;
    let mut part = vec![0; 64 << 10];
    for _ in 0..100 {
        sleep(UNREAD_TIMEOUT.saturating_sub(Duration::from_secs(1))).await;
        stream.read_exact(&mut part).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_requests_keeps_its_connection() {
    let page = Page::start();
    let text = text_of("GET /requests", &[&page.host(), &page.authorization()]);
    let mut stream = connect(&page, &text).await;
    head(&mut stream).await;
    sleep(100 * UNREAD_TIMEOUT).await;
    page.recent.add("1");
    assert_eq!(chunk(&mut stream).await, r#"{"number":1,"report":1}"#);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends() {
    let page = Page::start();
    let request = text_of("GET /configurations", &[&page.host(), &page.authorization()]);
    for (text, response) in [("", ""), ("GET / HTTP/1.1\r\nHost: a", ""), (&request, "[]")] {
        let mut stream = connect(&page, text).await;
        if !response.is_empty() {
            head(&mut stream).await;
        }
        let started = Instant::now();
        assert_eq!(body(stream).await, response);
        assert_eq!(started.elapsed(), HEADER_TIMEOUT, "{text}");
    }
}

#[tokio::test]
async fn only_a_session_keeps_its_connection() {
    let page = Page::start();
    let host = page.host();
    for (request, headers, status) in [
        ("GET /", &[&*host][..], 200),
        ("GET /requests", &[&host], 401),
        // The body never arrives.
        ("POST /question", &[&host, "Content-Length: 10"], 401),
        ("GET /", &["Host: rebound.example.com"], 403),
    ] {
        let mut stream = page.send(request, headers).await;
        let head = head(&mut stream).await;
        assert_eq!(status_in(&head), status, "{head}");
        assert!(head.contains("connection: close"), "{head}");
        body(stream).await;
    }
}
