//! Tests fakes on sockets, over TLS with HTTP/1.1 and HTTP/2.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::error::Error as _;
use std::time::Duration;

use certs::Defect;
use fake_webhooks::{
    BadResponse, Behavior, CallOutcome, Certificate, Deny, Fake, FakeWebhook, Hang, HttpVersions, Limits,
    RemoteAccess, StartError, Timeout, TooFewCalls,
};
use reqwest::{Client, Response};
use serde_json::{Value, json};

fn client(fake: &FakeWebhook) -> Client {
    // An error means that another test has already installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = reqwest::Certificate::from_pem(fake.ca_bundle().as_bytes()).unwrap();
    Client::builder()
        .tls_certs_only([authority])
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}

fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "7", "operation": "CREATE", "object": {"metadata": {"name": "one"}}},
    })
}

async fn post(fake: &FakeWebhook, path: &str) -> reqwest::Result<Response> {
    let body = review().to_string();
    client(fake).post(format!("{}{path}", fake.url())).header("x-test", path).body(body).send().await
}

async fn start(behavior: Behavior) -> FakeWebhook {
    FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap()
}

fn behavior(value: Value) -> Behavior {
    serde_json::from_value(value).unwrap()
}

/// Waits until the fake has received a call.
async fn received(fake: &FakeWebhook) {
    fake.wait_for_calls(1, Duration::from_secs(600)).await.unwrap();
}

#[tokio::test]
async fn response_is_received_over_http_1_and_http_2() {
    for (http, version) in [
        (HttpVersions::Both, http::Version::HTTP_2),
        (HttpVersions::Http2, http::Version::HTTP_2),
        (HttpVersions::Http1, http::Version::HTTP_11),
    ] {
        let fake = FakeWebhook::start(Fake { http, ..Fake::default() }).await.unwrap();
        let response = post(&fake, "a").await.unwrap();
        assert_eq!(response.version(), version);
        let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert_eq!(answer["response"], json!({"uid": "7", "allowed": true}));
        assert_eq!(fake.journal()[0].version, version);
    }
}

#[tokio::test]
async fn journal_contains_every_call_in_order() {
    let fake = start(Behavior::Deny(Deny { message: Some("no".to_owned()), ..Deny::default() })).await;
    post(&fake, "first?timeout=3s").await.unwrap();
    post(&fake, "second").await.unwrap();
    let journal = fake.journal();
    let [first, second] = journal.as_slice() else { panic!("{journal:?}") };
    assert_eq!((first.number, second.number), (1, 2));
    assert!(first.time <= second.time);
    assert_eq!((first.path.as_str(), first.query.as_str()), ("/first", "timeout=3s"));
    assert_eq!((second.path.as_str(), second.query.as_str()), ("/second", ""));
    assert_eq!(first.method, http::Method::POST);
    assert_eq!(first.review(), Some(review()));
    assert!(second.headers.contains(&("x-test".to_owned(), "second".to_owned())));
    let sent = CallOutcome::Sent { status: http::StatusCode::OK, summary: "denied: no".to_owned() };
    assert_eq!(first.outcome, sent);
}

#[tokio::test]
async fn journal_drops_the_oldest_calls() {
    let limits = Limits { journal_entries: 2, ..Limits::default() };
    let fake = FakeWebhook::start(Fake { limits, ..Fake::default() }).await.unwrap();
    for path in ["a", "b", "c"] {
        post(&fake, path).await.unwrap();
    }
    let paths: Vec<_> = fake.journal().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["/b", "/c"]);
    assert_eq!(fake.forgotten(), 1);
}

#[tokio::test]
async fn oversized_body_is_rejected() {
    let limits = Limits { body_bytes: 10, ..Limits::default() };
    let fake = FakeWebhook::start(Fake { limits, ..Fake::default() }).await.unwrap();
    assert_eq!(post(&fake, "").await.unwrap().status(), 413);
    assert_eq!(fake.journal(), []);
}

