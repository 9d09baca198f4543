//! Tests watches that depend on timing, which a recording of one second cannot cover.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures::StreamExt as _;
use harness::server::{ApiServer, Options};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{CONFIG_MAPS, delete, post, put, respond, server};

/// The events of a watch, as they arrive.
struct Events(BodyDataStream);

impl Events {
    async fn open(server: &ApiServer, query: &str) -> Self {
        let path = format!("{CONFIG_MAPS}?watch=true{query}");
        let answer = respond(server, &Method::GET, &path, "application/json", String::new()).await;
        assert_eq!(answer.status(), 200);
        Self(Body::into_data_stream(answer.into_body()))
    }

    /// Returns the next events that arrive together; `None` after the watch has ended.
    async fn next(&mut self) -> Option<Vec<Value>> {
        let piece = self.0.next().await?.unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }
}

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[tokio::test]
async fn waiting_watcher_receives_events() {
    let server = server();
    let mut events = Events::open(&server, "").await;
    for name in ["a", "b"] {
        let config_map = config_map(name);
        let (told, (code, _)) = tokio::join!(events.next(), post(&server, CONFIG_MAPS, &config_map));
        assert_eq!(code, 201);
        let told = told.unwrap();
        assert_eq!(
            (&told[0]["type"], &told[0]["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(name))
        );
        assert_eq!(told[0]["object"]["kind"], "ConfigMap");
        assert_eq!(told.len(), 1);
    }
}

#[tokio::test]
async fn watch_from_an_expired_version_returns_410() {
    let server = server();
    for _ in 0..2_100 {
        assert_eq!(post(&server, CONFIG_MAPS, &config_map("a")).await.0, 201);
        assert_eq!(delete(&server, &format!("{CONFIG_MAPS}/a"), None).await.0, 200);
    }
    let told = Events::open(&server, "&resourceVersion=1").await.next().await.unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["type"], "ERROR");
    let status = &told[0]["object"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(410), &json!("Expired")));
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with("too old resource version: 1 ("), "{message}");

    // Everything in the history arrives, in pieces.
    let oldest = message.trim_start_matches("too old resource version: 1 (").trim_end_matches(')');
    let mut events = Events::open(&server, &format!("&resourceVersion={oldest}")).await;
    let mut count = 0;
    while count < 4096 {
        count += events.next().await.unwrap().len();
    }
    assert_eq!(count, 4096);
}

/// Checks that a watch ends without an error if the client reads too slowly.
///
/// As with upstream's cache, the client reconnects with the last `resourceVersion` that it received.
#[tokio::test]
async fn lagging_watcher_ends_without_an_error() {
    let server = server();
    assert_eq!(post(&server, CONFIG_MAPS, &config_map("a")).await.0, 201);
    let mut events = Events::open(&server, "").await;
    assert_eq!(events.next().await.unwrap().len(), 1);
    for _ in 0..2_100 {
        assert_eq!(post(&server, CONFIG_MAPS, &config_map("b")).await.0, 201);
        assert_eq!(delete(&server, &format!("{CONFIG_MAPS}/b"), None).await.0, 200);
    }
    assert_eq!(events.next().await, None);
}

/// Checks that objects that are written during the initial events arrive once and in order.
///
/// The existing objects arrive in several parts.
#[tokio::test]
async fn objects_changed_during_the_initial_events_are_current() {
    let server = server();
    let large =
        |name: &str, text: &str| json!({"metadata": {"name": name}, "data": {"k": text.repeat(40_000)}});
    for name in ["a", "b", "c"] {
        assert_eq!(post(&server, CONFIG_MAPS, &large(name, "x")).await.0, 201);
    }
    let mut events = Events::open(&server, "&allowWatchBookmarks=true").await;
    let mut told = events.next().await.unwrap();
    assert_eq!(told.len(), 1, "a piece ends with a large event");
    for name in ["a", "c"] {
        assert_eq!(put(&server, &format!("{CONFIG_MAPS}/{name}"), &large(name, "y")).await.0, 200);
    }
    assert_eq!(delete(&server, &format!("{CONFIG_MAPS}/b"), None).await.0, 200);
    assert_eq!(post(&server, CONFIG_MAPS, &config_map("d")).await.0, 201);
    while told.last().is_some_and(|event| event["type"] != "BOOKMARK") {
        told.extend(events.next().await.unwrap());
    }
    let seen: Vec<(&str, &str, &str)> = told
        .iter()
        .map(|event| {
            let object = &event["object"];
            (
                event["type"].as_str().unwrap(),
                object["metadata"]["name"].as_str().unwrap_or_default(),
                object["data"]["k"].as_str().map_or("", |text| text.split_at(1).0),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("ADDED", "a", "x"),
            ("MODIFIED", "a", "y"),
            ("ADDED", "c", "y"),
            ("ADDED", "d", ""),
            ("BOOKMARK", "", ""),
        ]
    );
}

/// Checks that a watch sends a large object after small ones.
///
/// A watch that processes the same object repeatedly never returns, so the test runs on a thread that can be abandoned.
#[test]
fn large_object_follows_small_ones() {
    let (done, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = server();
            let of =
                |name: &str, bytes| json!({"metadata": {"name": name}, "data": {"k": "x".repeat(bytes)}});
            for (name, bytes) in [("a", 1), ("b", 40_000), ("c", 1)] {
                assert_eq!(post(&server, CONFIG_MAPS, &of(name, bytes)).await.0, 201);
            }
            let mut events = Events::open(&server, "&allowWatchBookmarks=true").await;
            let mut told = vec![lengths(&events.next().await.unwrap())];
            told.push(lengths(&events.next().await.unwrap()));
            // These changes happen while objects are still being sent.
            for (name, bytes) in [("a", 2), ("b", 50_000)] {
                assert_eq!(put(&server, &format!("{CONFIG_MAPS}/{name}"), &of(name, bytes)).await.0, 200);
            }
            for _ in 0..3 {
                told.push(lengths(&events.next().await.unwrap()));
            }
            done.send(told).unwrap();
        });
    });
    let told = waits.recv_timeout(Duration::from_secs(60)).expect("the watch goes on");
    assert_eq!(told, [vec![1], vec![40_000], vec![2], vec![50_000], vec![1, 0]]);
}

