//! Tests V02, V03, and V58: changes that other webhooks make between calls.

use harness::verify::Severity;
use harness::verify::report::Tally;
use serde_json::{Value, json};

use super::environment::{TestedWebhook, finds, kinds, passes, verdict, verify, verify_objects};

/// The behavior of a webhook that does not inject anything else once its volume exists.
const EARLY_RETURN: &str = "fault: M16";
/// The behavior of a webhook that replaces all containers except the first one with its own container.
const OWN_CONTAINERS: &str = "fault: M10-own";

#[tokio::test]
async fn v02_finds_an_early_return() {
    let check = verify("V02", vec![TestedWebhook::mutating(EARLY_RETURN)]).await;
    assert!(kinds(&check).contains(&"incomplete after another webhook adds a container"), "{check:#?}");
    let finding = &check.findings[0];
    // It is not reinvoked while its reinvocationPolicy is Never.
    assert_eq!(finding.severity, Severity::Note);
    assert!(
        finding.message.ends_with("reinvocationPolicy Never, it is not called again"),
        "{}",
        finding.message
    );
    let again = TestedWebhook::mutating(EARLY_RETURN).with("reinvocationPolicy", json!("IfNeeded"));
    assert_eq!(verify("V02", vec![again]).await.findings[0].severity, Severity::Error);
    let paths: Vec<&str> = finding.differences.iter().map(|difference| difference.path.as_str()).collect();
    assert!(paths.iter().any(|path| path.contains("[admit-foreign].volumeMounts")), "{paths:?}");
    // The reviews are in order: the webhook after the other one, then before it and again.
    let told: Vec<(&str, bool)> =
        finding.steps.iter().map(|step| (step.webhook.as_str(), step.is_other)).collect();
    let (own, other) = (("a/a.example.com", false), ("foreign/add-container", true));
    assert_eq!(told, [other, own, own, other, own]);
}

#[tokio::test]
async fn v02_finds_a_denial_on_reinvocation() {
    let check = verify("V02", vec![TestedWebhook::mutating("fault: M06")]).await;
    assert!(kinds(&check)[0].starts_with("denies on reinvocation"), "{check:#?}");
}

#[tokio::test]
async fn v02_skips_webhooks_that_fail_v01() {
    let (tally, reasons) = verdict(&verify("V02", vec![TestedWebhook::mutating("non-idempotent")]).await);
    assert_eq!(tally, Tally::NotChecked);
    assert!(reasons.keys().all(|reason| reason.ends_with("see V01")), "{reasons:?}");
}

#[tokio::test]
async fn v02_passes_a_webhook_that_checks_each_container() {
    for behavior in ["container-env", "sidecar", "always-mutate"] {
        passes(&verify("V02", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v03_finds_a_webhook_that_replaces_the_list() {
    let check = verify("V03", vec![TestedWebhook::mutating(OWN_CONTAINERS)]).await;
    finds(&check, &["removes what another webhook added, which adds a container"]);
}

#[tokio::test]
async fn v03_finds_a_webhook_that_sets_the_whole_map() {
    let patch = "patch: {operations: [{op: add, path: /metadata/labels, value: {only: mine}}]}";
    let check = verify("V03", vec![TestedWebhook::mutating(patch)]).await;
    finds(&check, &["removes what another webhook added, which adds a label"]);
    let finding = &check.findings[0];
    assert!(finding.message.ends_with("the webhook removes the addition"), "{}", finding.message);
    assert_eq!(finding.differences[0].path, "metadata.labels.admit.dev/foreign");
    assert_eq!(
        (&finding.differences[0].expected, &finding.differences[0].found),
        (&Some(json!("yes")), &None)
    );
}

#[tokio::test]
async fn v03_notes_changes_that_also_affect_the_users_containers() {
    let image = |place: usize| json!({"op": "replace", "path": format!("/spec/containers/{place}/image"), "value": "mirror/app"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let mirrors = |own: Value| {
        json!({"when": {
            "if": {"container": "admit-foreign"},
            "then": {"patch": {"operations": [image(0), image(1)]}},
            "otherwise": own,
        }})
    };
    let all = mirrors(json!({"patch": {"operations": [image(0)]}})).to_string();
    let check = verify_objects("V03", vec![TestedWebhook::mutating(&all)], vec![pod.clone()], &[]).await;
    finds(&check, &["changes what another webhook added, which adds a container"]);
    assert_eq!(check.findings[0].severity, Severity::Note);
    // A webhook that keeps the user's containers must also keep those of others.
    let others = mirrors(json!("allow")).to_string();
    let check = verify_objects("V03", vec![TestedWebhook::mutating(&others)], vec![pod], &[]).await;
    finds(&check, &["removes what another webhook added, which adds a container"]);
    assert_eq!(check.findings[0].severity, Severity::Error);
}

#[tokio::test]
async fn v03_passes_a_webhook_that_only_adds() {
    for behavior in ["sidecar", "container-env", "always-mutate"] {
        passes(&verify("V03", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn neither_is_about_a_webhook_that_denies() {
    for id in ["V02", "V03"] {
        let check = verify(id, vec![TestedWebhook::mutating("deny")]).await;
        assert_eq!(verdict(&check).0, Tally::NotApplicable, "{id}");
    }
}

#[tokio::test]
async fn v58_finds_injectors_that_never_see_a_pod_again() {
    let check = verify("V58", vec![TestedWebhook::mutating("container-env")]).await;
    finds(&check, &["injects without reinvocation"]);
    assert_eq!(check.findings[0].severity, Severity::Warning);
}

#[tokio::test]
async fn v58_only_notes_a_sidecar_to_which_other_containers_do_not_matter() {
    let check = verify("V58", vec![TestedWebhook::mutating("sidecar")]).await;
    finds(&check, &["injects regardless of other webhooks, without reinvocation"]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v58_passes_reinvocation_and_webhooks_that_only_set_labels() {
    passes(
        &verify(
            "V58",
            vec![TestedWebhook::mutating("sidecar").with("reinvocationPolicy", json!("IfNeeded"))],
        )
        .await,
    );
    let labels = "mutate: [{set: {/metadata/labels/team: a}}]";
    let check = verify("V58", vec![TestedWebhook::mutating(labels)]).await;
    assert_eq!(verdict(&check).0, Tally::NotApplicable);
}
