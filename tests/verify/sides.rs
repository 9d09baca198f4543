//! Tests V30, V31, and V33 to V36: requests that a real API server sends but that tests often omit.

use harness::verify::Severity;
use harness::verify::report::{CheckReport, Tally};
use serde_json::{Value, json};

use super::environment::{TestedWebhook, finds, kinds, passes, pods, verdict, verify, verify_objects};

/// Adds a rule for these resources in all API groups to the webhook.
fn seeing(tested: TestedWebhook, operations: &[&str], resources: &[&str]) -> TestedWebhook {
    let rule =
        json!({"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources});
    tested.with("rules", json!([rule]))
}

/// Asserts that the check does not apply.
#[track_caller]
fn is_not_about(check: &CheckReport) {
    assert_eq!(verdict(check).0, Tally::NotApplicable, "{check:#?}");
}

#[tokio::test]
async fn v30_finds_a_webhook_that_treats_options_as_a_pod() {
    let tested = TestedWebhook::mutating("mutate: [{set: {/spec/hostname: x}}]");
    let check = verify("V30", vec![seeing(tested, &["CONNECT"], &["pods/exec"])]).await;
    assert_eq!(verdict(&check).0, Tally::Passed, "a field that is dropped: {check:#?}");
    let blind = "when: {if: {absent: /metadata/name}, then: {deny: {code: 400, message: cannot decode pod}}}";
    let check =
        verify("V30", vec![seeing(TestedWebhook::validating(blind), &["CONNECT"], &["pods/*"])]).await;
    finds(
        &check,
        &[
            "misreads on CONNECT to pods/exec",
            "misreads on CONNECT to pods/attach",
            "misreads on CONNECT to pods/portforward",
            "misreads on CONNECT to pods/proxy",
        ],
    );
    let breaks = json!({"patch": {"operations": [{"op": "add", "path": "/spec/containers/-", "value": {}}]}});
    let tested = seeing(TestedWebhook::mutating(&breaks.to_string()), &["CONNECT"], &["nodes/proxy"]);
    finds(&verify("V30", vec![tested]).await, &["breaks on CONNECT to nodes/proxy"]);
}

#[tokio::test]
async fn v30_passes_a_webhook_that_handles_connections_and_skips_others() {
    for behavior in ["allow", "deny: {code: 403, message: no shells here}"] {
        passes(&verify("V30", vec![seeing(TestedWebhook::validating(behavior), &["*"], &["*/*"])]).await);
    }
    is_not_about(&verify("V30", vec![TestedWebhook::mutating("sidecar")]).await);
}

#[tokio::test]
async fn v30_reports_that_selectors_do_not_match_connections() {
    let tested = seeing(TestedWebhook::validating("deny"), &["CONNECT"], &["pods/exec"]);
    let check = verify("V30", vec![tested.with("objectSelector", json!({"matchLabels": {"a": "b"}}))]).await;
    is_not_about(&check);
    let (_, reasons) = verdict(&check);
    assert!(
        reasons.keys().all(|reason| reason.starts_with("the webhook's rules match pods/exec, but")),
        "{reasons:?}"
    );
}

#[tokio::test]
async fn v31_finds_a_webhook_that_treats_a_scale_as_a_deployment() {
    let breaks = json!({"patch": {"operations": [
        {"op": "add", "path": "/spec/template/spec/hostname", "value": "x"},
    ]}});
    let tested = seeing(TestedWebhook::mutating(&breaks.to_string()), &["UPDATE"], &["deployments/scale"]);
    finds(&verify("V31", vec![tested]).await, &["breaks on UPDATE of scale"]);
}

#[tokio::test]
async fn v31_finds_a_webhook_that_treats_an_eviction_as_a_pod() {
    let blind =
        "when: {if: {absent: /spec/containers}, then: {deny: {code: 400, message: cannot decode pod}}}";
    let tested = seeing(TestedWebhook::validating(blind), &["CREATE"], &["pods/eviction", "pods/binding"]);
    let expected = ["misreads on CREATE of binding", "misreads on CREATE of eviction"];
    finds(&verify("V31", vec![tested]).await, &expected);
}

#[tokio::test]
async fn v31_finds_a_spec_that_is_changed_with_the_status() {
    let check =
        verify("V31", vec![seeing(TestedWebhook::mutating("sidecar"), &["*"], &["pods/status"])]).await;
    finds(&check, &["changes the spec on UPDATE of status"]);
    assert_eq!(check.findings[0].severity, Severity::Warning);
}

#[tokio::test]
async fn v31_finds_a_status_of_a_scale_that_is_dropped() {
    let check =
        verify("V31", vec![setting("deployments/scale", "/status/selector", &json!("app=other"))]).await;
    finds(&check, &["changes the status on UPDATE of scale"]);
    assert_eq!(check.findings[0].severity, Severity::Warning, "{check:#?}");
    passes(&verify("V31", vec![setting("deployments/scale", "/spec/replicas", &json!(3))]).await);
}

#[tokio::test]
async fn responses_about_subresources_are_checked_like_those_about_objects() {
    let tested = || seeing(TestedWebhook::mutating("non-idempotent"), &["UPDATE"], &["statefulsets/scale"]);
    let check = verify("V01", vec![tested()]).await;
    finds(&check, &["not idempotent on UPDATE of scale"]);
    assert_eq!(check.findings[0].request.as_deref(), Some("UPDATE of statefulsets/scale"));
    let renames = setting("pods/exec", "/kind", &json!("PodAttachOptions"));
    finds(&verify("V18", vec![renames]).await, &["changes kind on CONNECT of exec"]);
    let unknown = setting("pods/exec", "/container2", &json!("x"));
    finds(&verify("V19", vec![unknown]).await, &["sets unknown fields on CONNECT of exec"]);
    // The corpus contains Evictions, so they are not sent again.
    let denies =
        seeing(TestedWebhook::validating("deny: {code: 403}"), &["*"], &["pods/eviction", "nodes/status"]);
    let expected =
        ["no message on UPDATE of status", "no message when it cannot decode the object on UPDATE of status"];
    finds(&verify("V25", vec![denies]).await, &expected);
}

#[tokio::test]
async fn v31_finds_a_status_that_is_written_whole() {
    let whole =
        json!({"patch": {"operations": [{"op": "add", "path": "/status", "value": {"message": "checked"}}]}});
    let check = verify(
        "V31",
        vec![seeing(TestedWebhook::mutating(&whole.to_string()), &["UPDATE"], &["pods/status"])],
    )
    .await;
    finds(&check, &["overwrites the status on UPDATE of status"]);
    assert!(check.findings[0].message.contains("status.hostIP"), "{}", check.findings[0].message);
    let one =
        json!({"patch": {"operations": [{"op": "add", "path": "/status/message", "value": "checked"}]}});
    passes(
        &verify(
            "V31",
            vec![seeing(TestedWebhook::mutating(&one.to_string()), &["UPDATE"], &["pods/status"])],
        )
        .await,
    );
}

#[tokio::test]
async fn v31_finds_changes_of_existing_ephemeral_containers() {
    let resources = ["pods/ephemeralcontainers"];
    let patch = |path: &str| {
        let operations = json!([{"op": "replace", "path": path, "value": "mirror.example.com/debug:1"}]);
        TestedWebhook::mutating(&json!({"patch": {"operations": operations}}).to_string())
    };
    let existing = patch("/spec/ephemeralContainers/0/image");
    let check = verify("V31", vec![seeing(existing, &["UPDATE"], &resources)]).await;
    finds(&check, &["the API server rejects UPDATE of ephemeralcontainers"]);
    let message = &check.findings[0].message;
    assert!(message.contains("existing ephemeral containers"), "{message}");
    let new = patch("/spec/ephemeralContainers/1/image");
    passes(&verify("V31", vec![seeing(new, &["UPDATE"], &resources)]).await);
}

/// Returns a webhook that sets one value, on the operations that reach the resource.
fn setting(resource: &str, path: &str, value: &Value) -> TestedWebhook {
    let operations = json!([{"op": "add", "path": path, "value": value}]);
    let behavior = json!({"patch": {"operations": operations}}).to_string();
    seeing(TestedWebhook::mutating(&behavior), &["*"], &[resource])
}

#[tokio::test]
async fn v31_finds_results_that_the_api_server_rejects() {
    for (resource, path, invalid, valid, reason) in [
        ("deployments/scale", "/spec/replicas", json!(-1), json!(0), "greater than or equal to 0"),
        ("serviceaccounts/token", "/spec/expirationSeconds", json!(1), json!(600), "less than 10 minutes"),
        ("pods/binding", "/target/name", json!(""), json!("node-2"), "target.name: Required value"),
        ("jobs/status", "/status/active", json!(-1), json!(1), "status.active: Invalid value"),
        (
            "pods/resize",
            "/spec/containers/0/resources/limits",
            json!({"cpu": "100m"}),
            json!({"cpu": "300m"}),
            "must be less than or equal to cpu limit",
        ),
    ] {
        let check = verify("V31", vec![setting(resource, path, &invalid)]).await;
        let (_, subresource) = resource.split_once('/').expect("a subresource");
        assert_eq!(check.findings.len(), 1, "{resource}: {check:#?}");
        let finding = &check.findings[0];
        assert!(finding.kind.starts_with("the API server rejects"), "{finding:#?}");
        assert!(finding.kind.ends_with(&format!("of {subresource}")), "{finding:#?}");
        assert!(finding.message.contains(reason), "{finding:#?}");
        assert_eq!(finding.severity, Severity::Error);
        let check = verify("V31", vec![setting(resource, path, &valid)]).await;
        assert_eq!(check.findings, Vec::new(), "{resource}: {check:#?}");
    }
}

#[tokio::test]
async fn v31_finds_a_status_that_is_written_whole_for_every_kind() {
    for (resource, field) in [
        ("deployments/status", "status.conditions"),
        ("ingresses/status", "status.loadBalancer"),
        ("resourcequotas/status", "status.used"),
    ] {
        let check = verify("V31", vec![setting(resource, "/status", &json!({}))]).await;
        finds(&check, &["overwrites the status on UPDATE of status"]);
        assert!(check.findings[0].message.contains(field), "{}", check.findings[0].message);
    }
}

/// A behavior that rejects every request with the message that it cannot be decoded.
const BLIND: &str = "deny: {code: 400, message: cannot decode}";

#[tokio::test]
async fn v31_checks_status_and_scale_of_every_kind_in_one_finding() {
    let replicas = TestedWebhook::mutating("mutate: [{set: {/spec/replicas: 9}}]");
    let resources = ["deployments/status", "statefulsets/status", "replicasets/status", "deployments/scale"];
    let check = verify("V31", vec![seeing(replicas, &["UPDATE"], &resources)]).await;
    finds(&check, &["changes the spec on UPDATE of status"]);
    let message = &check.findings[0].message;
    assert!(
        message.starts_with("on UPDATE of deployments/status, the webhook changes spec.replicas"),
        "{message}"
    );
    assert!(message.ends_with("the same on replicasets/status, statefulsets/status"), "{message}");

    let check = verify("V31", vec![seeing(TestedWebhook::validating(BLIND), &["*"], &["*/scale"])]).await;
    finds(&check, &["misreads on UPDATE of scale"]);
    assert!(check.findings[0].message.contains("the same on"), "{check:#?}");
}

#[tokio::test]
async fn v31_looks_at_the_subresources_of_custom_resources() {
    let subresources = json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas"}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}}}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": schema}}]},
    });
    let tested = seeing(TestedWebhook::validating(BLIND), &["UPDATE"], &["widgets/*"]);
    let check = verify_objects("V31", vec![tested], Vec::new(), &[definition]).await;
    finds(&check, &["misreads on UPDATE of status", "misreads on UPDATE of scale"]);
}

