//! Tests V16 to V21: the form of a patch, and its result.

use harness::verify::Severity;
use harness::verify::report::{CheckReport, Tally};
use serde_json::{Value, json};

use super::environment::{TestedWebhook, finds, kinds, passes, verdict, verify, verify_objects};

const WELL_BEHAVED: [&str; 3] = ["always-mutate", "sidecar", "container-env"];

/// Returns the result of a check for a webhook that always sends these operations.
async fn patching(id: &str, operations: &Value) -> CheckReport {
    let behavior = json!({"patch": {"operations": operations}}).to_string();
    verify(id, vec![TestedWebhook::mutating(&behavior)]).await
}

/// Asserts that a webhook that sends no patch does not exercise a check.
async fn is_not_about_who_sends_none(id: &str) {
    for (behavior, expected) in [("allow", Tally::NotExercised), ("deny", Tally::NotApplicable)] {
        let check = verify(id, vec![TestedWebhook::mutating(behavior)]).await;
        assert_eq!(verdict(&check).0, expected, "{id}: {check:#?}");
    }
}

#[tokio::test]
async fn v16_finds_patches_that_only_the_servers_library_applies() {
    let check = patching("V16", &json!([{"op": "replace", "path": "/spec/hostname", "value": "x"}])).await;
    finds(&check, &["path not found"]);
    let check = patching("V16", &json!([{"op": "remove", "path": "/spec/containers/-1"}])).await;
    finds(&check, &["index"]);
    let check = patching("V16", &json!([{"op": "add", "path": "/spec/hostname"}])).await;
    finds(&check, &["value missing"]);
}

#[tokio::test]
async fn v16_passes_patches_that_the_standard_allows() {
    for behavior in WELL_BEHAVED {
        passes(&verify("V16", vec![TestedWebhook::mutating(behavior)]).await);
    }
    is_not_about_who_sends_none("V16").await;
}

#[tokio::test]
async fn v17_finds_removed_fields() {
    let check = verify("V17", vec![TestedWebhook::mutating("fault: M10-own")]).await;
    finds(&check, &["removes fields", "writes a whole list"]);
    let kept = verify("V17", vec![TestedWebhook::mutating("fault: M10-whole")]).await;
    finds(&kept, &["writes a whole list"]);
    assert_eq!(kept.findings[0].severity, Severity::Note);
    let check =
        verify("V17", vec![TestedWebhook::mutating("mutate: [{remove: [/spec/securityContext]}]")]).await;
    finds(&check, &["removes fields"]);
}

#[tokio::test]
async fn v17_names_each_field_that_is_lost() {
    let operations = json!([
        {"op": "remove", "path": "/metadata/labels"}, {"op": "remove", "path": "/metadata/annotations"},
        {"op": "remove", "path": "/spec/volumes"}, {"op": "remove", "path": "/spec/securityContext"},
    ]);
    let behavior = json!({"when": {"if": {"present": "/metadata/labels"}, "then": {"patch": {"operations": operations}}}});
    let check = verify("V17", vec![TestedWebhook::mutating(&behavior.to_string())]).await;
    finds(&check, &["removes fields"]);
    let finding = &check.findings[0];
    let fields: Vec<&str> = finding.fields.iter().map(String::as_str).collect();
    assert_eq!(fields, ["metadata.annotations", "metadata.labels", "spec.securityContext", "spec.volumes"]);
    // The smallest object still has all of these fields.
    for field in fields {
        assert!(finding.message.contains(field), "{}", finding.message);
        assert!(finding.differences.iter().any(|lost| lost.path.starts_with(field)), "{finding:#?}");
    }
}

#[tokio::test]
async fn v17_finds_lost_labels_of_a_result_that_does_not_decode() {
    let operations = json!([
        {"op": "remove", "path": "/metadata/labels"}, {"op": "replace", "path": "/spec/containers", "value": "none"},
    ]);
    let behavior = json!({"when": {"if": {"present": "/metadata/labels"}, "then": {"patch": {"operations": operations}}}});
    let check = verify("V17", vec![TestedWebhook::mutating(&behavior.to_string())]).await;
    let lost = check.findings.iter().find(|finding| finding.kind == "removes fields").expect("it is found");
    assert!(lost.fields.contains("metadata.labels"), "{lost:#?}");
}

