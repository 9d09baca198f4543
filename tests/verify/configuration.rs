//! Checks that need no call: V48 and V50.

use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Settings, Severity};
use serde_json::{Value, json};

use crate::laboratory::{configuration, entry, finds, only, passes, run, verdict};

/// What a check of configurations says about a webhook behind a service, with these fields.
async fn check(id: &str, fields: &Value) -> CheckReport {
    let mut webhook = entry("w", "", "");
    webhook["clientConfig"] = json!({"service": {"namespace": "injector", "name": "webhook"}});
    for (field, value) in fields.as_object().into_iter().flatten() {
        webhook[field] = value.clone();
    }
    let configurations = [configuration("MutatingWebhookConfiguration", "c", &[webhook])];
    only(run(id, &configurations, Vec::new(), Settings::default()).await)
}

fn elsewhere() -> Value {
    json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["injector", "kube-system"]},
    ]})
}

#[tokio::test]
async fn v48_finds_a_webhook_that_is_called_for_its_own_pods() {
    let check = check("V48", &json!({})).await;
    finds(&check, &["locks itself out"]);
    let finding = &check.results[0].findings[0];
    assert!(finding.message.contains("called for pods in injector"), "{}", finding.message);
    assert_eq!(finding.severity, Severity::Error);
}

#[tokio::test]
async fn v48_only_warns_where_labels_may_keep_the_pods_out() {
    let selector = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
    let check = check("V48", &json!({"objectSelector": selector})).await;
    finds(&check, &["locks itself out"]);
    assert_eq!(check.results[0].findings[0].severity, Severity::Warning);
}

#[tokio::test]
async fn v48_passes_a_webhook_that_leaves_its_namespace_out() {
    passes(&check("V48", &json!({"namespaceSelector": elsewhere()})).await);
    passes(&check("V48", &json!({"objectSelector": {"matchLabels": {"inject": "yes"}}})).await);
}

#[tokio::test]
async fn v48_is_not_about_webhooks_that_fail_open() {
    let check = check("V48", &json!({"failurePolicy": "Ignore"})).await;
    assert_eq!(verdict(&check).0, Tally::NotApplicable);
}

fn rules(groups: &[&str], resources: &[&str]) -> Value {
    json!([{"operations": ["*"], "apiGroups": groups, "apiVersions": ["*"], "resources": resources}])
}

#[tokio::test]
async fn v50_finds_a_webhook_for_everything() {
    let check = check("V50", &json!({"rules": rules(&["*"], &["*/*"]), "timeoutSeconds": 10})).await;
    finds(&check, &["may outlast a lease", "matches system resources"]);
    let message = &check.results[0].findings[1].message;
    for resource in
        ["leases in kube-system", "leases in kube-node-lease", "nodes/status", "pods in kube-system"]
    {
        assert!(message.contains(resource), "{resource}: {message}");
    }
}

#[tokio::test]
async fn v50_only_warns_of_webhooks_that_fail_open() {
    let fields = json!({"rules": rules(&[""], &["pods"]), "failurePolicy": "Ignore"});
    let check = check("V50", &fields).await;
    finds(&check, &["matches system resources"]);
    assert_eq!(check.results[0].findings[0].severity, Severity::Warning);
}

#[tokio::test]
async fn v50_passes_a_webhook_that_leaves_the_system_out() {
    let fields = json!({"rules": rules(&[""], &["pods"]), "namespaceSelector": elsewhere()});
    passes(&check("V50", &fields).await);
    passes(&check("V50", &json!({"rules": rules(&["example.com"], &["*"])})).await);
}
