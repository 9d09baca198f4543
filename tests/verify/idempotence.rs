//! Tests V01: a webhook does not change its own result.

use harness::verify::report::Tally;
use serde_json::json;

use super::environment::{TestedWebhook, finds, passes, verdict, verify};

const DENIES_ITS_OWN_WORK: &str = "
when:
  if: {present: /metadata/labels/always-mutate}
  then: {deny: {message: somebody was here}}
  otherwise: always-mutate";

#[tokio::test]
async fn v01_finds_items_that_every_call_appends() {
    let check = verify("V01", vec![TestedWebhook::mutating("non-idempotent")]).await;
    finds(&check, &["not idempotent"]);
    let finding = &check.findings[0];
    assert_eq!(finding.count(), 3);
    assert_eq!(finding.differences[0].path, "metadata.annotations.non-idempotent");
    assert_eq!(
        (&finding.differences[0].expected, &finding.differences[0].found),
        (&Some(json!("x")), &Some(json!("xx")))
    );
    // The smallest object contains only what the finding needs.
    let smallest = finding.object.as_ref().unwrap();
    assert_eq!(smallest["metadata"], json!({"name": "bare"}));
    // Both reviews are included, and the second contains the result of the first call.
    assert_eq!(finding.steps.len(), 2);
    assert_eq!(
        finding.steps[1].review["request"]["object"]["metadata"]["annotations"]["non-idempotent"],
        "x"
    );
}

#[tokio::test]
async fn v01_finds_a_webhook_that_denies_its_own_result() {
    let check = verify("V01", vec![TestedWebhook::mutating(DENIES_ITS_OWN_WORK)]).await;
    finds(&check, &["denies its own result"]);
    assert!(check.findings[0].message.contains("somebody was here"));
}

#[tokio::test]
async fn v01_passes_a_webhook_that_checks_before_it_adds() {
    for behavior in ["always-mutate", "sidecar", "container-env"] {
        passes(&verify("V01", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v01_is_not_passed_by_a_webhook_that_does_not_answer() {
    let check = verify("V01", vec![TestedWebhook::mutating("bad-response: not-json")]).await;
    let (verdict, reasons) = verdict(&check);
    assert_eq!(verdict, Tally::NotChecked);
    assert!(reasons.keys().all(|reason| reason.contains("failed to call webhook")), "{reasons:?}");
}

#[tokio::test]
async fn v01_skips_objects_that_rules_do_not_match() {
    let rules =
        json!([{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    let check = verify("V01", vec![TestedWebhook::mutating("allow").with("rules", rules)]).await;
    assert_eq!(verdict(&check).0, Tally::NotApplicable);
}
