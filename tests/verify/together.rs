//! Tests V05, V06, V07, and V10: several webhooks together, and other owners of fields in an object.

use harness::verify::report::Tally;

use serde_json::json;

use super::environment::{TestedWebhook, finds, kinds, passes, verdict, verify, verify_objects};

/// Returns webhooks that set the same label to different values.
fn duel() -> Vec<TestedWebhook> {
    vec![TestedWebhook::mutating("fault: M07-true"), TestedWebhook::mutating("fault: M07-false")]
}

fn peace() -> Vec<TestedWebhook> {
    vec![
        TestedWebhook::mutating("always-mutate"),
        TestedWebhook::mutating("sidecar"),
        TestedWebhook::mutating("container-env"),
    ]
}

/// Returns two webhooks. The second one mutates only objects that the first one has labeled.
fn follower() -> Vec<TestedWebhook> {
    vec![TestedWebhook::mutating("always-mutate"), TestedWebhook::mutating("fault: M08")]
}

#[tokio::test]
async fn v05_finds_a_webhook_that_would_still_change_the_result() {
    let check = verify("V05", duel()).await;
    finds(&check, &["a/a.example.com changes the result of all webhooks"]);
    assert_eq!(check.results[0].webhook, "all webhooks together");
}

#[tokio::test]
async fn v05_finds_a_container_that_came_too_late() {
    // Without reinvocation no webhook handles the container that the last one adds.
    let check =
        verify("V05", vec![TestedWebhook::mutating("container-env"), TestedWebhook::mutating("sidecar")])
            .await;
    finds(&check, &["a/a.example.com changes the result of all webhooks"]);
    let reinvoked =
        TestedWebhook::mutating("container-env").with("reinvocationPolicy", serde_json::json!("IfNeeded"));
    passes(&verify("V05", vec![reinvoked, TestedWebhook::mutating("sidecar")]).await);
}

#[tokio::test]
async fn v05_finds_a_result_that_the_api_server_rejects_only_with_all_webhooks() {
    let same = |label: &str| {
        let operations = json!([
            {"op": "add", "path": format!("/metadata/annotations/{label}"), "value": "yes"},
            {"op": "add", "path": "/spec/volumes/-", "value": {"name": "shared", "emptyDir": {}}},
        ]);
        let is_new = json!({"absent": format!("/metadata/annotations/{label}")});
        let behavior = json!({"when": {"if": is_new, "then": {"patch": {"operations": operations}}}});
        TestedWebhook::mutating(&behavior.to_string())
    };
    let check = verify("V05", vec![same("a"), same("b")]).await;
    finds(&check, &["the API server rejects the result of all webhooks"]);
    assert!(
        check.findings[0].message.contains("Duplicate value: \"shared\""),
        "{}",
        check.findings[0].message
    );
}

#[tokio::test]
async fn v06_names_the_pair_whose_order_matters() {
    let check = verify("V06", duel()).await;
    finds(&check, &["the order of a/a.example.com, b/b.example.com matters"]);
    let finding = &check.findings[0];
    assert_eq!(finding.differences[0].path, "metadata.labels.duel");

    let mut three = follower();
    three.push(TestedWebhook::mutating("allow"));
    finds(&verify("V06", three).await, &["the order of a/a.example.com, b/b.example.com matters"]);
}

#[tokio::test]
async fn v06_passes_webhooks_that_append_to_the_same_list() {
    let other = TestedWebhook::mutating("sidecar: {name: other}");
    passes(
        &verify(
            "V06",
            vec![TestedWebhook::mutating("always-mutate"), TestedWebhook::mutating("sidecar"), other],
        )
        .await,
    );
}

#[tokio::test]
async fn v07_finds_a_duel() {
    let check = verify("V07", duel()).await;
    let kind = "a/a.example.com, b/b.example.com still change the object after two rounds";
    finds(&check, &[kind]);
}

#[tokio::test]
async fn v07_passes_webhooks_that_converge_in_the_second_round() {
    passes(&verify("V07", peace()).await);
    passes(&verify("V07", follower()).await);
}

