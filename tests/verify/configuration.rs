//! Tests the static checks of a single configuration: V48, V50, V51, V53, V54, and V57.

use harness::verify::report::{CheckReport, Tally};
use harness::verify::{Settings, Severity};
use serde_json::{Value, json};

use super::environment::{configuration, entry, finds, only, passes, run, verdict};

/// Returns the result of a static check for a webhook behind a Service, with these additional fields.
async fn check(id: &str, fields: &Value) -> CheckReport {
    check_of("MutatingWebhookConfiguration", id, fields).await
}

/// Returns the result of [`check`] for a configuration of this kind.
async fn check_of(kind: &str, id: &str, fields: &Value) -> CheckReport {
    let mut webhook = entry("w", "", "");
    webhook["clientConfig"] = json!({"service": {"namespace": "injector", "name": "webhook"}});
    for (field, value) in fields.as_object().into_iter().flatten() {
        webhook[field] = value.clone();
    }
    let configurations = [configuration(kind, "c", &[webhook])];
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
    let finding = &check.findings[0];
    assert!(finding.message.contains("called for pods in injector"), "{}", finding.message);
    assert_eq!(finding.severity, Severity::Error);
}

#[tokio::test]
async fn v48_only_warns_where_labels_may_keep_the_pods_out() {
    let selector = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
    let check = check("V48", &json!({"objectSelector": selector})).await;
    finds(&check, &["locks itself out"]);
    assert_eq!(check.findings[0].severity, Severity::Warning);
}

#[tokio::test]
async fn v48_passes_a_webhook_that_excludes_its_namespace() {
    passes(&check("V48", &json!({"namespaceSelector": elsewhere()})).await);
    passes(&check("V48", &json!({"objectSelector": {"matchLabels": {"inject": "yes"}}})).await);
}

#[tokio::test]
async fn v48_recognizes_a_namespace_outside_the_files_by_its_name() {
    let but_others = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
    ]});
    finds(&check("V48", &json!({"namespaceSelector": but_others})).await, &["locks itself out"]);
    let by_label = json!({"matchLabels": {"inject": "yes"}});
    passes(&check("V48", &json!({"namespaceSelector": by_label})).await);
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
async fn v50_uses_the_name_label_of_namespaces() {
    let but = |namespaces: &[&str]| {
        let selector = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": namespaces},
        ]});
        json!({"rules": rules(&[""], &["namespaces"]), "namespaceSelector": selector})
    };
    passes(&check_of("ValidatingWebhookConfiguration", "V50", &but(&["kube-system"])).await);
    let found = check_of("ValidatingWebhookConfiguration", "V50", &but(&["other"])).await;
    finds(&found, &["matches system resources"]);
}

#[tokio::test]
async fn v50_finds_a_webhook_for_everything() {
    let check = check("V50", &json!({"rules": rules(&["*"], &["*/*"]), "timeoutSeconds": 10})).await;
    finds(&check, &["may delay lease renewals too long", "matches system resources"]);
    let message = &check.findings[1].message;
    for resource in
        ["leases in kube-system", "leases in kube-node-lease", "nodes/status", "pods in kube-system"]
    {
        assert!(message.contains(resource), "{resource}: {message}");
    }
}