#[tokio::test]
async fn v19_finds_a_priority_class_without_its_priority() {
    let class = json!([{"op": "add", "path": "/spec/priorityClassName", "value": "high"}]);
    finds(&patching("V19", &class).await, &["rejected: spec.priorityClassName: Forbidden"]);
    let both = json!([
        {"op": "add", "path": "/spec/priorityClassName", "value": "high"},
        {"op": "remove", "path": "/spec/priority"},
    ]);
    passes(&patching("V19", &both).await);
}

#[tokio::test]
async fn v17_finds_whole_maps() {
    let labels = json!([{"op": "add", "path": "/metadata/labels", "value": {"mine": "yes"}}]);
    let check = patching("V17", &labels).await;
    finds(&check, &["removes fields", "writes a whole map"]);
    assert_eq!(check.findings[0].differences[0].path, "metadata.labels.app");
}

/// Returns a Pod in which some fields have their default and others have a different value.
fn wishes() -> Vec<Value> {
    let container = json!({"name": "app", "image": "example.com/app:1", "imagePullPolicy": "Never",
        "terminationMessagePath": "/dev/termination-log", "resources": {"limits": {"cpu": "500m"}}});
    vec![json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"team": "a"}},
        "spec": {"containers": [container]}})]
}

#[tokio::test]
async fn v17_notes_replaced_values_of_the_user() {
    for (path, value, field) in [
        ("/spec/containers/0/imagePullPolicy", json!("Always"), "spec.containers[app].imagePullPolicy"),
        ("/metadata/labels/team", json!("b"), "metadata.labels.team"),
        ("/spec/containers/0/resources/limits/cpu", json!("1"), "spec.containers[app].resources.limits.cpu"),
    ] {
        let patch = json!({"patch": {"operations": [{"op": "replace", "path": path, "value": value}]}});
        let tested = TestedWebhook::mutating(&patch.to_string());
        let check = verify_objects("V17", vec![tested], wishes(), &[]).await;
        finds(&check, &["overwrites"]);
        let finding = &check.findings[0];
        assert_eq!((finding.severity, finding.differences[0].path.as_str()), (Severity::Note, field));
        assert!(finding.message.contains(field), "{}", finding.message);
    }
}

#[tokio::test]
async fn v17_passes_replaced_defaults_and_equal_values() {
    for (path, value) in [
        ("/spec/terminationGracePeriodSeconds", json!(5)),
        ("/spec/containers/0/terminationMessagePath", json!("/tmp/log")),
        ("/spec/containers/0/resources/limits/cpu", json!("0.5")),
        ("/metadata/labels/other", json!("b")),
    ] {
        let patch = json!({"patch": {"operations": [{"op": "add", "path": path, "value": value}]}});
        let tested = TestedWebhook::mutating(&patch.to_string());
        passes(&verify_objects("V17", vec![tested], wishes(), &[]).await);
    }
}

#[tokio::test]
async fn v17_passes_operations_for_single_fields() {
    for behavior in WELL_BEHAVED {
        passes(&verify("V17", vec![TestedWebhook::mutating(behavior)]).await);
    }
    is_not_about_who_sends_none("V17").await;
}

#[tokio::test]
async fn v18_finds_another_identity() {
    for (path, kind) in [
        ("/metadata/name", "changes metadata.name"),
        ("/metadata/namespace", "changes metadata.namespace"),
        ("/metadata/uid", "changes metadata.uid"),
        ("/metadata/resourceVersion", "changes metadata.resourceVersion"),
        ("/kind", "changes kind"),
        ("/apiVersion", "changes apiVersion"),
    ] {
        let check = patching("V18", &json!([{"op": "add", "path": path, "value": "x7"}])).await;
        finds(&check, &[kind]);
    }
    let check = verify("V18", vec![TestedWebhook::mutating("fault: M30-managed-fields")]).await;
    finds(&check, &["changes metadata.managedFields"]);
}