#[tokio::test]
async fn v31_sends_the_labels_of_the_selector_and_reports_bodies_without_labels() {
    let selector = json!({"matchLabels": {"inject": "yes"}});
    let labeled = |tested: TestedWebhook| tested.with("objectSelector", selector.clone());
    let resources = ["pods/status", "pods/eviction"];
    let tested = labeled(seeing(TestedWebhook::mutating("sidecar"), &["*"], &resources));
    let check = verify("V31", vec![tested]).await;
    finds(&check, &["changes the spec on UPDATE of status"]);
    let sent = &check.findings[0].steps[0].review["request"]["object"]["metadata"]["labels"];
    assert_eq!(sent["inject"], "yes");
    let notes = &check.results[0].notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("the webhook's rules match pods/eviction, but its selectors do not match"),
        "{notes:?}"
    );

    let check =
        verify("V31", vec![labeled(seeing(TestedWebhook::mutating("sidecar"), &["*"], &resources[1..]))])
            .await;
    is_not_about(&check);
}

#[tokio::test]
async fn v31_names_the_subresources_that_it_does_not_know() {
    let check =
        verify("V31", vec![seeing(TestedWebhook::validating("allow"), &["*"], &["csinodes/status"])]).await;
    let (tally, reasons) = verdict(&check);
    assert_eq!(tally, Tally::NotChecked, "{check:#?}");
    assert!(reasons.contains_key("admit cannot build a request for csinodes/status"), "{reasons:?}");
}