#[tokio::test]
async fn hanging_fake_sends_nothing_until_the_caller_disconnects() {
    let fake = start(Behavior::Timeout(Timeout::default())).await;
    tokio::select! {
        answer = post(&fake, "") => panic!("{answer:?}"),
        () = received(&fake) => {}
    }
    // `select!` dropped the call.
    while fake.journal()[0].outcome == CallOutcome::Pending {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(fake.journal()[0].outcome, CallOutcome::Abandoned);
}

#[tokio::test]
async fn fake_with_a_limited_hang_responds_afterward() {
    let hang = Hang::For(Duration::from_millis(50));
    let fake = start(Behavior::Timeout(Timeout { hang, ..Timeout::default() })).await;
    assert_eq!(post(&fake, "").await.unwrap().status(), 200);
    let CallOutcome::Sent { summary, .. } = &fake.journal()[0].outcome else { panic!() };
    assert_eq!(summary, "allowed after 50ms");
}

#[tokio::test]
async fn connection_is_closed_without_a_response() {
    for http in [HttpVersions::Http1, HttpVersions::Http2] {
        let behavior = Behavior::BadResponse(BadResponse::Closed);
        let fake = FakeWebhook::start(Fake { behavior, http, ..Fake::default() }).await.unwrap();
        let error = post(&fake, "").await.unwrap_err();
        assert!(error.is_request() && !error.is_timeout(), "{error:?}");
        assert_eq!(fake.journal()[0].outcome, CallOutcome::Closed);
    }
}

#[tokio::test]
async fn bad_response_is_received_unchanged() {
    let fake = start(behavior(json!({"bad-response": {"status": 503}}))).await;
    assert_eq!(post(&fake, "").await.unwrap().status(), 503);
    fake.set_behavior(behavior(json!({"bad-response": "not-json"})));
    assert_eq!(post(&fake, "").await.unwrap().bytes().await.unwrap(), "this is not JSON");
}

#[tokio::test]
async fn new_behavior_restarts_the_call_counter() {
    let twice = json!({"sequence": ["allow", {"bad-response": {"status": 500}}]});
    let fake = start(behavior(twice.clone())).await;
    for status in [200, 500, 500] {
        assert_eq!(post(&fake, "").await.unwrap().status(), status);
    }
    fake.set_behavior(behavior(twice));
    assert_eq!(post(&fake, "").await.unwrap().status(), 200);
}

#[tokio::test]
async fn waiting_for_calls_returns_them_or_their_number() {
    let fake = start(Behavior::default()).await;
    let too_few = fake.wait_for_calls(1, Duration::ZERO).await.unwrap_err();
    assert_eq!(too_few, TooFewCalls { expected: 1, came: 0, within: Duration::ZERO });
    let (answer, calls) = tokio::join!(post(&fake, "a"), fake.wait_for_calls(1, Duration::from_secs(60)));
    answer.unwrap();
    assert_eq!(calls.unwrap()[0].path, "/a");
}

#[tokio::test]
async fn reset_clears_the_journal_and_the_call_counter() {
    let fake = start(behavior(json!({"sequence": [{"bad-response": {"status": 500}}, "allow"]}))).await;
    for status in [500, 200] {
        assert_eq!(post(&fake, "").await.unwrap().status(), status);
    }
    fake.reset();
    assert_eq!(fake.journal(), []);
    assert_eq!(post(&fake, "").await.unwrap().status(), 500);
}

#[tokio::test]
async fn dropping_a_fake_closes_open_connections() {
    let fake = start(Behavior::Timeout(Timeout::default())).await;
    let client = client(&fake);
    let url = fake.url();
    let call = tokio::spawn(async move { client.post(url).body("{}").send().await });
    received(&fake).await;
    let address = fake.address();
    drop(fake);
    assert!(call.await.unwrap().is_err());
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn stopping_a_fake_finishes_calls_and_frees_its_port() {
    let hang = Hang::For(Duration::from_millis(100));
    let fake = start(Behavior::Timeout(Timeout { hang, ..Timeout::default() })).await;
    let client = client(&fake);
    let url = fake.url();
    let call = tokio::spawn(async move { client.post(url).body(review().to_string()).send().await });
    received(&fake).await;
    let address = fake.address();
    // From here on, the clock only advances when the client and the fake wait: the hang ends within the grace period.
    tokio::time::pause();
    fake.stop().await;
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn defective_certificate_is_rejected_by_the_caller() {
    for defect in [
        Defect::Expired,
        Defect::NotYetValid,
        Defect::WrongName,
        Defect::NoAddress,
        Defect::CommonNameOnly,
        Defect::UnknownIssuer,
        Defect::RekeyedIssuer,
        Defect::MissingIntermediate,
        Defect::Sha1,
        Defect::NoServerAuth,
    ] {
        let certificate = Certificate::Defective(defect);
        let fake = FakeWebhook::start(Fake { certificate, ..Fake::default() }).await.unwrap();
        let error = post(&fake, "").await.unwrap_err();
        assert!(error.is_connect(), "{defect}: {error:?}");
        let mut cause = error.source();
        while let Some(deeper) = cause.and_then(std::error::Error::source) {
            cause = Some(deeper);
        }
        assert!(cause.unwrap().to_string().contains("certificate"), "{defect}: {error:?}");
        assert_eq!(fake.journal(), [], "{defect}");
    }
}

#[tokio::test]
async fn remote_access_requires_permission() {
    let listen = "0.0.0.0:0".parse().unwrap();
    let refused = FakeWebhook::start(Fake { listen, ..Fake::default() }).await.unwrap_err();
    assert!(matches!(refused, StartError::NotLoopback(_)), "{refused}");
    let remote_access = RemoteAccess::Allowed;
    let names = vec!["fakes.example.com".to_owned()];
    let fake = FakeWebhook::start(Fake { listen, remote_access, names, ..Fake::default() }).await.unwrap();
    assert_eq!(post(&fake, "").await.unwrap().status(), 200);
}

#[tokio::test]
async fn port_in_use_and_invalid_name_are_reported() {
    let fake = start(Behavior::default()).await;
    let listen = fake.address();
    let error = FakeWebhook::start(Fake { listen, ..Fake::default() }).await.unwrap_err().to_string();
    assert!(error.contains(&listen.to_string()), "{error}");
    let names = vec!["no name".to_owned()];
    let error = FakeWebhook::start(Fake { names, ..Fake::default() }).await.unwrap_err().to_string();
    assert!(error.contains("`no name`"), "{error}");
}