#[tokio::test]
async fn v18_finds_a_status_on_the_object_itself() {
    let check = verify("V18", vec![TestedWebhook::mutating("fault: M28")]).await;
    finds(&check, &["writes status"]);
    assert_eq!(check.findings[0].severity, Severity::Warning);
}

#[tokio::test]
async fn v18_passes_labels_containers_and_early_names() {
    for behavior in WELL_BEHAVED {
        passes(&verify("V18", vec![TestedWebhook::mutating(behavior)]).await);
    }
    let check = verify("V18", vec![TestedWebhook::mutating("fault: M13-generated")]).await;
    assert_eq!((verdict(&check).0, kinds(&check)), (Tally::Passed, Vec::new()));
    is_not_about_who_sends_none("V18").await;
}

#[tokio::test]
async fn v19_finds_names_that_are_there_twice() {
    let volume = |name: &str| {
        json!({"op": "add", "path": "/spec/volumes", "value": [
            {"name": name, "emptyDir": {}}, {"name": name, "emptyDir": {}},
        ]})
    };
    let expected = [
        "rejected: spec.volumes.name: Duplicate value",
        "rejected: spec.containers.volumeMounts.name: Not found",
        "rejected: spec.initContainers.volumeMounts.name: Not found",
    ];
    finds(&patching("V19", &json!([volume("v")])).await, &expected);
    let env =
        json!([{"op": "add", "path": "/spec/containers/0/env", "value": [{"name": "A"}, {"name": "A"}]}]);
    let check = patching("V19", &env).await;
    finds(&check, &["spec.containers.env: duplicate name"]);
    assert_eq!(check.findings[0].severity, Severity::Warning);
    let container =
        json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "app", "image": "x"}}]);
    finds(&patching("V19", &container).await, &["rejected: spec.containers.name: Duplicate value"]);
    let check = verify("V19", vec![TestedWebhook::mutating("fault: M30-owner-references")]).await;
    finds(&check, &["metadata.ownerReferences: duplicate uid"]);
}

#[tokio::test]
async fn v19_finds_fields_that_the_kind_does_not_have() {
    let check = patching("V19", &json!([{"op": "add", "path": "/spec/mood", "value": "good"}])).await;
    finds(&check, &["sets unknown fields"]);
    let check =
        patching("V19", &json!([{"op": "replace", "path": "/spec/containers", "value": "none"}])).await;
    finds(&check, &["does not decode"]);
}

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
                    "size": {"type": "integer", "maximum": 9}, "color": {"type": "string"},
                }}},
            }}}]},
    })
}

async fn widget(operation: Value) -> CheckReport {
    widget_of(&json!({"size": 1}), operation).await
}

/// Returns the result of V19 for a patch to a widget with this spec.
async fn widget_of(spec: &Value, operation: Value) -> CheckReport {
    widget_in(&widgets(), spec, operation).await
}

async fn widget_in(definition: &Value, spec: &Value, operation: Value) -> CheckReport {
    let behavior = json!({"patch": {"operations": [operation]}}).to_string();
    let rule = json!({"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"]});
    let tested = TestedWebhook::mutating(&behavior).with("rules", json!([rule]));
    let mut widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    if !spec.is_null() {
        widget["spec"] = spec.clone();
    }
    verify_objects("V19", vec![tested], vec![widget], std::slice::from_ref(definition)).await
}

#[tokio::test]
async fn v19_holds_custom_resources_to_their_schema() {
    let size = |value: Value| json!({"op": "replace", "path": "/spec/size", "value": value});
    finds(&widget(size(json!(10))).await, &["rejected: spec.size: Invalid value"]);
    finds(&widget(size(json!("large"))).await, &["rejected: spec.size: Invalid value"]);
    let unknown = widget(json!({"op": "add", "path": "/spec/mood", "value": "good"})).await;
    finds(&unknown, &["sets unknown fields"]);
    passes(&widget(json!({"op": "add", "path": "/spec/color", "value": "red"})).await);
    // An object that was already invalid is rejected with and without the webhook.
    passes(&widget_of(&json!({"size": 10}), size(json!("large"))).await);
    let color = json!({"op": "add", "path": "/spec/color", "value": 1});
    let check = widget_of(&json!({"size": 10}), color).await;
    finds(&check, &["rejected, as before: spec.color: Invalid value"]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v19_evaluates_the_rules_of_custom_resources() {
    let mut definition = widgets();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "!has(self.color) || self.size > 1", "message": "only large ones have a color"}]);
    let check = widget_in(
        &definition,
        &json!({"size": 1}),
        json!({"op": "add", "path": "/spec/color", "value": "red"}),
    )
    .await;
    finds(&check, &["rejected: spec: Invalid value"]);
    assert!(
        check.findings[0].message.contains("only large ones have a color; "),
        "{}",
        check.findings[0].message
    );
    let large = json!({"op": "replace", "path": "/spec/size", "value": 2});
    passes(&widget_in(&definition, &json!({"size": 1, "color": "red"}), large).await);
}