#[tokio::test]
async fn v31_passes_a_webhook_that_handles_subresources_and_skips_others() {
    for behavior in ["allow", "always-mutate"] {
        passes(&verify("V31", vec![seeing(TestedWebhook::mutating(behavior), &["*"], &["*/*"])]).await);
    }
    is_not_about(&verify("V31", vec![TestedWebhook::mutating("sidecar")]).await);
}

fn autoscaler() -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"minReplicas": 1, "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]}})
}

async fn for_autoscalers(tested: TestedWebhook, versions: &[&str]) -> CheckReport {
    let rule = json!({"operations": ["*"], "apiGroups": ["autoscaling"], "apiVersions": versions,
        "resources": ["horizontalpodautoscalers"]});
    verify_objects("V33", vec![tested.with("rules", json!([rule]))], vec![autoscaler()], &[]).await
}

#[tokio::test]
async fn v33_finds_a_webhook_that_decides_by_version() {
    let check = for_autoscalers(TestedWebhook::validating("fault: M21"), &["*"]).await;
    finds(&check, &["different verdict in autoscaling/v1"]);
    let by_version = "when: {if: {api-versions: [autoscaling/v1]}, then: always-mutate}";
    let check = for_autoscalers(TestedWebhook::mutating(by_version), &["*"]).await;
    finds(&check, &["different result in autoscaling/v1"]);
}

