//! Tests for the memory that requests, responses, and watches use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, Request, Version};
use http_body_util::BodyExt as _;
use kubernetes_admission::attributes::UserInfo;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::*;
use crate::Authentication;
use crate::endpoints::context::ApiServer;
use crate::endpoints::options::Options;

/// The path of `ControllerRevision`s. These objects can have any size.
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

/// Limits that allow a few large requests.
const LIMITS: Limits = Limits {
    requests: 4,
    mutating_requests: 2,
    in_flight_bytes: 48 << 20,
    storage_bytes: 256 << 20,
    watch_cache_bytes: 1 << 20,
    event_bytes: 32 << 20,
    watches: 10,
};

fn server() -> ApiServer {
    ApiServer::new(Options { limits: LIMITS, ..Options::default() })
}

fn bytes(server: &ApiServer) -> &Budget {
    &server.server.registry.in_flight.bytes
}

fn request(method: Method, path: &str, body: Body) -> Request<Body> {
    Request::builder().method(method).uri(path).version(Version::HTTP_2).body(body).unwrap()
}

async fn send(server: &ApiServer, request: Request<Body>) -> Response {
    let user = UserInfo { groups: vec!["system:masters".to_owned()], ..UserInfo::default() };
    server.router(Authentication::Always(user)).oneshot(request).await.unwrap()
}

async fn get(server: &ApiServer, path: &str) -> Response {
    send(server, request(Method::GET, path, Body::empty())).await
}

/// Creates a `ControllerRevision` with this many bytes of data.
async fn create(server: &ApiServer, name: &str, bytes: usize) {
    let object = json!({"metadata": {"name": name}, "revision": 1, "data": {"k": "x".repeat(bytes)}});
    let created = send(server, request(Method::POST, REVISIONS, object.to_string().into())).await;
    assert_eq!(created.status(), 201);
}

async fn status(response: Response) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

/// Returns a body that sends one chunk and then stalls.
fn dripping(piece: Vec<u8>) -> Body {
    Body::from_stream(stream::iter([Ok::<_, std::io::Error>(piece)]).chain(stream::pending()))
}

#[tokio::test]
async fn unauthenticated_body_is_not_read() {
    let server = server();
    let authentication =
        Authentication::BearerToken { token: "secret".to_owned(), user: UserInfo::default() };
    let read = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&read);
    let body = Body::from_stream(stream::poll_fn(move |_| {
        told.store(true, Ordering::Relaxed);
        std::task::Poll::Ready(None::<Result<Bytes, std::io::Error>>)
    }));
    let router = server.router(authentication);
    let answer = router.oneshot(request(Method::POST, REVISIONS, body)).await.unwrap();
    assert_eq!(answer.status(), 401);
    assert!(!read.load(Ordering::Relaxed));
    assert_eq!(bytes(&server).available(), LIMITS.in_flight_bytes);
}

#[tokio::test(start_paused = true)]
async fn stalled_body_times_out() {
    let server = server();
    for (query, seconds) in [("", 34), ("?timeout=5s", 5)] {
        let started = Instant::now();
        let path = format!("{REVISIONS}{query}");
        let answer = send(&server, request(Method::POST, &path, dripping(b"{".to_vec()))).await;
        assert_eq!(started.elapsed(), Duration::from_secs(seconds));
        let status = status(answer).await;
        assert_eq!((&status["code"], &status["reason"]), (&json!(504), &json!("Timeout")));
    }
    assert_eq!(bytes(&server).available(), LIMITS.in_flight_bytes);
}

#[tokio::test]
async fn body_reserves_only_received_bytes() {
    let server = server();
    let body = dripping(vec![b' '; 1 << 20]);
    let pending = send(&server, request(Method::POST, REVISIONS, body));
    tokio::pin!(pending);
    assert!(futures::poll!(&mut pending).is_pending());
    // The first 64 KiB of a request do not count.
    assert_eq!(LIMITS.in_flight_bytes - bytes(&server).available(), (1 << 20) - REQUEST_BYTES);
}