#[tokio::test]
async fn v50_compares_timeouts_with_the_renewal_of_a_lease() {
    let fields = |timeout: u32, left_out: &str| {
        let selector = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [left_out]},
        ]});
        json!({"rules": rules(&["coordination.k8s.io"], &["leases"]), "timeoutSeconds": timeout, "failurePolicy": "Ignore",
            "namespaceSelector": selector})
    };
    for (timeout, left_out, outlasts) in [
        (4, "other", None),
        (5, "other", Some("leases in kube-system with a timeout of 5 s")),
        (30, "other", Some("leases in kube-system with a timeout of 30 s")),
        (9, "kube-system", None),
        (10, "kube-system", Some("leases in kube-node-lease with a timeout of 10 s")),
        (30, "kube-node-lease", Some("leases in kube-system with a timeout of 30 s")),
    ] {
        let check = check("V50", &fields(timeout, left_out)).await;
        let found = check.findings.iter().find(|finding| finding.kind == "may delay lease renewals too long");
        match (found, outlasts) {
            (None, None) => {}
            (Some(found), Some(expected)) => assert!(found.message.contains(expected), "{}", found.message),
            (found, _) => panic!("{timeout} s without {left_out}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn v50_only_warns_of_webhooks_that_fail_open() {
    let fields = json!({"rules": rules(&[""], &["pods"]), "failurePolicy": "Ignore"});
    let check = check("V50", &fields).await;
    finds(&check, &["matches system resources"]);
    assert_eq!(check.findings[0].severity, Severity::Warning);
}

#[tokio::test]
async fn v50_passes_a_webhook_that_excludes_system_namespaces() {
    let fields = json!({"rules": rules(&[""], &["pods"]), "namespaceSelector": elsewhere()});
    passes(&check("V50", &fields).await);
    passes(&check("V50", &json!({"rules": rules(&["example.com"], &["*"])})).await);
}

#[tokio::test]
async fn v51_finds_rules_for_reviews_of_access() {
    let fields = json!({"rules": rules(&["authentication.k8s.io"], &["tokenreviews"])});
    let found = check("V51", &fields).await;
    finds(&found, &["names virtual resources"]);
    assert!(found.findings[0].message.contains("tokenreviews.authentication.k8s.io"));

    let found = check("V51", &json!({"rules": rules(&["*"], &["*/*"])})).await;
    finds(&found, &["matches virtual resources before 1.37"]);
    assert_eq!(found.findings[0].severity, Severity::Note);
}

#[tokio::test]
async fn v51_passes_rules_for_stored_resources() {
    passes(&check("V51", &json!({})).await);
    passes(&check("V51", &json!({"rules": rules(&["*"], &["*/status"])})).await);
    passes(&check("V51", &json!({"rules": rules(&["*"], &["*"]), "failurePolicy": "Ignore"})).await);
    assert_eq!(verdict(&check("V51", &json!({"rules": []})).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v54_finds_webhooks_that_a_label_bypasses() {
    let opt_out = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
    let opt_in = json!({"matchLabels": {"inject": "yes"}});
    for (selector, kind, words) in [
        (opt_out, "can be bypassed with a label", "`!skip`"),
        (opt_in, "can be bypassed without a label", "`inject=yes`"),
    ] {
        for (configuration, severity) in [
            ("ValidatingWebhookConfiguration", Severity::Warning),
            ("MutatingWebhookConfiguration", Severity::Note),
        ] {
            let found = check_of(configuration, "V54", &json!({"objectSelector": selector})).await;
            finds(&found, &[kind]);
            let finding = &found.findings[0];
            assert_eq!(finding.severity, severity);
            assert!(finding.message.contains(words), "{}", finding.message);
        }
    }
}

#[tokio::test]
async fn v54_passes_namespace_selectors_and_skips_webhooks_that_fail_open() {
    passes(&check("V54", &json!({"namespaceSelector": elsewhere()})).await);
    let fields = json!({"objectSelector": {"matchLabels": {"a": "b"}}, "failurePolicy": "Ignore"});
    assert_eq!(verdict(&check("V54", &fields).await).0, Tally::NotApplicable);
}

#[tokio::test]
async fn v57_finds_missing_fields() {
    let found = check("V57", &json!({"admissionReviewVersions": ["v1beta1"]})).await;
    finds(&found, &["v1 is not listed", "failurePolicy is not set", "defaults"]);
    let defaults = &found.findings[2];
    assert_eq!(defaults.severity, Severity::Note);
    assert_eq!(
        defaults.message,
        "omitted fields have the defaults matchPolicy: Equivalent, reinvocationPolicy: Never"
    );
    let fields = json!({"failurePolicy": "Ignore", "matchPolicy": "Exact", "timeoutSeconds": null});
    let found = check_of("ValidatingWebhookConfiguration", "V57", &fields).await;
    finds(&found, &["defaults"]);
    assert_eq!(found.findings[0].message, "omitted fields have the defaults timeoutSeconds: 10");
}

#[tokio::test]
async fn v57_passes_a_configuration_with_all_fields() {
    let fields = json!({"failurePolicy": "Fail", "matchPolicy": "Equivalent", "reinvocationPolicy": "Never"});
    passes(&check("V57", &fields).await);
}

/// Returns the kind and the severity of each finding of V53.
async fn v53(fields: Value) -> Vec<(String, Severity)> {
    let found = check("V53", &fields).await;
    found.findings.iter().map(|finding| (finding.kind.clone(), finding.severity)).collect()
}

#[tokio::test]
async fn v53_reports_what_wildcards_match() {
    let note = |kind: &str| vec![(kind.to_owned(), Severity::Note)];
    assert_eq!(v53(json!({"rules": rules(&[""], &["*"])})).await, note("no subresources"));
    assert_eq!(v53(json!({"rules": rules(&["*"], &["*/*"])})).await, note("all subresources"));
    // A list next to the star is deliberate.
    assert_eq!(v53(json!({"rules": rules(&[""], &["*", "pods/exec"])})).await, []);
}

#[tokio::test]
async fn v53_finds_rules_that_never_match() {
    let warning = |kind: &str| vec![(kind.to_owned(), Severity::Warning)];
    let found = v53(json!({"rules": rules(&["autoscaling"], &["deployments/scale"])})).await;
    assert_eq!(found, warning("the group of the body"));
    for (scope, group, resource) in
        [("Namespaced", "", "nodes"), ("Namespaced", "", "namespaces"), ("Cluster", "*", "pods")]
    {
        let mut rules = rules(&[group], &[resource]);
        rules[0]["scope"] = json!(scope);
        assert_eq!(v53(json!({"rules": rules})).await, warning(&format!("excluded by scope {scope}")));
    }
    for (resource, selector) in [
        ("pods/exec", json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]})),
        ("deployments/scale", json!({"matchLabels": {"app": "web"}})),
    ] {
        let found = v53(json!({"rules": rules(&["*"], &[resource]), "objectSelector": selector})).await;
        assert_eq!(found, warning("objectSelector without labels to match"), "{resource}");
    }
}

#[tokio::test]
async fn v53_finds_rules_that_miss_other_versions() {
    let kind = || "matchPolicy Exact".to_owned();
    let fields = json!({"matchPolicy": "Exact"});
    assert_eq!(v53(fields).await, [(kind(), Severity::Warning)]);
    let fields = json!({"matchPolicy": "Exact", "failurePolicy": "Ignore"});
    assert_eq!(v53(fields).await, [(kind(), Severity::Note)]);
    passes(
        &check("V53", &json!({"matchPolicy": "Exact", "rules": rules(&["apps"], &["deployments"])})).await,
    );
}

#[tokio::test]
async fn v53_passes_rules_without_wildcards() {
    let mut scoped = rules(&[""], &["pods", "services"]);
    scoped[0]["scope"] = json!("Namespaced");
    passes(&check("V53", &json!({"rules": scoped})).await);
    let selector = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
    let fields = json!({"rules": rules(&["apps"], &["deployments/scale"]), "objectSelector": selector});
    passes(&check("V53", &fields).await);
    assert_eq!(verdict(&check("V53", &json!({"rules": []})).await).0, Tally::NotApplicable);
}