#[tokio::test]
async fn v33_finds_a_webhook_that_is_not_called_for_all_versions() {
    let exact = TestedWebhook::validating("deny").with("matchPolicy", json!("Exact"));
    finds(&for_autoscalers(exact, &["v2"]).await, &["not called in autoscaling/v1"]);
}

#[tokio::test]
async fn v33_passes_a_webhook_that_treats_all_versions_alike() {
    for versions in [["*"], ["v2"]] {
        passes(&for_autoscalers(TestedWebhook::mutating("always-mutate"), &versions).await);
        passes(&for_autoscalers(TestedWebhook::validating("deny"), &versions).await);
    }
    is_not_about(&verify("V33", vec![TestedWebhook::mutating("sidecar")]).await);
}

#[tokio::test]
async fn v34_finds_a_webhook_that_blocks_finalizers() {
    for tested in [TestedWebhook::mutating, TestedWebhook::validating] {
        let check = verify("V34", vec![tested("fault: M29-deny")]).await;
        finds(&check, &["denies a finalizer removal"]);
    }
    let check = verify("V34", vec![TestedWebhook::mutating("fault: M29-finalizer")]).await;
    finds(&check, &["adds a finalizer"]);
}

#[tokio::test]
async fn v34_finds_a_webhook_that_adds_its_finalizer_again() {
    let own = json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/own"]}]);
    let behavior =
        json!({"when": {"if": {"absent": "/metadata/finalizers"}, "then": {"patch": {"operations": own}}}});
    let tested = TestedWebhook::mutating(&behavior.to_string());
    finds(&verify("V34", vec![tested]).await, &["adds a finalizer"]);
}