#[track_caller]
fn check_too_many(headers: &HeaderMap, status: &Value) {
    assert_eq!(headers[RETRY_AFTER], "1");
    let message = "Too many requests, please try again later.";
    assert_eq!(
        (&status["code"], &status["reason"], &status["message"]),
        (&json!(429), &json!("TooManyRequests"), &json!(message))
    );
}

#[tokio::test]
async fn exhausted_budget_returns_429_with_retry_after() {
    let server = server();
    create(&server, "a", 1 << 20).await;
    let all = bytes(&server).try_reserve(LIMITS.in_flight_bytes).unwrap();
    let object = json!({"metadata": {"name": "b"}, "data": {"k": "x".repeat(1 << 20)}}).to_string();
    for request in [
        request(Method::GET, REVISIONS, Body::empty()),
        request(Method::POST, REVISIONS, object.into()),
        request(Method::POST, REVISIONS, dripping(vec![0; 1 << 20])),
    ] {
        let answer = send(&server, request).await;
        check_too_many(&answer.headers().clone(), &status(answer).await);
    }
    // Small requests do not use the memory budget.
    assert_eq!(get(&server, "/version").await.status(), 200);
    create(&server, "b", 1000).await;
    drop(all);
    assert_eq!(get(&server, REVISIONS).await.status(), 200);
}

#[tokio::test]
async fn read_and_mutating_requests_have_separate_limits() {
    let server = server();
    // Responses are in flight until they are read.
    let mut reads = Vec::new();
    for _ in 0..LIMITS.requests {
        reads.push(get(&server, "/api/v1/namespaces/default").await);
    }
    let answer = get(&server, "/api/v1/namespaces/default").await;
    check_too_many(&answer.headers().clone(), &status(answer).await);
    let pending = || Box::pin(send(&server, request(Method::POST, REVISIONS, dripping(vec![b'{']))));
    let mut writes = [pending(), pending()];
    for write in &mut writes {
        assert!(futures::poll!(write).is_pending());
    }
    let answer = send(&server, request(Method::POST, REVISIONS, Body::empty())).await;
    check_too_many(&answer.headers().clone(), &status(answer).await);
    // Watches are not counted.
    assert_eq!(get(&server, &format!("{REVISIONS}?watch=true")).await.status(), 200);
    drop((reads, writes));
    assert_eq!(get(&server, "/api/v1/namespaces/default").await.status(), 200);
    create(&server, "a", 1).await;
}

#[tokio::test]
async fn response_bytes_are_reserved_until_written() {
    let server = server();
    create(&server, "a", 1 << 20).await;
    let budget = bytes(&server);
    assert_eq!(budget.available(), LIMITS.in_flight_bytes);
    let answers = [get(&server, REVISIONS).await, get(&server, &format!("{REVISIONS}/a")).await];
    let taken = LIMITS.in_flight_bytes - budget.available();
    assert!(((2 << 20) - 2 * REQUEST_BYTES..2 << 20).contains(&taken), "{taken}");
    drop(answers);
    assert_eq!(budget.available(), LIMITS.in_flight_bytes);
}

#[tokio::test]
async fn oversized_response_is_rejected() {
    let server = server();
    for name in 0..17 {
        create(&server, &name.to_string(), 3_000_000).await;
    }
    let status = status(get(&server, REVISIONS).await).await;
    let message = status["message"].as_str().unwrap();
    assert_eq!(status["code"], 501);
    assert!(message.contains("more than 49152 KiB of memory"), "{message}");
}

/// Uses a runtime with a single thread. Decoding on this thread would block all other requests.
#[tokio::test]
async fn large_body_is_processed_on_another_thread() {
    let object = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(LARGE_BYTES)}}).to_string();
    let unknown = Body::from_stream(stream::iter([Ok::<_, std::io::Error>(object.clone())]));
    for body in [Body::from(object), unknown] {
        let server = server();
        // Decoding waits for this guard.
        let decoding = server.server.registry.in_flight.turn(LARGE_BYTES + 1);
        assert!(decoding.is_some());
        let mut pending = Box::pin(send(&server, request(Method::POST, REVISIONS, body)));
        // The other thread may or may not have started; this thread continues.
        for _ in 0..100 {
            assert!(futures::poll!(&mut pending).is_pending());
            assert_eq!(get(&server, "/version").await.status(), 200);
        }
        drop(decoding);
        assert_eq!(pending.await.status(), 201);
    }
}

