//! What requests, answers and watches take of the bytes that are there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use http::header::RETRY_AFTER;
use http::{Method, Request, Version};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::*;
use crate::attributes::UserInfo;
use crate::server::{ApiServer, Authentication, LARGE_EVENTS, Options, UNDER_WAY, WATCHES};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn bytes_are_given_back_when_the_last_of_them_is_gone() {
    let budget = Budget::new(10);
    let mut reservation = budget.try_reserve(4).unwrap();
    reservation.try_grow(4).unwrap();
    for refused in [reservation.try_grow(4), budget.try_reserve(3).map(drop)] {
        assert_eq!(refused.unwrap_err().code, 429);
    }
    let bytes = reservation.hold(b"some".to_vec());
    let part = bytes.slice(1..2);
    drop(bytes);
    assert_eq!(budget.available(), 2);
    drop(part);
    assert_eq!(budget.available(), 10);
}

#[test]
fn a_reservation_grows_and_shrinks() {
    let budget = Budget::new(10);
    let mut reservation = budget.try_reserve(4).unwrap();
    for (bytes, left) in [(10, 0), (3, 7), (3, 7), (0, 10)] {
        reservation.resize(bytes).unwrap();
        assert_eq!(budget.available(), left);
    }
    assert_eq!(reservation.resize(11).unwrap_err().code, 429);
}

fn server() -> ApiServer {
    ApiServer::new(Options::default())
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

/// Creates a ConfigMap with so many bytes of data.
async fn create(server: &ApiServer, name: &str, bytes: usize) {
    let object = json!({"metadata": {"name": name}, "data": {"k": "x".repeat(bytes)}});
    let created = send(server, request(Method::POST, CONFIG_MAPS, object.to_string().into())).await;
    assert_eq!(created.status(), 201);
}

async fn status(response: Response) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

/// A body of one piece, after which nothing comes.
fn dripping(piece: Vec<u8>) -> Body {
    Body::from_stream(stream::iter([Ok::<_, std::io::Error>(piece)]).chain(stream::pending()))
}

#[tokio::test]
async fn nobody_reads_the_body_of_a_stranger() {
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
    let answer = router.oneshot(request(Method::POST, CONFIG_MAPS, body)).await.unwrap();
    assert_eq!(answer.status(), 401);
    assert!(!read.load(Ordering::Relaxed));
    assert_eq!(server.server.under_way.available(), UNDER_WAY);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_waited_for_until_the_deadline() {
    let server = server();
    for (query, seconds) in [("", 34), ("?timeout=5s", 5)] {
        let started = Instant::now();
        let path = format!("{CONFIG_MAPS}{query}");
        let answer = send(&server, request(Method::POST, &path, dripping(b"{".to_vec()))).await;
        assert_eq!(started.elapsed(), Duration::from_secs(seconds));
        let status = status(answer).await;
        assert_eq!((&status["code"], &status["reason"]), (&json!(504), &json!("Timeout")));
    }
    assert_eq!(server.server.under_way.available(), UNDER_WAY);
}

#[tokio::test]
async fn a_body_takes_the_bytes_that_have_come() {
    let server = server();
    let body = dripping(vec![b' '; 1 << 20]);
    let pending = send(&server, request(Method::POST, CONFIG_MAPS, body));
    tokio::pin!(pending);
    assert!(futures::poll!(&mut pending).is_pending());
    let taken = UNDER_WAY - server.server.under_way.available();
    assert!((1 << 20..2 << 20).contains(&taken), "{taken}");
}

#[tokio::test]
async fn a_request_for_which_no_bytes_are_left_may_try_again() {
    let server = server();
    let budget = &server.server.under_way;
    let all = budget.try_reserve(UNDER_WAY).unwrap();
    for request in [
        request(Method::GET, "/version", Body::empty()),
        request(Method::POST, CONFIG_MAPS, dripping(vec![0])),
    ] {
        let answer = send(&server, request).await;
        assert_eq!(answer.headers()[RETRY_AFTER], "1");
        let status = status(answer).await;
        let message = "Too many requests, please try again later.";
        assert_eq!(
            (&status["code"], &status["reason"], &status["message"]),
            (&json!(429), &json!("TooManyRequests"), &json!(message))
        );
    }
    drop(all);
    assert_eq!(get(&server, "/version").await.status(), 200);
}

#[tokio::test]
async fn an_answer_takes_its_bytes_until_they_are_written() {
    let server = server();
    create(&server, "a", 1 << 20).await;
    let budget = &server.server.under_way;
    assert_eq!(budget.available(), UNDER_WAY);
    let answers = [get(&server, CONFIG_MAPS).await, get(&server, &format!("{CONFIG_MAPS}/a")).await];
    let taken = UNDER_WAY - budget.available();
    assert!((2 << 20..3 << 20).contains(&taken), "{taken}");
    drop(answers);
    assert_eq!(budget.available(), UNDER_WAY);
}

/// What is short may take much memory once it is read.
#[tokio::test]
async fn an_object_takes_what_it_weighs() {
    let server = server();
    let others = server.server.under_way.try_reserve(UNDER_WAY - (8 << 20)).unwrap();
    let members: serde_json::Map<String, Value> =
        (0..100_000).map(|key| (key.to_string(), "".into())).collect();
    let object = json!({"metadata": {"name": "a"}, "data": members}).to_string();
    assert!(object.len() < 2 << 20);
    let body = || Body::from(object.clone());
    assert_eq!(send(&server, request(Method::POST, CONFIG_MAPS, body())).await.status(), 429);
    drop(others);
    assert_eq!(send(&server, request(Method::POST, CONFIG_MAPS, body())).await.status(), 201);
}

/// Watchers that do not read have no more under way than there is room for, whatever is there to be told.
#[tokio::test]
async fn watchers_of_large_objects_take_turns() {
    let server = server();
    for name in ["a", "b"] {
        create(&server, name, 2 << 20).await;
    }
    let budget = &server.server.large_events;
    let mut watches = Vec::new();
    let mut unread = Vec::new();
    let waiting = loop {
        let mut events =
            get(&server, &format!("{CONFIG_MAPS}?watch=true")).await.into_body().into_data_stream();
        let next = futures::poll!(events.next());
        match next {
            std::task::Poll::Ready(piece) => unread.push(piece.unwrap().unwrap()),
            std::task::Poll::Pending => break events,
        }
        watches.push(events);
    };
    assert!(unread.len() > 100, "{}", unread.len());
    let lengths: usize = unread.iter().map(Bytes::len).sum();
    assert!((LARGE_EVENTS - (3 << 20)..=LARGE_EVENTS).contains(&lengths), "{lengths}");
    // One that reads makes room for the one that waits.
    unread.pop();
    let mut waiting = waiting;
    assert!(waiting.next().await.unwrap().unwrap().len() > 2 << 20);
    drop((unread, waiting));
    assert_eq!(budget.available(), LARGE_EVENTS);
}

#[tokio::test]
async fn there_are_so_many_watches_and_not_one_more() {
    let server = server();
    let path = format!("{CONFIG_MAPS}?watch=true");
    let others = server.server.watches.try_reserve(WATCHES - 1).unwrap();
    let last = get(&server, &path).await;
    assert_eq!(last.status(), 200);
    assert_eq!(get(&server, &path).await.status(), 429);
    drop(last);
    assert_eq!(get(&server, &path).await.status(), 200);
    drop(others);
}
