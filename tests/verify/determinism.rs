//! Tests V11: the same request has the same response.

use harness::verify::Severity;

use super::environment::{TestedWebhook, finds, kinds, passes, pods, verify, verify_objects};

#[tokio::test]
async fn v11_finds_random_names() {
    let check = verify("V11", vec![TestedWebhook::mutating("fault: M05-random-name")]).await;
    finds(&check, &["not deterministic"]);
}

#[tokio::test]
async fn v11_finds_a_webhook_that_changes_its_mind() {
    for tested in [TestedWebhook::mutating, TestedWebhook::validating] {
        let check = verify("V11", vec![tested("sequence: [allow, deny]")]).await;
        finds(&check, &["verdict varies"]);
    }
}

#[tokio::test]
async fn v11_finds_a_webhook_that_fails_now_and_then() {
    let check =
        verify("V11", vec![TestedWebhook::validating("cycle: [allow, {bad-response: {status: 503}}]")]).await;
    assert!(kinds(&check).contains(&"fails intermittently"), "{check:#?}");
}

#[tokio::test]
async fn v11_repeats_calls_until_a_random_result_would_differ() {
    // The responses to the first call and to thirteen more are equal.
    let late = TestedWebhook::mutating("first: {calls: 14, of: allow, then: deny}");
    let check = verify_objects("V11", vec![late], vec![pods().swap_remove(0)], &[]).await;
    finds(&check, &["verdict varies"]);
}

#[tokio::test]
async fn v11_only_notes_another_order_of_operations() {
    let check = verify("V11", vec![TestedWebhook::mutating("fault: M19")]).await;
    finds(&check, &["patch varies"]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v11_passes_a_deterministic_webhook() {
    for behavior in ["always-mutate", "sidecar", "deny"] {
        passes(&verify("V11", vec![TestedWebhook::mutating(behavior)]).await);
    }
    passes(&verify("V11", vec![TestedWebhook::validating("deny")]).await);
}
