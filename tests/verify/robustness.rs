//! Tests V37, V42, and V44: invalid requests, disconnecting clients, and high load.

use std::sync::Arc;

use fake_webhooks::{Fake, FakeWebhook};
use harness::config::Webhook;
use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Recorder, Settings, Severity};
use serde_json::{Value, json};

use super::cluster_fixture::{asking, recording, writing_by_itself};
use super::environment::{
    TestedWebhook, configuration, entry, finds, kinds, only, passes, pods, run, verdict, verify, verify_with,
};

/// Returns the result of a check for a mutating webhook with a timeout of one second.
async fn hasty(id: &str, behavior: &str, settings: Settings) -> CheckReport {
    let tested = TestedWebhook::mutating(behavior).with("timeoutSeconds", json!(1));
    verify_with(id, vec![tested], settings).await
}

/// Returns a behavior that allows reviews, and applies `otherwise` to other requests.
fn unless_review(otherwise: &str) -> String {
    format!("when: {{if: {{in-review: /request/uid}}, then: allow, otherwise: {otherwise}}}")
}

const UNREADABLE: [&str; 4] =
    ["text that is not JSON", "an empty body", "a truncated review", "an object of another kind"];

/// The kind of the finding about the responses to malformed inputs.
const MALFORMED: &str = "accepts or fails on malformed input";

/// Asserts that the check has a single finding, and that it lists all unreadable inputs and `more`.
#[track_caller]
fn finds_all(check: &CheckReport, text: &str, more: &[&str]) {
    finds(check, &[MALFORMED]);
    let finding = &check.findings[0];
    let all: Vec<&str> =
        UNREADABLE.iter().chain(["a review without a request"].iter()).chain(more).copied().collect();
    let expected = format!("on malformed input ({}), the webhook {text}", all.join(", "));
    assert!(finding.message.starts_with(&expected), "{}", finding.message);
    assert_eq!(finding.steps.len(), all.len(), "{finding:#?}");
}