#[tokio::test]
async fn v19_notes_required_fields_in_a_missing_spec() {
    let kind = "rejected, in fields that the user left out: spec.size: Required value";
    let check =
        widget_of(&Value::Null, json!({"op": "add", "path": "/spec", "value": {"color": "red"}})).await;
    finds(&check, &[kind]);
    assert_eq!(check.findings[0].severity, Severity::Note);
    // An invalid write to a field that the user set is still an error.
    let check = widget(json!({"op": "remove", "path": "/spec/size"})).await;
    finds(&check, &["rejected: spec.size: Required value"]);
    let check =
        widget_of(&Value::Null, json!({"op": "add", "path": "/spec", "value": {"size": "red"}})).await;
    finds(&check, &["rejected: spec.size: Invalid value"]);
}

#[tokio::test]
async fn v19_passes_valid_objects() {
    for behavior in WELL_BEHAVED {
        passes(&verify("V19", vec![TestedWebhook::mutating(behavior)]).await);
    }
    is_not_about_who_sends_none("V19").await;
}

#[tokio::test]
async fn v20_notes_patches_that_change_nothing() {
    let same = json!([{"op": "replace", "path": "/kind", "value": "Pod"}]);
    finds(&patching("V20", &same).await, &["empty patch for the object"]);
    for patch in ["W10=", "[91, 93]"] {
        let empty = format!(
            "raw: {{response: {{uid: '{{uid}}', allowed: true, patchType: JSONPatch, patch: {patch}}}}}"
        );
        finds(&verify("V20", vec![TestedWebhook::mutating(&empty)]).await, &["empty patch for the object"]);
    }
    let check = verify("V20", vec![TestedWebhook::mutating("fault: M03")]).await;
    finds(&check, &["empty patch for its own result"]);
    assert_eq!(check.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v20_passes_webhooks_without_a_patch_when_nothing_changes() {
    for behavior in ["sidecar", "container-env", "allow"] {
        passes(&verify("V20", vec![TestedWebhook::mutating(behavior)]).await);
    }
}

#[tokio::test]
async fn v21_finds_a_webhook_that_mutates_or_denies_mirror_pods() {
    let check = verify("V21", vec![TestedWebhook::mutating("sidecar")]).await;
    finds(&check, &["changes a mirror Pod"]);
    let sent = check.findings[0].object.as_ref().expect("the object that was sent");
    let mirror = sent.pointer("/metadata/annotations/kubernetes.io~1config.mirror");
    assert!(mirror.is_some(), "{sent}");
    let denies = "when: {if: {present: /spec/nodeName}, then: {deny: {message: no}}}";
    for tested in [TestedWebhook::mutating, TestedWebhook::validating] {
        finds(&verify("V21", vec![tested(denies)]).await, &["denies a mirror Pod"]);
    }
}

#[tokio::test]
async fn v21_passes_a_webhook_that_ignores_mirror_pods() {
    let careful = "when: {if: {present: /metadata/annotations/kubernetes.io~1config.mirror}, then: allow, otherwise: sidecar}";
    passes(&verify("V21", vec![TestedWebhook::mutating(careful)]).await);
    passes(&verify("V21", vec![TestedWebhook::validating("allow")]).await);
    let check = verify("V21", vec![TestedWebhook::validating("deny")]).await;
    assert_eq!(verdict(&check).0, Tally::NotApplicable);
}