#[tokio::test]
async fn v34_finds_changes_that_the_api_server_rejects() {
    let env =
        json!([{"op": "add", "path": "/spec/containers/0/env", "value": [{"name": "A", "value": "b"}]}]);
    let behavior =
        json!({"when": {"if": {"operations": ["UPDATE"]}, "then": {"patch": {"operations": env}}}});
    let check = verify("V34", vec![TestedWebhook::mutating(&behavior.to_string())]).await;
    finds(&check, &["the API server rejects the finalizer removal"]);
    let message = &check.findings[0].message;
    assert!(message.contains("pod updates may not change fields"), "{message}");
}

#[tokio::test]
async fn v34_starts_with_an_update_if_the_rules_match_no_creation() {
    let own = json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/own"]}]);
    let behavior = json!({"patch": {"operations": own}});
    let check = verify("V34", vec![TestedWebhook::mutating(&behavior.to_string()).on(&["UPDATE"])]).await;
    finds(&check, &["adds a finalizer"]);
    let is_deleting = json!({"present": "/metadata/deletionTimestamp"});
    let careful = json!({"when": {"if": is_deleting, "then": "allow", "otherwise": behavior}});
    passes(&verify("V34", vec![TestedWebhook::mutating(&careful.to_string()).on(&["UPDATE"])]).await);
    let check = verify("V34", vec![TestedWebhook::validating("fault: M29-deny").on(&["UPDATE"])]).await;
    finds(&check, &["denies a finalizer removal"]);
}

#[tokio::test]
async fn v34_passes_a_webhook_that_allows_finalizer_removal() {
    for behavior in ["allow", "sidecar", "always-mutate"] {
        passes(&verify("V34", vec![TestedWebhook::mutating(behavior)]).await);
    }
    is_not_about(&verify("V34", vec![TestedWebhook::mutating("fault: M29-deny").on(&["CREATE"])]).await);
}

#[tokio::test]
async fn v35_finds_a_webhook_that_decodes_reviews_strictly() {
    for (place, kind) in [
        ("/request/admitUnknown", "depends on new fields of the review"),
        ("/request/userInfo/admitUnknown", "depends on new keys of userInfo"),
        ("/request/options/admitUnknown", "depends on a new kind of options"),
    ] {
        for then in ["{bad-response: {status: 400}}", "{deny: {message: unknown field}}", "allow"] {
            let behavior = format!("when: {{if: {{in-review: {place}}}, then: {then}, otherwise: sidecar}}");
            let check = verify("V35", vec![TestedWebhook::mutating(&behavior)]).await;
            finds(&check, &[kind]);
            assert_eq!(check.findings[0].severity, Severity::Error);
        }
    }
}

#[tokio::test]
async fn v35_notes_a_webhook_that_copies_the_user() {
    let extra = "authentication.example.com/admit-unknown";
    let behavior = json!({"when": {
        "if": {"in-review": format!("/request/userInfo/extra/{}", extra.replace('/', "~1"))},
        "then": {"patch": {"operations": [
            {"op": "add", "path": "/metadata/annotations", "value": {"requester": format!("{extra}=value")}},
        ]}},
        "otherwise": "allow",
    }});
    let writes_down = || TestedWebhook::mutating(&behavior.to_string());
    let check = verify("V35", vec![writes_down()]).await;
    finds(&check, &["depends on new keys of userInfo"]);
    assert_eq!(check.findings[0].severity, Severity::Note);

    // A validating webhook that compares the two sees the result of the mutating one.
    let compares = json!({"when": {
        "if": {"all": [
            {"in-review": format!("/request/userInfo/extra/{}", extra.replace('/', "~1"))},
            {"not": {"in-review": "/request/object/metadata/annotations/requester"}},
        ]},
        "then": "deny",
        "otherwise": "allow",
    }});
    let compares = || TestedWebhook::validating(&compares.to_string());
    let check = verify("V35", vec![writes_down(), compares()]).await;
    finds(&check, &["depends on new keys of userInfo"]);
    assert_eq!(check.findings[0].severity, Severity::Note);
    let check = verify("V35", vec![compares()]).await;
    finds(&check, &["depends on new keys of userInfo"]);
    assert_eq!(check.findings[0].severity, Severity::Error);
}