#[tokio::test]
async fn v37_finds_a_webhook_that_panics_on_malformed_reviews() {
    let check = verify("V37", vec![TestedWebhook::mutating(&unless_review("{bad-response: closed}"))]).await;
    finds_all(&check, "closes the connection", &["a GET"]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v37_shows_each_request_as_it_was_sent() {
    let check = verify("V37", vec![TestedWebhook::mutating(&unless_review("{bad-response: closed}"))]).await;
    let finding = &check.findings[0];
    let sent = |position: usize| {
        let step = &finding.steps[position];
        assert_eq!((finding.steps.len(), step.webhook.as_str()), (6, "a/a.example.com"));
        let direct = step.direct.as_ref().expect("no API server sends it");
        (direct.method.clone(), direct.content_type.clone(), step.review.clone())
    };
    let json = |text: Value| ("POST".to_owned(), "application/json".to_owned(), text);
    assert_eq!(sent(0), json("this is no JSON".into()));
    assert_eq!(sent(1), json("".into()));
    assert_eq!(sent(3).2["kind"], "ConfigMap");
    assert_eq!(sent(5), ("GET".to_owned(), String::new(), "".into()));
}

#[tokio::test]
async fn same_problem_of_all_webhooks_of_a_server_is_one_finding() {
    let start = async || {
        let behavior = serde_saphyr::from_str(&unless_review("{bad-response: closed}")).expect("a behavior");
        FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the fake starts")
    };
    let (fake, other) = (start().await, start().await);
    let served_by = |fake: &FakeWebhook, prefix: &str, count: u32| -> Vec<Value> {
        let entry = |number| {
            entry(&format!("{prefix}{number}"), &format!("{}{number}", fake.url()), fake.ca_bundle())
        };
        (0..count).map(entry).collect()
    };
    let configurations = [
        configuration("MutatingWebhookConfiguration", "c", &served_by(&fake, "m", 11)),
        configuration("ValidatingWebhookConfiguration", "d", &served_by(&fake, "v", 1)),
        configuration("ValidatingWebhookConfiguration", "e", &served_by(&other, "o", 1)),
    ];
    let check = only(run("V37", &configurations, pods(), Settings::default()).await);
    assert_eq!(check.findings.len(), 2, "{check:#?}");
    for finding in &check.findings {
        let is_other = finding.webhooks.contains_key("e/o0.example.com");
        assert_eq!(finding.webhooks.len(), if is_other { 1 } else { 12 }, "{finding:#?}");
    }
}

#[tokio::test]
async fn v37_finds_a_webhook_that_hangs_on_malformed_reviews() {
    let envelope =
        "{all: [{in-review: /apiVersion}, {not: {in-review: /request}}, {not: {in-review: /data}}]}";
    let check = hasty("V37", &format!("when: {{if: {envelope}, then: timeout}}"), Settings::default()).await;
    finds(&check, &[MALFORMED]);
    assert_eq!(check.findings[0].severity, Severity::Warning);
    let message = &check.findings[0].message;
    assert!(
        message.starts_with("on malformed input (a review without a request), the webhook does not respond"),
        "{message}"
    );
}

#[tokio::test]
async fn v37_finds_a_webhook_that_allows_malformed_reviews() {
    let check = verify(
        "V37",
        vec![TestedWebhook::mutating(&unless_review("{raw: {json: {response: {allowed: true}}}}"))],
    );
    let check = check.await;
    finds_all(&check, "allows what it cannot have understood", &[]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v37_notes_a_fault_of_its_own() {
    for otherwise in ["{bad-response: {status: 500}}", "{raw: {text: ok}}"] {
        let check = verify("V37", vec![TestedWebhook::mutating(&unless_review(otherwise))]).await;
        finds(&check, &[MALFORMED]);
        let message = &check.findings[0].message;
        assert!(message.starts_with("on malformed input (text that is not JSON, an empty body"), "{message}");
        assert!(check.findings.iter().all(|finding| finding.severity == Severity::Note));
    }
}

#[tokio::test]
async fn v37_finds_a_webhook_that_behaves_differently_after_malformed_reviews() {
    // Two calls precede the first invalid request, which is the third.
    for (then, kind) in
        [("{bad-response: closed}", "stops responding after"), ("deny", "responds differently after")]
    {
        let behavior = format!("first: {{calls: 3, of: allow, then: {then}}}");
        let check = verify("V37", vec![TestedWebhook::mutating(&behavior)]).await;
        let kind = format!("{kind} text that is not JSON");
        assert!(kinds(&check).iter().any(|found| *found == kind), "{check:#?}");
    }
}

#[tokio::test]
async fn v37_passes_a_4xx_and_a_review_that_denies() {
    let review =
        "{raw: {json: {kind: AdmissionReview, response: {uid: '', allowed: false, status: {code: 400}}}}}";
    for behavior in ["allow", "deny", "sidecar", "non-idempotent", &unless_review(review)] {
        passes(&verify("V37", vec![TestedWebhook::mutating(behavior)]).await);
    }
    let nobody = TestedWebhook::mutating("bad-response: closed");
    assert_eq!(verdict(&verify("V37", vec![nobody]).await).0, Tally::NotChecked);
}

#[tokio::test]
async fn v42_finds_work_for_disconnected_callers() {
    let check = verify("V42", vec![TestedWebhook::mutating("queue: {hold: 120ms}")]).await;
    finds(&check, &["keeps working after the caller disconnected"]);
}

#[tokio::test]
async fn v42_ignores_a_single_slow_response() {
    // One call shows the review, three measure the latency, sixteen are answered, and sixteen are abandoned: the
    // calls after that are slow once.
    let slow_once =
        "{first: {calls: 1, of: {delay: {for: {fixed: 900ms}}}, then: {delay: {for: {fixed: 150ms}}}}}";
    let behavior =
        format!("first: {{calls: 36, of: {{delay: {{for: {{fixed: 150ms}}}}}}, then: {slow_once}}}");
    let check = verify("V42", vec![TestedWebhook::mutating(&behavior)]).await;
    assert_eq!(check.findings, [], "{check:#?}");
}

#[tokio::test]
async fn v42_finds_a_webhook_that_ignores_the_timeout_parameter() {
    let check = verify("V42", vec![TestedWebhook::mutating("delay: {for: {fixed: 1300ms}}")]).await;
    finds(&check, &["ignores ?timeout="]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v42_finds_writes_after_the_caller_disconnected() {
    let (recorder, address) = recording().await;
    let settings = Settings { recorder: Some(recorder), ..Settings::default() };
    let write = format!("{{url: 'http://{address}/api/v1/namespaces/demo/configmaps', after: 600ms}}");
    let behavior = format!("delay: {{for: {{fixed: 800ms}}, then: {{side-effect: {{write: {write}}}}}}}");
    let check = verify_with("V42", vec![TestedWebhook::mutating(&behavior)], settings).await;
    finds(&check, &["writes after the caller disconnected"]);
    let message = &check.findings[0].message;
    assert!(message.ends_with("still wrote: POST /api/v1/namespaces/demo/configmaps"), "{message}");
}

#[tokio::test]
async fn v42_does_not_attribute_background_writes_to_disconnected_callers() {
    for seed in [1, 2, 3] {
        let (recorder, address) = recording().await;
        let settings = Settings { recorder: Some(recorder.clone()), ..Settings::default() };
        let own = tokio::spawn(writing_by_itself(recorder, "/api/v1/namespaces/demo/configmaps", seed));
        let behavior = format!("delay: {{for: {{fixed: 300ms}}, then: {}}}", asking(address));
        let check = verify_with("V42", vec![TestedWebhook::mutating(&behavior)], settings).await;
        own.abort();
        passes(&check);
    }
}

#[tokio::test]
async fn v42_passes_a_slow_webhook_that_stops_and_writes_nothing() {
    let (recorder, address) = recording().await;
    let settings = |recorder: Option<Recorder>| Settings { recorder, ..Settings::default() };
    let behavior = format!("delay: {{for: {{fixed: 300ms}}, then: {}}}", asking(address));
    let tested = || vec![TestedWebhook::mutating(&behavior)];
    passes(&verify_with("V42", tested(), settings(Some(recorder))).await);
    // Without an observer, half of the result is unknown.
    let check = verify_with("V42", tested(), settings(None)).await;
    let (found, reasons) = verdict(&check);
    assert_eq!((found, check.results[0].unequipped), (Tally::NotChecked, true));
    assert!(reasons.keys().all(|reason| reason.contains("--api-server-out")), "{reasons:?}");
}

#[tokio::test]
async fn v42_is_not_checked_for_a_quick_webhook() {
    let check = verify("V42", vec![TestedWebhook::mutating("allow")]).await;
    let (found, reasons) = verdict(&check);
    assert_eq!((found, check.results[0].unequipped), (Tally::NotChecked, true));
    assert!(
        reasons
            .keys()
            .all(|reason| reason.starts_with("the webhook responds before a caller can disconnect")),
        "{reasons:?}"
    );
}

fn overload(calls: usize) -> Settings {
    Settings { overload: calls, ..Settings::default() }
}

/// Returns a webhook that serves as the control of a measurement, and its configuration.
async fn control(behavior: &str) -> (FakeWebhook, Arc<Webhook>) {
    let behavior = serde_saphyr::from_str(behavior).expect("a behavior");
    let fake = FakeWebhook::start(Fake { behavior, ..Fake::default() }).await.expect("the fake starts");
    let entry = entry("control", &fake.url(), fake.ca_bundle());
    let webhook =
        harness::config::webhooks(&configuration("ValidatingWebhookConfiguration", "control", &[entry]))
            .expect("a configuration")
            .remove(0);
    (fake, Arc::new(webhook))
}

#[tokio::test]
async fn v44_finds_a_webhook_that_queues_too_many_calls() {
    // Sequentially they take longer than the timeout of one second.
    let check = hasty("V44", "queue: {hold: 100ms}", overload(16)).await;
    finds(&check, &["hangs under load"]);
    let (_fake, quick) = control("allow").await;
    let settings = Settings { control: Some(quick), ..overload(16) };
    finds(&hasty("V44", "queue: {hold: 100ms}", settings).await, &["hangs under load"]);
}

#[tokio::test]
async fn v44_ignores_delays_that_the_control_has_too() {
    let slow = "queue: {hold: 100ms}";
    let (_fake, as_slow) = control(slow).await;
    let settings = Settings { control: Some(as_slow), ..overload(16) };
    let check = hasty("V44", slow, settings).await;
    assert_eq!(check.findings, [], "{check:#?}");
    let (tally, reasons) = verdict(&check);
    assert_eq!(tally, Tally::NotChecked);
    assert!(reasons.keys().all(|reason| reason.contains("this machine is too busy")), "{reasons:?}");
}

#[tokio::test]
async fn v44_finds_a_webhook_that_does_not_recover() {
    // One call before, ten that are measured, and the parallel calls.
    let behavior = "first: {calls: 19, of: allow, then: {bad-response: {status: 503}}}";
    let check = hasty("V44", behavior, overload(8)).await;
    finds(&check, &["does not recover"]);
    let finding = &check.findings[0];
    assert_eq!(finding.severity, Severity::Error);
    assert!(finding.message.contains("HTTP status 503"), "{}", finding.message);
}

#[tokio::test]
async fn v44_passes_a_webhook_that_answers_or_sheds_load() {
    let check = verify_with("V44", vec![TestedWebhook::mutating("allow")], overload(32)).await;
    passes(&check);
    assert!(check.results[0].notes[0].starts_with("of 32 concurrent calls, 32 were answered"), "{check:#?}");

    let shedding = "first: {calls: 11, of: allow, then: {cycle: [{bad-response: {status: 429}}, allow]}}";
    let check = verify_with("V44", vec![TestedWebhook::mutating(shedding)], overload(32)).await;
    passes(&check);
    assert!(check.results[0].notes[0].ends_with("16 failed, most with: HTTP status 429"), "{check:#?}");

    let nobody = TestedWebhook::mutating("bad-response: closed");
    assert_eq!(verdict(&verify("V44", vec![nobody]).await).0, Tally::NotChecked);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_with_large_responses_wait_for_each_other_and_none_is_left_out() {
    // 14 MB in Base64: more than the share of an object, so that each waits for the earlier ones.
    let patch = "patch: {operations: [{op: add, path: /metadata/labels, value: {a: b}}], padding: 10485760}";
    let tested = TestedWebhook::mutating(patch).with("timeoutSeconds", json!(30));
    let check = verify_with("V01", vec![tested], Settings::default()).await;
    passes(&check);
    assert_eq!(check.results[0].held, pods().len() as u64);
}

#[tokio::test]
async fn v12_explains_a_burst_that_times_out_and_waits_for_the_webhook() {
    // One after the other, 64 calls take longer than the timeout of one second.
    let fake = Fake {
        behavior: serde_saphyr::from_str("queue: {hold: 30ms}").expect("a behavior"),
        ..Fake::default()
    };
    let fake = FakeWebhook::start(fake).await.expect("the fake starts");
    let mut entry = entry("a", &fake.url(), fake.ca_bundle());
    entry["timeoutSeconds"] = json!(1);
    let configurations = [configuration("MutatingWebhookConfiguration", "a", &[entry])];
    let checks = ["V12", "V23"].map(|id| harness::verify::checks::find(id).expect("a check"));
    let report = super::environment::run_checks(
        &checks,
        &configurations,
        super::environment::pods(),
        Settings::default(),
        &[],
    )
    .await;
    let [burst, later] = report.checks.as_slice() else { panic!("two checks") };
    finds(burst, &["fails under concurrency"]);
    let message = &burst.findings[0].message;
    assert!(message.starts_with("of 64 concurrent requests, "), "{message}");
    assert!(
        message.contains(" timed out after 1 s, although the webhook answers each of them alone; "),
        "{message}"
    );
    assert!(message.contains("it answered a single request again "), "{message}");
    let help = burst.findings[0].help.as_deref().unwrap_or_default();
    assert!(help.contains("listen backlog"), "{help}");
    // The timeouts do not keep later checks from calling the webhook.
    assert_eq!(verdict(later).1, std::collections::BTreeMap::new(), "{later:#?}");
}

#[tokio::test]
async fn v12_repeats_a_burst_that_paused_until_it_fails() {
    // 64 single calls, a burst in which the last call waits, and a second burst, which fails.
    let behavior = "first: {calls: 127, of: allow, then: {first: {calls: 1, of: {delay: {for: {fixed: 5s}}}, \
                    then: {bad-response: {status: 500}}}}}";
    let check =
        verify("V12", vec![TestedWebhook::mutating(behavior).with("timeoutSeconds", json!(30))]).await;
    finds(&check, &["fails under concurrency"]);
    let message = &check.findings[0].message;
    assert!(message.starts_with("in 1 of 2 bursts, of 64 concurrent requests, 64 failed ("), "{message}");
}
