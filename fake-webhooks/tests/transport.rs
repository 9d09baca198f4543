//! Tests connection, TLS, and HTTP faults.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

use certs::Defect;
use fake_webhooks::{Behavior, CallOutcome, Certificate, Connection, Fake, FakeWebhook, Fault, HttpVersions};
use reqwest::{Client, Response};
use serde_json::json;

fn client(fake: &FakeWebhook) -> Client {
    // An error means that another test has already installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = reqwest::Certificate::from_pem(fake.ca_bundle().as_bytes()).unwrap();
    Client::builder().tls_certs_only([authority]).no_proxy().timeout(Duration::from_secs(5)).build().unwrap()
}

async fn post(client: &Client, fake: &FakeWebhook) -> reqwest::Result<Response> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "7", "operation": "CREATE", "object": {"metadata": {"name": "one"}}},
    });
    client.post(fake.url()).body(review.to_string()).send().await
}

/// Returns the message of an error with all its causes.
fn told(error: &reqwest::Error) -> String {
    let mut text = format!("{error:?}");
    let mut cause = error.source();
    while let Some(deeper) = cause {
        let _ = write!(text, " / {deeper} / {deeper:?}");
        cause = deeper.source();
    }
    text
}

async fn connected(connection: Connection) -> FakeWebhook {
    FakeWebhook::start(Fake { connection, ..Fake::default() }).await.unwrap()
}

async fn behaving(yaml: &str) -> FakeWebhook {
    let behavior: Behavior = serde_saphyr::from_str(yaml).unwrap();
    FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.unwrap()
}

#[tokio::test]
async fn each_connection_fault_causes_its_error() {
    for (connection, expected) in [
        (Connection::Refused, "Connection refused"),
        (Connection::Closed, "eof"),
        (Connection::Reset, "reset by peer"),
        (Connection::PlainHttp, "InvalidContentType"),
        (Connection::Tls11, "ProtocolVersion"),
        (Connection::ClientCertificate, "CertificateRequired"),
    ] {
        let fake = connected(connection).await;
        let error = post(&client(&fake), &fake).await.unwrap_err();
        assert!(told(&error).contains(expected), "{connection:?}: {}", told(&error));
        assert_eq!(fake.journal(), [], "{connection:?}");
    }
}

#[tokio::test]
async fn silent_connection_times_out_at_the_caller() {
    let fake = connected(Connection::Silent).await;
    let request = client(&fake).post(fake.url()).timeout(Duration::from_millis(200)).send();
    assert!(request.await.unwrap_err().is_timeout());
    fake.stop().await;
}

#[tokio::test]
async fn redirect_can_point_to_the_same_port_without_tls() {
    let fault = Fault::find("redirect-to-plain-http").unwrap();
    let behavior = serde_json::from_value(fault.fake["behavior"].clone()).unwrap();
    let connection = Connection::TlsOrPlainHttp;
    let fake = FakeWebhook::start(Fake { behavior, connection, ..Fake::default() }).await.unwrap();
    let answer = post(&client(&fake), &fake).await.unwrap();
    assert_eq!(answer.url().scheme(), "http");
    assert_eq!(answer.status(), 200);
    assert_eq!(fake.journal().len(), 2);
}

#[tokio::test]
async fn rotated_certificate_is_for_new_connections() {
    let fake = FakeWebhook::start(Fake::default()).await.unwrap();
    let open = client(&fake);
    post(&open, &fake).await.unwrap();
    fake.rotate(Certificate::Defective(Defect::UnknownIssuer)).unwrap();
    post(&open, &fake).await.unwrap();
    assert!(post(&client(&fake), &fake).await.unwrap_err().is_connect());
    fake.rotate(Certificate::Valid).unwrap();
    post(&client(&fake), &fake).await.unwrap();
}

#[tokio::test]
async fn certificate_can_change_after_the_first_handshake() {
    let rotate = Some(Certificate::Defective(Defect::Expired));
    let fake = FakeWebhook::start(Fake { rotate, ..Fake::default() }).await.unwrap();
    let open = client(&fake);
    post(&open, &fake).await.unwrap();
    post(&open, &fake).await.unwrap();
    assert!(post(&client(&fake), &fake).await.unwrap_err().is_connect());
}

#[tokio::test]
async fn raw_bytes_are_sent_unchanged_also_in_a_sequence() {
    let fake = behaving(
        r#"sequence:
- bytes: {text: "HTTP/1.1 299 Odd\r\nContent-Length: {length}\r\n\r\n{review}"}
- bytes: {text: "no HTTP at all"}
- bytes: {text: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", then: cut}
- allow
"#,
    )
    .await;
    let client = client(&fake);
    let answer = post(&client, &fake).await.unwrap();
    assert_eq!(answer.status(), 299);
    assert!(answer.text().await.unwrap().contains(r#""uid":"7""#));
    assert!(told(&post(&client, &fake).await.unwrap_err()).contains("Parse"));
    assert!(post(&client, &fake).await.unwrap().text().await.is_err());
    let answer = post(&client, &fake).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_11));
    let answered: Vec<_> = fake.journal().into_iter().map(|entry| entry.outcome).collect();
    assert_eq!(answered[..3], [CallOutcome::Bytes, CallOutcome::Bytes, CallOutcome::Bytes]);
}

#[tokio::test]
async fn bytes_may_drip() {
    let fake =
        behaving(r#"bytes: {text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", every: 1ms}"#).await;
    let started = tokio::time::Instant::now();
    assert_eq!(post(&client(&fake), &fake).await.unwrap().text().await.unwrap(), "ok");
    assert!(started.elapsed() > Duration::from_millis(40));
}

#[tokio::test]
async fn head_is_sent_immediately_before_a_slow_body() {
    let fake = behaving(
        r#"bytes: {head: "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n", text: "{review}", every: 1h}"#,
    )
    .await;
    let mut answer = post(&client(&fake), &fake).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "{");
}

#[tokio::test]
async fn connection_close_over_http_2_leads_to_a_new_connection() {
    let behavior =
        serde_saphyr::from_str(r#"raw: {headers: {connection: close}, text: "{review}"}"#).unwrap();
    let http = HttpVersions::Http2;
    let rotate = Some(Certificate::Defective(Defect::Expired));
    let fake = FakeWebhook::start(Fake { behavior, http, rotate, ..Fake::default() }).await.unwrap();
    let client = client(&fake);
    assert_eq!(post(&client, &fake).await.unwrap().status(), 200);
    // A new handshake is visible in the certificate.
    let error = loop {
        if let Err(error) = post(&client, &fake).await {
            break error;
        }
    };
    assert!(error.is_connect(), "{error:?}");
}

#[tokio::test]
async fn body_can_be_padded_and_compressed() {
    let fake = behaving(r#"raw: {padding: 1000000, encoding: gzip, text: "{review}"}"#).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = reqwest::Certificate::from_pem(fake.ca_bundle().as_bytes()).unwrap();
    let plain = Client::builder().tls_certs_only([authority]).no_proxy().no_gzip().build().unwrap();
    let answer = post(&plain, &fake).await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert!(answer.bytes().await.unwrap().len() < 10_000);
    let answer = post(&client(&fake), &fake).await.unwrap();
    let text = answer.text().await.unwrap();
    assert!(text.len() > 1_000_000 && text.trim_start().starts_with('{'), "{}", text.len());
}