#[tokio::test]
async fn v35_passes_a_webhook_that_ignores_unknown_fields() {
    for behavior in ["sidecar", "deny", "allow"] {
        passes(&verify("V35", vec![TestedWebhook::mutating(behavior)]).await);
    }
    let check = verify("V35", vec![TestedWebhook::mutating("fault: M05-random-name")]).await;
    assert_eq!(verdict(&check).0, Tally::NotChecked);
}

#[tokio::test]
async fn v36_finds_a_webhook_that_rejects_large_bodies() {
    let strict = "when: {if: {entry: {list: /spec/containers/0/env, name: ADMIT_FILLING}}, then: OUTCOME}";
    for (outcome, kind) in [
        ("{bad-response: {status: 413}}", "fails on a large object"),
        ("{deny: {code: 413, message: request entity too large}}", "denies a large object"),
    ] {
        let check = verify("V36", vec![TestedWebhook::mutating(&strict.replace("OUTCOME", outcome))]).await;
        finds(&check, &[kind]);
        assert!(check.findings[0].message.contains("KiB"));
    }
}

#[tokio::test]
async fn v36_tries_other_kinds_until_an_update_is_answered() {
    let filled = "{entry: {list: /spec/template/spec/containers/0/env, name: ADMIT_FILLING}}";
    let limited = "when: {if: {all: [{operations: [UPDATE]}, FILLED]}, then: {bad-response: {status: 413}}}";
    let rule = |group: &str, resource: &str, operations: &[&str]| json!({"operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]});
    let rules = json!([rule("", "pods", &["CREATE"]), rule("apps", "deployments", &["CREATE", "UPDATE"])]);
    let tested = TestedWebhook::mutating(&limited.replace("FILLED", filled)).with("rules", rules);
    let pod = pods().swap_remove(0);
    let labels = json!({"app": "a"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod["spec"]}},
    });
    let check = verify_objects("V36", vec![tested], vec![pod, deployment], &[]).await;
    finds(&check, &["fails on a large object"]);
    assert!(check.findings[0].message.contains("UPDATE of a Deployment"), "{check:#?}");
}

#[tokio::test]
async fn v36_fills_a_custom_resource_where_its_schema_allows_any_text() {
    let limited = "when: {if: {present: /spec/text}, then: {bad-response: {status: 413}}, otherwise: allow}";
    let rule = json!({"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"]});
    let tested = TestedWebhook::mutating(limited).with("rules", json!([rule]));
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "text": {"type": "string"},
    }}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}});
    let check = verify_objects("V36", vec![tested], vec![widget], &[definition]).await;
    finds(&check, &["fails on a large object"]);
    let message = &check.findings[0].message;
    assert!(
        message.starts_with("on UPDATE of a Widget of 305")
            && message.contains("KiB, enlarged by spec.text,"),
        "{message}"
    );
}

#[tokio::test]
async fn v36_passes_a_webhook_that_accepts_large_bodies() {
    for tested in [TestedWebhook::mutating("sidecar"), TestedWebhook::mutating("sidecar").on(&["CREATE"])] {
        let check = verify("V36", vec![tested]).await;
        assert_eq!((verdict(&check).0, kinds(&check)), (Tally::Passed, Vec::new()));
    }
}