#[tokio::test]
async fn all_three_are_about_several_webhooks() {
    for id in ["V05", "V06", "V07"] {
        let check = verify(id, vec![TestedWebhook::mutating("always-mutate")]).await;
        let (verdict, reasons) = verdict(&check);
        assert_eq!(verdict, Tally::NotApplicable);
        assert!(reasons.contains_key("there is only one mutating webhook"), "{reasons:?}");
    }
}

#[tokio::test]
async fn v10_finds_a_webhook_that_reverts_writes_of_the_owner() {
    let check =
        verify("V10", vec![TestedWebhook::mutating("mutate: [{set: {/metadata/labels/app: other}}]")]).await;
    finds(&check, &["undoes what the owner writes"]);
    assert_eq!(check.findings[0].count(), 1);
    assert_eq!(check.findings[0].differences[0].path, "metadata.labels.app");
}

#[tokio::test]
async fn v10_finds_items_that_every_update_adds() {
    let check = verify("V10", vec![TestedWebhook::mutating("non-idempotent")]).await;
    finds(&check, &["changes the object on every update"]);
}

#[tokio::test]
async fn v10_finds_an_update_that_the_api_server_rejects_only_with_all_webhooks() {
    let limiting = |path: &str, value: serde_json::Value| {
        let operations = json!([{"op": "add", "path": path, "value": value}]);
        let behavior = json!({"when": {"if": {"operations": ["UPDATE"]}, "then": {"patch": {"operations": operations}}}});
        let rule = json!({"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["limitranges"]});
        TestedWebhook::mutating(&behavior.to_string()).with("rules", json!([rule]))
    };
    let max = |cpu: &str| limiting("/spec/limits/0/max/cpu", json!(cpu));
    let min = |cpu: &str| limiting("/spec/limits/0/min", json!({"cpu": cpu}));
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Pod", "max": {"memory": "1Gi"}}]}});
    let check = verify_objects("V10", vec![max("1"), min("2")], vec![range.clone()], &[]).await;
    finds(&check, &["the API server rejects an update by the owner"]);
    // The owner's list has no keys, so that each of its writes removes the limits.
    let check = verify_objects("V10", vec![max("2"), min("1")], vec![range], &[]).await;
    finds(&check, &["undoes what the owner writes"]);
}

#[tokio::test]
async fn v10_leaves_changes_of_one_webhook_that_the_api_server_rejects_to_v09() {
    let behavior = "when: {if: {operations: [UPDATE]}, then: {mutate: [{set: {/spec/hostname: x}}]}}";
    let check = verify("V10", vec![TestedWebhook::mutating(behavior)]).await;
    let (verdict, reasons) = verdict(&check);
    assert_eq!(verdict, Tally::NotChecked, "{check:#?}");
    assert!(reasons.keys().all(|reason| reason.contains("see V09")), "{reasons:?}");
}

#[tokio::test]
async fn v10_passes_webhooks_that_let_the_owner_have_its_way() {
    passes(&verify("V10", peace()).await);
    let check = verify("V10", vec![TestedWebhook::mutating("non-idempotent").on(&["CREATE"])]).await;
    assert_eq!((verdict(&check).0, kinds(&check)), (Tally::NotApplicable, Vec::new()));
}

#[tokio::test]
async fn validating_webhook_receives_the_mutated_object() {
    let mutating = TestedWebhook::mutating("mutate: [{set: {/spec/hostname: x}}]");
    let strict =
        "when: {if: {absent: /spec/hostname}, then: {deny: {message: no hostname}}, otherwise: allow}";
    let check = verify("V14", vec![mutating, TestedWebhook::validating(strict)]).await;
    assert_eq!(check.results.len(), 2);
    for result in &check.results {
        assert_eq!(result.verdict, Tally::Passed, "{result:#?}");
        assert!(result.not_applicable.is_empty(), "{result:#?}");
    }
}
