//! Tests V04, V08, V09, and V13: objects that are restored, have additional fields, or come from another user.

use harness::verify::Severity;
use harness::verify::report::Tally;
use serde_json::{Value, json};

use super::environment::{TestedWebhook, finds, kinds, passes, verdict, verify, verify_objects};

#[tokio::test]
async fn v04_finds_a_webhook_that_denies_scheduled_pods() {
    let check = verify(
        "V04",
        vec![TestedWebhook::mutating(
            "when: {if: {present: /spec/nodeName}, then: {deny: {message: only the scheduler binds}}}",
        )],
    )
    .await;
    finds(&check, &["denies a restored object"]);
    assert!(check.findings[0].message.contains("only the scheduler binds"));
}

#[tokio::test]
async fn v04_finds_changes_that_the_api_server_rejects() {
    let behavior =
        "when: {if: {present: /spec/nodeName}, then: {mutate: [{set: {/spec/restartPolicy: Sometimes}}]}}";
    let check = verify("V04", vec![TestedWebhook::mutating(behavior)]).await;
    finds(&check, &["the API server rejects a restored object"]);
    assert!(check.findings[0].message.contains("spec.restartPolicy"), "{}", check.findings[0].message);
}

#[tokio::test]
async fn v04_finds_a_webhook_that_takes_the_servers_work_for_the_users() {
    let check = verify(
        "V04",
        vec![TestedWebhook::mutating(
            "when: {if: {present: /spec/nodeName}, then: {mutate: [{remove: [/spec/nodeName]}]}}",
        )],
    )
    .await;
    finds(&check, &["changes a restored object"]);
    assert_eq!(check.findings[0].differences[0].path, "spec.nodeName");
}

#[tokio::test]
async fn v04_passes_changes_of_the_servers_own_plugins() {
    // The service account token in a container that the webhook replaces in each call.
    let writes = |op: &str, path: &str| {
        let container = json!({"name": "proxy", "image": "proxy", "imagePullPolicy": "Always"});
        json!({"patch": {"operations": [{"op": op, "path": path, "value": container}]}})
    };
    let behavior = json!({"when": {
        "if": {"container": "proxy"},
        "then": writes("replace", "/spec/containers/1"),
        "otherwise": writes("add", "/spec/containers/-"),
    }});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "app", "image": "app"}]}});
    passes(
        &verify_objects("V04", vec![TestedWebhook::mutating(&behavior.to_string())], vec![pod], &[]).await,
    );
}