/// Returns the lengths of the objects' data in the events.
fn lengths(events: &[Value]) -> Vec<usize> {
    events.iter().map(|event| event["object"]["data"]["k"].as_str().map_or(0, str::len)).collect()
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_sent_every_minute() {
    let server = server();
    let started = Instant::now();
    let mut events = Events::open(&server, "&allowWatchBookmarks=true&timeoutSeconds=150").await;
    let ends_objects = events.next().await.unwrap();
    assert_eq!(
        ends_objects[0]["object"]["metadata"]["annotations"],
        json!({"k8s.io/initial-events-end": "true"})
    );
    for minutes in 1..=2 {
        let told = events.next().await.unwrap();
        assert_eq!(started.elapsed(), Duration::from_secs(60 * minutes));
        let metadata = json!({"resourceVersion": ends_objects[0]["object"]["metadata"]["resourceVersion"]});
        assert_eq!(
            told,
            [
                json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}})
            ]
        );
    }
    assert_eq!(events.next().await, None);
    assert_eq!(started.elapsed(), Duration::from_secs(150));
}

#[tokio::test]
async fn stopping_server_ends_watches() {
    let server = server();
    let mut waiting = Events::open(&server, "").await;
    let (told, ()) = tokio::join!(waiting.next(), async { server.end_watches() });
    assert_eq!(told, None);
    assert_eq!(Events::open(&server, "").await.next().await, None);
}

#[tokio::test]
async fn watch_start_and_end_are_audited() {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&noted);
    let audit = Arc::new(move |event: &Value| sink.lock().unwrap().push(event.clone()));
    let server = ApiServer::new(Options { audit: Some(audit), ..Options::default() });
    let stages = || -> Vec<Value> {
        noted.lock().unwrap().iter().map(|event: &Value| json!([event["verb"], event["stage"]])).collect()
    };
    let events = Events::open(&server, "").await;
    assert_eq!(stages(), [json!(["watch", "ResponseStarted"])]);
    drop(events);
    assert_eq!(stages(), [json!(["watch", "ResponseStarted"]), json!(["watch", "ResponseComplete"])]);
    let noted = noted.lock().unwrap();
    assert_eq!(noted[0]["auditID"], noted[1]["auditID"]);
    assert_eq!(noted[0]["user"]["username"], "admin");
}

#[tokio::test]
async fn watch_timeout_of_any_length_is_accepted() {
    let server = server();
    for seconds in [i64::MAX, i64::MAX / 1_000_000_000 + 1] {
        // In nanoseconds this overflows to a negative number.
        let mut events = Events::open(&server, &format!("&timeoutSeconds={seconds}")).await;
        let told = events.next().await.unwrap();
        assert_eq!(told[0]["type"], "ERROR");
        assert_eq!(told[0]["object"]["message"], "context deadline exceeded");
        assert_eq!(events.next().await, None);
    }
    let centuries = i64::MAX / 1_000_000_000;
    let mut events = Events::open(&server, &format!("&timeoutSeconds={centuries}")).await;
    let config_map = config_map("a");
    let (told, (code, _)) = tokio::join!(events.next(), post(&server, CONFIG_MAPS, &config_map));
    assert_eq!((code, &told.unwrap()[0]["type"]), (201, &json!("ADDED")));
}
