//! Tests V38 to V41, V45, and V47: side effects of a webhook, its latency, and its TLS handshake.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::{Router, routing};
use fake_webhooks::{Certificate, Connection, Fake, FakeWebhook, HttpVersions, Transport};
use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Recorder, Settings};
use serde_json::json;

use super::environment::{
    StoppedClock, TestedWebhook, configuration, entry, finds, only, passes, pods, run, verdict, verify,
    verify_with,
};

/// Starts a server that records its requests, and answers all of them with status 201.
pub(crate) async fn recording() -> (Recorder, SocketAddr) {
    let recorder = Recorder::default();
    let told = recorder.clone();
    let answer = move |request: Request| {
        let uri = request.uri();
        if told.request(request.method().as_str(), uri.path(), uri.query().unwrap_or_default()) {
            told.answer(uri.path(), StatusCode::CREATED.as_u16());
        }
        std::future::ready(StatusCode::CREATED)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(routing::any(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (recorder, address)
}

fn writing(to: SocketAddr) -> String {
    format!("{{side-effect: {{write: {{url: 'http://{to}/api/v1/namespaces/demo/configmaps'}}}}}}")
}

#[tokio::test]
async fn v38_finds_writes_on_dry_runs() {
    let (recorder, address) = recording().await;
    let settings = Settings { recorder: Some(recorder), ..Settings::default() };
    let check = verify_with("V38", vec![TestedWebhook::validating(&writing(address))], settings).await;
    finds(&check, &["writes on dry runs"]);
    let message = &check.findings[0].message;
    assert!(message.contains("POST /api/v1/namespaces/demo/configmaps"), "{message}");
}

/// Records writes at random intervals, independent of any call.
pub(crate) async fn writing_by_itself(recorder: Recorder, path: &'static str, seed: u64) {
    let mut state = seed;
    loop {
        // Knuth's linear congruential generator: 0 to 255 ms, so that most windows contain a write.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tokio::time::sleep(Duration::from_millis(state >> 56)).await;
        if recorder.request("POST", path, "") {
            recorder.answer(path, StatusCode::CREATED.as_u16());
        }
    }
}

#[tokio::test]
async fn v38_and_v39_do_not_attribute_background_writes_to_calls() {
    for (id, seed) in [("V38", 1), ("V39", 2), ("V38", 3)] {
        let (recorder, _) = recording().await;
        let settings = Settings { recorder: Some(recorder.clone()), ..Settings::default() };
        let own = tokio::spawn(writing_by_itself(recorder, "/api/v1/namespaces/demo/configmaps", seed));
        let check = verify_with(id, vec![TestedWebhook::validating("allow")], settings).await;
        own.abort();
        assert_eq!(verdict(&check).0, Tally::Passed, "{:?}", check.findings);
        let notes = &check.results[0].notes;
        assert!(notes.iter().any(|note| note.contains("or also happens without calls")), "{notes:?}");
    }
}

#[tokio::test]
async fn v38_finds_writes_on_dry_runs_in_addition_to_background_writes() {
    let (recorder, address) = recording().await;
    let settings = Settings { recorder: Some(recorder.clone()), ..Settings::default() };
    let own = tokio::spawn(writing_by_itself(recorder, "/api/v1/namespaces/demo/secrets", 1));
    let behavior = format!("when: {{if: {{dry-run: true}}, then: {}, otherwise: allow}}", writing(address));
    let check = verify_with("V38", vec![TestedWebhook::validating(&behavior)], settings).await;
    own.abort();
    finds(&check, &["writes on dry runs"]);
    let message = &check.findings[0].message;
    assert!(message.ends_with("first POST /api/v1/namespaces/demo/configmaps"), "{message}");
}

#[tokio::test]
async fn v38_passes_a_webhook_that_writes_only_in_real_runs() {
    let (recorder, address) = recording().await;
    let behavior = format!("when: {{if: {{dry-run: true}}, then: allow, otherwise: {}}}", writing(address));
    let settings = || Settings { recorder: Some(recorder.clone()), ..Settings::default() };
    let webhooks = || vec![TestedWebhook::validating(&behavior)];
    // Until its first write, the check cannot know whether the webhook uses this server.
    assert_eq!(verify_with("V38", webhooks(), settings()).await.results[0].verdict, Tally::Passed);
}

#[tokio::test]
async fn v38_finds_other_answers_on_dry_runs() {
    for (then, expected) in
        [("deny", "different verdict on dry runs"), ("always-mutate", "different result on dry runs")]
    {
        let behavior = format!("when: {{if: {{dry-run: true}}, then: {then}}}");
        finds(&verify("V38", vec![TestedWebhook::mutating(&behavior)]).await, &[expected]);
    }
}

#[tokio::test]
async fn v38_does_not_pass_without_an_api_server_to_watch() {
    let check = verify("V38", vec![TestedWebhook::mutating("allow")]).await;
    let (found, reasons) = verdict(&check);
    assert_eq!(found, Tally::NotChecked);
    assert!(reasons.keys().all(|reason| reason.contains("--api-server-out")), "{reasons:?}");

    let (recorder, _) = recording().await;
    let settings = Settings { recorder: Some(recorder), ..Settings::default() };
    let check = verify_with("V38", vec![TestedWebhook::mutating("allow")], settings).await;
    assert_eq!(verdict(&check).0, Tally::NotChecked);
}

/// Returns the result of a check that observes writes, for a mutating webhook with this behavior.
async fn watched(id: &str, behavior: impl FnOnce(SocketAddr) -> String) -> CheckReport {
    let (recorder, address) = recording().await;
    let settings = Settings { recorder: Some(recorder), ..Settings::default() };
    verify_with(id, vec![TestedWebhook::mutating(&behavior(address))], settings).await
}

/// Returns a behavior that sends a `SubjectAccessReview` to the server at `to`. The request does not store anything.
pub(crate) fn asking(to: SocketAddr) -> String {
    let url = format!("http://{to}/apis/authorization.k8s.io/v1/subjectaccessreviews");
    format!("{{side-effect: {{write: {{url: '{url}'}}}}}}")
}

#[tokio::test]
async fn v39_finds_a_webhook_that_writes_and_declares_none() {
    let check = watched("V39", writing).await;
    finds(&check, &["writes although sideEffects is None"]);
    let message = &check.findings[0].message;
    assert!(message.ends_with("first POST /api/v1/namespaces/demo/configmaps"), "{message}");
}

#[tokio::test]
async fn v39_passes_a_webhook_that_only_reads_and_skips_other_declarations() {
    passes(&watched("V39", asking).await);
    let honest = TestedWebhook::mutating("allow").with("sideEffects", json!("NoneOnDryRun"));
    assert_eq!(verdict(&verify("V39", vec![honest]).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v40_finds_a_webhook_that_creates_an_object_with_each_call() {
    finds(&watched("V40", writing).await, &["repeats a side effect when retried"]);
    // The retried body is the one that the webhook has not changed yet.
    let once_more = |address| {
        format!(
            "when: {{if: {{present: /metadata/annotations/seen}}, then: {}, otherwise: {{mutate: [{{set: {{/metadata/annotations/seen: 'yes'}}}}]}}}}",
            writing(address)
        )
    };
    finds(&watched("V40", once_more).await, &["repeats a side effect when reinvoked"]);
}

#[tokio::test]
async fn v40_does_not_attribute_background_creations_to_calls() {
    for seed in [1, 2, 3] {
        let (recorder, _) = recording().await;
        let settings = Settings { recorder: Some(recorder.clone()), ..Settings::default() };
        let own = tokio::spawn(writing_by_itself(recorder, "/api/v1/namespaces/demo/configmaps", seed));
        let check = verify_with("V40", vec![TestedWebhook::mutating("allow")], settings).await;
        own.abort();
        assert_eq!(verdict(&check).0, Tally::Passed, "{:?}", check.findings);
        let notes = &check.results[0].notes;
        assert!(notes.iter().any(|note| note.contains("or also happens without calls")), "{notes:?}");
    }
}

#[tokio::test]
async fn v40_finds_creations_of_calls_in_addition_to_background_creations() {
    let (recorder, address) = recording().await;
    let settings = Settings { recorder: Some(recorder.clone()), ..Settings::default() };
    let own = tokio::spawn(writing_by_itself(recorder, "/api/v1/namespaces/demo/secrets", 1));
    let check = verify_with("V40", vec![TestedWebhook::mutating(&writing(address))], settings).await;
    own.abort();
    finds(&check, &["repeats a side effect when retried"]);
    let message = &check.findings[0].message;
    assert!(message.ends_with("first POST /api/v1/namespaces/demo/configmaps"), "{message}");
}

#[tokio::test]
async fn v40_passes_a_webhook_that_creates_once() {
    let once = |address| format!("first: {{calls: 1, of: {}, then: allow}}", writing(address));
    passes(&watched("V40", once).await);
}

#[tokio::test]
async fn v39_and_v40_do_not_pass_without_an_api_server_or_calls() {
    for id in ["V39", "V40"] {
        let (found, reasons) = verdict(&verify(id, vec![TestedWebhook::mutating("allow")]).await);
        assert_eq!(found, Tally::NotChecked);
        assert!(reasons.keys().all(|reason| reason.contains("--api-server-out")), "{reasons:?}");
        assert_eq!(verdict(&watched(id, |_| "allow".to_owned()).await).0, Tally::NotChecked);
    }
}

#[tokio::test]
async fn v47_finds_servers_without_http_1_or_a_new_tls() {
    for (transport, words) in [
        (Transport { http: HttpVersions::Http2, ..Transport::default() }, "NoApplicationProtocol"),
        (Transport { connection: Connection::Tls11, ..Transport::default() }, "ProtocolVersion"),
        (Transport { connection: Connection::PlainHttp, ..Transport::default() }, ""),
    ] {
        let check = verify("V47", vec![TestedWebhook::validating("allow").over(transport)]).await;
        finds(&check, &["no common version"]);
        let message = &check.findings[0].message;
        assert!(message.contains(words), "{transport}: {message}");
        let certificate = verify("V45", vec![TestedWebhook::validating("allow").over(transport)]).await;
        assert_eq!(verdict(&certificate).0, Tally::NotChecked, "{transport}: no certificate");
    }
}

#[tokio::test]
async fn v47_passes_a_webhook_with_both_protocols_and_any_certificate() {
    let expired: Certificate = "expired".parse().expect("a defect");
    for http in [HttpVersions::Both, HttpVersions::Http1] {
        let transport = Transport { http, ..Transport::default() };
        let check = verify("V47", vec![TestedWebhook::validating("allow").over(transport)]).await;
        passes(&check);
        assert_eq!(check.results[0].notes, ["TLS 1.3"]);
    }
    passes(&verify("V47", vec![TestedWebhook::validating("allow").showing(expired)]).await);
}

#[tokio::test]
async fn v41_finds_a_webhook_that_needs_most_of_its_timeout() {
    let slow =
        TestedWebhook::validating("timeout: {hang: 800ms, then: allow}").with("timeoutSeconds", json!(1));
    let check = verify("V41", vec![slow]).await;
    finds(&check, &["slow"]);
    assert!(check.findings[0].message.starts_with("with a timeout of 1 s: p50 "));
}

#[tokio::test]
async fn v41_finds_a_webhook_that_never_answers() {
    let check =
        verify("V41", vec![TestedWebhook::validating("timeout").with("timeoutSeconds", json!(1))]).await;
    finds(&check, &["slow"]);
    let message = &check.findings[0].message;
    assert!(message.starts_with("with a timeout of 1 s: no response to any of "), "{message}");
    assert!(!check.results[0].notes.iter().any(|note| note.contains("first call")), "{check:#?}");
}

#[tokio::test(start_paused = true)]
async fn v41_finds_a_webhook_that_is_slow_at_first() {
    let clock = StoppedClock::new();
    let once = "first: {calls: 1, of: {timeout: {hang: 800ms, then: allow}}, then: allow}";
    let behavior = serde_saphyr::from_str(once).expect("a behavior");
    let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the fake starts");
    let mut entry = entry("w", &fake.url(), fake.ca_bundle());
    entry["timeoutSeconds"] = json!(1);
    let configurations = [configuration("ValidatingWebhookConfiguration", "c", &[entry])];
    let hanging = async {
        fake.wait_for_calls(1, Duration::from_secs(1)).await.expect("time stands still");
        clock.advance(Duration::from_millis(800)).await;
    };
    let (report, ()) = tokio::join!(run("V41", &configurations, pods(), Settings::default()), hanging);
    let check = only(report);
    finds(&check, &["slow at first"]);
    let message = &check.findings[0].message;
    assert!(message.starts_with("with a timeout of 1 s: first call of this run: "), "{message}");
}

#[tokio::test]
async fn v41_ignores_a_single_slow_period() {
    // The first call of the run and a hundred that are measured, the second half of which is slow; then no more.
    let slow = "{first: {calls: 50, of: {delay: {for: {fixed: 600ms}}}, then: allow}}";
    let behavior = format!("first: {{calls: 51, of: allow, then: {slow}}}");
    let tested = TestedWebhook::mutating(&behavior).with("timeoutSeconds", json!(1));
    let check = verify("V41", vec![tested]).await;
    passes(&check);
    assert!(check.results[0].notes[0].contains("p99"), "{check:#?}");
}

#[tokio::test]
async fn v41_passes_a_quick_webhook_and_reports_its_latency() {
    let check =
        verify("V41", vec![TestedWebhook::validating("allow").with("timeoutSeconds", json!(30))]).await;
    passes(&check);
    assert!(
        check.results[0].notes[0].contains("of 100 responses, 8 at a time"),
        "{:?}",
        check.results[0].notes
    );
    assert!(check.results[0].notes[1].ends_with("including connection and TLS handshake"));
}

#[tokio::test]
async fn v45_finds_a_certificate_that_the_api_server_rejects() {
    for (defect, words) in [
        ("expired", "has expired or is not yet valid"),
        ("wrong-name", "contain any IP SANs"),
        ("common-name-only", "contain any IP SANs"),
        ("unknown-issuer", "unknown authority"),
        ("no-server-auth", "incompatible key usage"),
    ] {
        let certificate: Certificate = defect.parse().expect("a defect");
        let check = verify("V45", vec![TestedWebhook::validating("allow").showing(certificate)]).await;
        finds(&check, &["rejected certificate"]);
        let message = &check.findings[0].message;
        assert!(message.contains(words), "{defect}: {message}");
    }
}

#[tokio::test]
async fn v45_finds_a_certificate_that_expires_soon() {
    let settings =
        Settings { horizon: Some(Duration::from_secs(20 * 365 * 24 * 3600)), ..Settings::default() };
    let check = verify_with("V45", vec![TestedWebhook::validating("allow")], settings).await;
    finds(&check, &["the certificate expires soon", "the authority expires soon"]);
}

#[tokio::test]
async fn v45_passes_a_valid_certificate_and_reports_the_days_left() {
    let settings = Settings { horizon: Some(Duration::from_secs(24 * 3600)), ..Settings::default() };
    let check = verify_with("V45", vec![TestedWebhook::validating("allow")], settings).await;
    passes(&check);
    assert!(check.results[0].notes.iter().all(|note| note.ends_with("left")), "{:?}", check.results[0].notes);
}

#[tokio::test]
async fn v45_does_not_pass_if_the_webhook_does_not_listen() {
    let nobody =
        TestedWebhook::validating("allow").with("clientConfig", json!({"url": "https://127.0.0.1:1/"}));
    assert_eq!(verdict(&verify("V45", vec![nobody]).await).0, Tally::NotChecked);
}