#[tokio::test]
async fn v04_passes_a_webhook_that_recognizes_its_own_result() {
    // Every Pod has a service account when a webhook sees it, not only a restored one.
    let by_account = "when: {if: {present: /spec/serviceAccountName}, then: container-env, otherwise: allow}";
    for behavior in ["always-mutate", "sidecar", "container-env", by_account] {
        passes(&verify("V04", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v04_skips_webhooks_that_fail_v01() {
    let check = verify("V04", vec![TestedWebhook::mutating("non-idempotent")]).await;
    let (verdict, reasons) = verdict(&check);
    assert_eq!(verdict, Tally::NotChecked);
    assert!(reasons.keys().all(|reason| reason.contains("see V01")), "{reasons:?}");
}

#[tokio::test]
async fn v08_finds_changes_that_reinvocation_would_make() {
    let check = verify("V08", vec![TestedWebhook::mutating("container-env")]).await;
    finds(&check, &["misses that another webhook adds a container"]);
    let difference = &check.findings[0].differences[0];
    assert_eq!(difference.path, "spec.containers[admit-foreign].env");
    assert_eq!(difference.found, None);
}

#[tokio::test]
async fn v08_passes_a_webhook_that_does_not_depend_on_others() {
    for behavior in ["always-mutate", "sidecar"] {
        passes(&verify("V08", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v08_does_not_recommend_reinvocation_of_a_webhook_that_is_not_idempotent() {
    passes(&verify("V08", vec![TestedWebhook::mutating("non-idempotent")]).await);
}

#[tokio::test]
async fn v08_skips_webhooks_with_reinvocation() {
    let tested = TestedWebhook::mutating("container-env").with("reinvocationPolicy", json!("IfNeeded"));
    assert_eq!(verdict(&verify("V08", vec![tested]).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v09_finds_items_that_each_apply_adds() {
    let check = verify("V09", vec![TestedWebhook::mutating("non-idempotent")]).await;
    finds(&check, &["changed by a second apply"]);
    assert_eq!(check.findings[0].differences[0].path, "metadata.annotations.non-idempotent");
}

#[tokio::test]
async fn v09_finds_a_webhook_that_matches_updates_but_mutates_only_creations() {
    let check =
        verify("V09", vec![TestedWebhook::mutating("when: {if: {operations: [CREATE]}, then: sidecar}")])
            .await;
    finds(&check, &["changed by a second replacement with the same manifest"]);
}

#[tokio::test]
async fn v09_finds_a_webhook_that_denies_an_apply() {
    let frozen = "when: {if: {operations: [UPDATE]}, then: {deny: {message: frozen}}}";
    finds(&verify("V09", vec![TestedWebhook::mutating(frozen)]).await, &["denies a second apply"]);
}

/// Returns a behavior that adds a value on UPDATE.
fn on_update(path: &str, value: &Value) -> String {
    let operations = json!([{"op": "add", "path": path, "value": value}]);
    json!({"when": {"if": {"operations": ["UPDATE"]}, "then": {"patch": {"operations": operations}}}})
        .to_string()
}

#[tokio::test]
async fn v09_finds_changes_that_the_api_server_rejects() {
    let env = on_update("/spec/containers/0/env", &json!([{"name": "A", "value": "b"}]));
    let check = verify("V09", vec![TestedWebhook::mutating(&env)]).await;
    finds(&check, &["the API server rejects a second apply"]);
    let finding = &check.findings[0];
    assert_eq!(finding.severity, Severity::Error);
    assert!(finding.message.contains("pod updates may not change fields other than"), "{}", finding.message);

    // The image of a Pod may change, but not the image in the template of a Job.
    let image = on_update("/spec/containers/0/image", &json!("mirror.example.com/app:1"));
    let check = verify("V09", vec![TestedWebhook::mutating(&image)]).await;
    assert_eq!(kinds(&check)[0], "changed by a second apply");
    let image = on_update("/spec/template/spec/containers/0/image", &json!("mirror.example.com/app:1"));
    let rule =
        json!({"operations": ["*"], "apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]});
    let tested = TestedWebhook::mutating(&image).with("rules", json!([rule]));
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}]});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": pod}}});
    let check = verify_objects("V09", vec![tested], vec![job], &[]).await;
    finds(&check, &["the API server rejects a second apply"]);
    assert!(check.findings[0].message.contains("field is immutable"), "{}", check.findings[0].message);
}

#[tokio::test]
async fn v09_starts_with_an_update_if_the_rules_match_no_creation() {
    let webhook = |path: &str, value: Value| {
        let operations = json!([{"op": "add", "path": path, "value": value}]);
        let behavior =
            json!({"when": {"if": {"absent": path}, "then": {"patch": {"operations": operations}}}});
        TestedWebhook::mutating(&behavior.to_string()).on(&["UPDATE"])
    };
    let check = verify("V09", vec![webhook("/spec/containers/0/env", json!([{"name": "A"}]))]).await;
    finds(&check, &["the API server rejects an update"]);
    let check = verify("V09", vec![TestedWebhook::mutating("non-idempotent").on(&["UPDATE"])]).await;
    assert_eq!(kinds(&check)[0], "changed by a second apply");
    let labels = webhook("/metadata/labels", json!({"mine": "yes"}));
    let check = verify("V09", vec![labels]).await;
    passes(&check);
}

#[tokio::test]
async fn v09_passes_a_webhook_that_treats_updates_like_creations() {
    for behavior in ["always-mutate", "sidecar", "container-env"] {
        passes(&verify("V09", vec![TestedWebhook::mutating(behavior)]).await);
    }
    let check = verify("V09", vec![TestedWebhook::mutating("sidecar").on(&["CREATE"])]).await;
    assert_eq!(verdict(&check).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v13_finds_dependence_on_managed_fields_and_time() {
    let check = verify("V13", vec![TestedWebhook::mutating("fault: M27-managed-fields")]).await;
    finds(&check, &["result depends on managedFields"]);
    let check = verify("V13", vec![TestedWebhook::mutating("fault: M27-creation-timestamp")]).await;
    finds(&check, &["result depends on creationTimestamp"]);
}

#[tokio::test]
async fn v13_notes_dependence_on_the_user() {
    let by_user = "when: {if: {users: ['system:serviceaccount:admit-verify:somebody-else']}, then: deny}";
    for tested in [TestedWebhook::mutating, TestedWebhook::validating] {
        let check = verify("V13", vec![tested(by_user)]).await;
        finds(&check, &["verdict depends on the user"]);
        assert_eq!(check.findings[0].severity, Severity::Note);
    }
}

#[tokio::test]
async fn v13_passes_a_webhook_that_depends_only_on_the_object() {
    for behavior in ["always-mutate", "sidecar", "deny", "allow"] {
        passes(&verify("V13", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v13_skips_random_results() {
    let check = verify("V13", vec![TestedWebhook::mutating("fault: M05-random-name")]).await;
    assert_eq!((verdict(&check).0, kinds(&check)), (Tally::NotChecked, Vec::new()));
}