/// Sends a short body that takes much memory after decoding.
#[tokio::test]
async fn object_reserves_its_decoded_weight() {
    let server = server();
    let members: serde_json::Map<String, Value> =
        (0..60_000).map(|key| (key.to_string(), "".into())).collect();
    let object = json!({"metadata": {"name": "a"}, "data": members}).to_string();
    assert!(object.len() < 1 << 20);
    let others = bytes(&server).try_reserve(LIMITS.in_flight_bytes - (8 << 20)).unwrap();
    let body = || Body::from(object.clone());
    assert_eq!(send(&server, request(Method::POST, REVISIONS, body())).await.status(), 429);
    drop(others);
    assert_eq!(send(&server, request(Method::POST, REVISIONS, body())).await.status(), 201);
    assert_eq!(bytes(&server).available(), LIMITS.in_flight_bytes);
}

#[tokio::test]
async fn oversized_body_is_rejected_before_decoding() {
    let server = server();
    // Decoding it would fail because of its `revision`.
    let items = vec![r#"{"a":0}"#; 90_000].join(",");
    let body = format!(r#"{{"metadata":{{"name":"a"}},"revision":[{items}]}}"#);
    let status = status(send(&server, request(Method::POST, REVISIONS, body.into())).await).await;
    let message = status["message"].as_str().unwrap();
    assert_eq!(status["code"], 501);
    assert!(message.contains("more than 49152 KiB of memory"), "{message}");
}

/// Checks that watches whose clients do not read keep only as many bytes in flight as the budget allows.
#[tokio::test(start_paused = true)]
async fn watches_share_large_events_within_the_budget() {
    let server = server();
    let room = server.server.events.room().clone();
    let watch = async |name: usize| {
        let path = format!("{REVISIONS}?watch=true&fieldSelector=metadata.name%3D{name}");
        get(&server, &path).await.into_body().into_data_stream()
    };
    let mut unread = Vec::new();
    let length = (2 << 20) + 200;
    while room.available() > length {
        let name = unread.len();
        create(&server, &name.to_string(), 2 << 20).await;
        let mut watches = Vec::new();
        for _ in 0..3 {
            watches.push(watch(name).await);
        }
        let texts = futures::future::join_all(watches.iter_mut().map(|watch| watch.next())).await;
        unread.push(texts.into_iter().map(|text| text.unwrap().unwrap()).collect::<Vec<_>>());
    }
    let lengths: usize = unread.iter().map(|texts| texts[0].len()).sum();
    assert_eq!(lengths, LIMITS.event_bytes - room.available());
    create(&server, "100", 2 << 20).await;

    let (mut other, mut waiting) = (watch(0).await, watch(100).await);
    // An event that others are sending needs no additional memory.
    assert_eq!(other.next().await.unwrap().unwrap(), unread[0][0]);
    let mut next = Box::pin(waiting.next());
    let patience = Duration::from_secs(1);
    // Paused time advances when the runtime is idle.
    assert!(tokio::time::timeout(patience, &mut next).await.is_err());
    // Watches that read free memory for the waiting one.
    unread.pop();
    assert!(next.await.unwrap().unwrap().len() > 2 << 20);
    drop((unread, waiting, other));
    assert_eq!(room.available(), LIMITS.event_bytes);
}

#[tokio::test]
async fn number_of_watches_is_limited() {
    let server = server();
    let path = format!("{REVISIONS}?watch=true");
    let others = server.server.watches.try_reserve(LIMITS.watches - 1).unwrap();
    let last = get(&server, &path).await;
    assert_eq!(last.status(), 200);
    assert_eq!(get(&server, &path).await.status(), 429);
    drop(last);
    assert_eq!(get(&server, &path).await.status(), 200);
    drop(others);
}
