//! Tests the complete decision: selectors, exemptions, equivalent resources, and their order.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_types::selector::Selector;
use serde_json::{Value, json};

use super::*;
use crate::attributes::{Operation, UserInfo};
use crate::cluster_state::{ClusterState, EquivalentResource};
use crate::config::{self, Source};
use crate::ownership::TimePrecision;

/// A cluster state with labeled namespaces and equivalent resources.
#[derive(Default)]
struct State {
    namespaces: BTreeMap<String, Arc<Value>>,
    equivalents: Vec<EquivalentResource>,
}

impl State {
    fn namespace(mut self, name: &str, label: &str) -> Self {
        let namespace = json!({"metadata": {"name": name, "labels": {"env": label}}});
        self.namespaces.insert(name.to_owned(), Arc::new(namespace));
        self
    }

    fn equivalent(mut self, path: &str, kind: Option<&str>) -> Self {
        let resource = resource(path);
        let kind = kind.map(|kind| GroupVersionKind::new(&resource.group, &resource.version, kind).into());
        self.equivalents.push(EquivalentResource { resource: resource.into(), kind });
        self
    }
}

impl ClusterState for State {
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        self.namespaces.get(name).cloned()
    }

    fn equivalent_resources(&self, _: &GroupVersionResource, _: &str) -> Arc<[EquivalentResource]> {
        self.equivalents.clone().into()
    }

    fn convert(&self, object: &Value, _: &GroupVersionKind) -> Result<Value, ConversionError> {
        Ok(object.clone())
    }

    fn set_defaults(&self, _: &mut Value) {}

    fn is_built_in(&self, _: &GroupVersionKind) -> bool {
        true
    }
}

fn resource(path: &str) -> GroupVersionResource {
    let parts: Vec<&str> = path.split('/').collect();
    GroupVersionResource::new(parts[0], parts[1], parts[2])
}

/// Decides whether `webhook` is called, in a new admission run.
fn decide(webhook: &Webhook, attributes: &Attributes, state: &State) -> Decision {
    super::decide(webhook, &mut AdmissionRun::new(attributes.clone(), TimePrecision::Seconds, state)).decision
}

/// Returns a webhook with one rule that matches everything; `more` replaces fields.
fn webhook(more: &Value) -> Webhook {
    let mut entry = json!({
        "name": "w.example.com",
        "clientConfig": {"url": "https://127.0.0.1/"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [rule("*", "*", "*/*")],
    });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [entry],
    });
    config::webhooks(&configuration).unwrap().remove(0)
}

fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!({"operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": [resource]})
}

fn labeled(label: &str) -> Value {
    json!({"metadata": {"labels": {"env": label}}})
}

/// Returns a request in the namespace `default`, with a new object without labels.
fn attributes(operation: Operation, path: &str, kind: &str) -> Attributes {
    let resource = resource(path);
    Attributes {
        operation,
        kind: GroupVersionKind::new(&resource.group, &resource.version, kind),
        resource,
        subresource: String::new(),
        namespace: "default".to_owned(),
        name: "n".to_owned(),
        object: Some(json!({"metadata": {}})),
        old_object: None,
        options: None,
        dry_run: false,
        user: UserInfo::default(),
    }
}

fn pods() -> Attributes {
    attributes(Operation::Create, "/v1/pods", "Pod")
}

fn is_prod() -> Value {
    json!({"matchLabels": {"env": "prod"}})
}

fn is_not_prod() -> Value {
    json!({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]})
}

#[track_caller]
fn check_called(decision: &Decision, path: &str, kind: &str) {
    let resource = resource(path);
    let kind = GroupVersionKind::new(&resource.group, &resource.version, kind);
    assert_eq!(*decision, Decision::Call(Invocation { resource: resource.into(), kind: kind.into() }));
}

#[track_caller]
fn check_skipped(decision: &Decision, mismatch: Mismatch) {
    assert_eq!(*decision, Decision::Skip(mismatch));
}

#[track_caller]
fn check_refused(decision: &Decision, code: i32, message: &str) {
    match decision {
        Decision::Refuse(status) => assert_eq!((status.code, status.message.as_str()), (code, message)),
        Decision::Call(_) | Decision::Skip(_) | Decision::Unconvertible(_) => panic!("{decision:?}"),
    }
}

#[test]
fn a_webhook_without_rules_is_never_called() {
    check_skipped(&decide(&webhook(&json!({"rules": []})), &pods(), &State::default()), Mismatch::Rules);
}

#[test]
fn conditions_are_evaluated_last_and_errors_follow_the_failure_policy() {
    let (missing, fail) = ("object.metadata.labels.missing == 'x'", "Fail");
    for (expression, policy, expect) in [
        ("request.operation == 'CREATE'", fail, "called"),
        ("request.operation == 'DELETE'", fail, "skipped"),
        (missing, "Ignore", "skipped"),
        (missing, fail, "refused"),
    ] {
        let conditions = json!([{"name": "c", "expression": expression}]);
        let webhook = webhook(&json!({"matchConditions": conditions, "failurePolicy": policy}));
        let decision = decide(&webhook, &pods(), &State::default());
        let found = match &decision {
            Decision::Call(_) => "called",
            Decision::Skip(Mismatch::Conditions) => "skipped",
            Decision::Refuse(status) if status.code == 403 => "refused",
            Decision::Skip(_) | Decision::Refuse(_) | Decision::Unconvertible(_) => "something else",
        };
        assert_eq!(found, expect, "{expression} {policy}: {decision:?}");
        let state = State::default();
        let mut run = AdmissionRun::new(pods(), TimePrecision::Seconds, &state);
        assert_eq!(is_called(&webhook, &mut run), expect == "called", "{expression} {policy}");
    }
}

#[test]
fn an_exact_match_carries_the_requests_own_resource_and_kind() {
    let mut scale = attributes(Operation::Update, "apps/v1/deployments", "Scale");
    scale.kind = GroupVersionKind::new("autoscaling", "v1", "Scale");
    scale.subresource = "scale".to_owned();
    let decision = decide(&webhook(&json!({})), &scale, &State::default());
    let expect = Invocation { resource: scale.resource.clone().into(), kind: scale.kind.clone().into() };
    assert_eq!(decision, Decision::Call(expect));
}

#[test]
fn admission_configurations_are_exempt_by_kind() {
    for kind in [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ] {
        let request = attributes(Operation::Delete, "admissionregistration.k8s.io/v1beta1/any", kind);
        check_skipped(&decide(&webhook(&json!({})), &request, &State::default()), Mismatch::Exempt);
    }
    let other = attributes(Operation::Create, "example.com/v1/any", "MutatingWebhookConfiguration");
    check_called(
        &decide(&webhook(&json!({})), &other, &State::default()),
        "example.com/v1/any",
        "MutatingWebhookConfiguration",
    );
}

/// Rule: EXM-02.
#[test]
fn a_manifest_webhook_is_called_for_admission_configurations() {
    let from_file = Webhook { source: Source::Manifest, ..webhook(&json!({})) };
    let path = "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let kind = "MutatingWebhookConfiguration";
    let request = attributes(Operation::Delete, path, kind);
    check_called(&decide(&from_file, &request, &State::default()), path, kind);
    check_skipped(&decide(&webhook(&json!({})), &request, &State::default()), Mismatch::Exempt);
}

#[test]
fn authentication_and_authorization_reviews_are_exempt_in_every_version() {
    for (path, exempt) in [
        ("authentication.k8s.io/v1/selfsubjectreviews", true),
        ("authentication.k8s.io/v1/tokenreviews", true),
        ("authorization.k8s.io/v1/localsubjectaccessreviews", true),
        ("authorization.k8s.io/v1/selfsubjectaccessreviews", true),
        ("authorization.k8s.io/v1beta1/selfsubjectrulesreviews", true),
        ("authorization.k8s.io/v1/subjectaccessreviews", true),
        ("example.com/v1/tokenreviews", false),
        ("/v1/bindings", false),
    ] {
        let decision =
            decide(&webhook(&json!({})), &attributes(Operation::Create, path, "K"), &State::default());
        assert_eq!(decision == Decision::Skip(Mismatch::Exempt), exempt, "{path}");
        let from_file = Webhook { source: Source::Manifest, ..webhook(&json!({})) };
        assert_eq!(
            decide(&from_file, &attributes(Operation::Create, path, "K"), &State::default()),
            decision,
            "{path}"
        );
    }
}

#[test]
fn the_namespace_selector_matches_the_stored_namespace() {
    let state = State::default().namespace("default", "prod");
    let picks = webhook(&json!({"namespaceSelector": is_prod()}));
    let omits = webhook(&json!({"namespaceSelector": is_not_prod()}));
    check_called(&decide(&picks, &pods(), &state), "/v1/pods", "Pod");
    check_skipped(&decide(&omits, &pods(), &state), Mismatch::NamespaceSelector);
}

#[test]
fn an_invalid_selector_rejects_the_request_if_all_else_matches() {
    let state = State::default().namespace("default", "prod");
    let broken = || Selector::parse_stored(&json!({"matchLabels": {"env": "no label!"}})).unwrap();
    let error = format!("Internal error occurred: {}", broken().error().unwrap());
    for rules in [json!([rule("*", "*", "*/*")]), json!([rule("apps", "v1", "*")])] {
        let matches = rules[0]["apiGroups"] == json!(["*"]);
        let by_namespace =
            Webhook { namespace_selector: broken(), ..webhook(&json!({"rules": rules.clone()})) };
        let by_object = Webhook { object_selector: broken(), ..webhook(&json!({"rules": rules})) };
        for webhook in [by_namespace, by_object] {
            let decision = decide(&webhook, &pods(), &state);
            if matches {
                check_refused(&decision, 500, &error);
            } else {
                check_skipped(&decision, Mismatch::Rules);
            }
        }
    }
}

#[test]
fn a_namespace_request_without_an_object_is_rejected() {
    let mut request = attributes(Operation::Create, "/v1/namespaces", "Namespace");
    request.object = None;
    let picks = webhook(&json!({"namespaceSelector": is_prod()}));
    check_refused(
        &decide(&picks, &request, &State::default()),
        500,
        "Internal error occurred: object does not implement the Object interfaces",
    );
}

#[test]
fn a_cluster_scoped_object_always_matches_the_namespace_selector() {
    let mut node = attributes(Operation::Create, "/v1/nodes", "Node");
    node.namespace = String::new();
    let picks = webhook(&json!({"namespaceSelector": is_prod()}));
    check_called(&decide(&picks, &node, &State::default()), "/v1/nodes", "Node");
}

#[test]
fn a_missing_namespace_rejects_the_request_if_all_else_matches() {
    let picks = webhook(&json!({"namespaceSelector": is_prod()}));
    check_refused(&decide(&picks, &pods(), &State::default()), 404, "namespaces \"default\" not found");
}

#[test]
fn a_missing_namespace_is_ignored_for_webhooks_that_do_not_match() {
    let other_rule = webhook(&json!({"namespaceSelector": is_prod(), "rules": [rule("apps", "v1", "*")]}));
    check_skipped(&decide(&other_rule, &pods(), &State::default()), Mismatch::Rules);
    let other_object = webhook(&json!({"namespaceSelector": is_prod(), "objectSelector": is_prod()}));
    check_skipped(&decide(&other_object, &pods(), &State::default()), Mismatch::ObjectSelector);
}

#[test]
fn an_empty_namespace_selector_needs_no_namespace() {
    check_called(&decide(&webhook(&json!({})), &pods(), &State::default()), "/v1/pods", "Pod");
}

#[test]
fn a_changing_namespace_is_matched_by_its_new_labels() {
    let state = State::default().namespace("default", "test");
    let picks = webhook(&json!({"namespaceSelector": is_prod()}));
    for (operation, subresource, object, called) in [
        (Operation::Create, "", Some(labeled("prod")), true),
        (Operation::Update, "", Some(labeled("prod")), true),
        (Operation::Update, "", Some(labeled("test")), false),
        // Deletions and subresources use the stored labels.
        (Operation::Delete, "", None, false),
        (Operation::Update, "status", Some(labeled("prod")), false),
        (Operation::Update, "finalize", Some(labeled("prod")), false),
    ] {
        let mut request = attributes(operation, "/v1/namespaces", "Namespace");
        request.subresource = subresource.to_owned();
        request.object = object;
        let decision = decide(&picks, &request, &state);
        assert_eq!(matches!(decision, Decision::Call(_)), called, "{operation} {subresource}: {decision:?}");
    }
}

#[test]
fn a_new_namespace_need_not_be_stored_yet() {
    let mut request = attributes(Operation::Create, "/v1/namespaces", "Namespace");
    request.object = Some(labeled("prod"));
    let picks = webhook(&json!({"namespaceSelector": is_prod()}));
    check_called(&decide(&picks, &request, &State::default()), "/v1/namespaces", "Namespace");
}

#[test]
fn the_object_selector_matches_the_new_or_the_old_object() {
    let picks = webhook(&json!({"objectSelector": is_prod()}));
    for (object, old_object, called) in [
        (Some(labeled("prod")), None, true),
        (Some(labeled("prod")), Some(labeled("test")), true),
        (Some(labeled("test")), Some(labeled("prod")), true),
        (None, Some(labeled("prod")), true),
        (Some(labeled("test")), Some(labeled("test")), false),
        (None, None, false),
        (Some(json!({"metadata": {}})), None, false),
    ] {
        let request = Attributes { object, old_object, ..pods() };
        let decision = decide(&picks, &request, &State::default());
        assert_eq!(matches!(decision, Decision::Call(_)), called, "{request:?}: {decision:?}");
    }
}

#[test]
fn a_negative_object_selector_still_needs_an_object_with_metadata() {
    let picks = webhook(&json!({"objectSelector": is_not_prod()}));
    for (object, called) in [
        (Some(json!({"metadata": {}})), true),
        (Some(json!({"kind": "PodExecOptions"})), false),
        (None, false),
    ] {
        let request = Attributes { operation: Operation::Connect, object, ..pods() };
        let decision = decide(&picks, &request, &State::default());
        assert_eq!(matches!(decision, Decision::Call(_)), called, "{request:?}: {decision:?}");
    }
}

#[test]
fn an_empty_object_selector_needs_no_object() {
    let request = Attributes { object: None, ..pods() };
    check_called(&decide(&webhook(&json!({})), &request, &State::default()), "/v1/pods", "Pod");
}

#[test]
fn selectors_are_checked_before_rules_and_the_namespace_selector_first() {
    let state = State::default().namespace("default", "test");
    let none = json!([rule("apps", "v1", "*")]);
    let both = webhook(&json!({"namespaceSelector": is_prod(), "objectSelector": is_prod(), "rules": none}));
    check_skipped(&decide(&both, &pods(), &state), Mismatch::NamespaceSelector);
    let object = webhook(&json!({"objectSelector": is_prod(), "rules": none}));
    check_skipped(&decide(&object, &pods(), &state), Mismatch::ObjectSelector);
}

fn autoscalers() -> State {
    State::default()
        .equivalent("autoscaling/v2/horizontalpodautoscalers", Some("HorizontalPodAutoscaler"))
        .equivalent("autoscaling/v1/horizontalpodautoscalers", Some("HorizontalPodAutoscaler"))
}

fn autoscaler_v2() -> Attributes {
    attributes(Operation::Create, "autoscaling/v2/horizontalpodautoscalers", "HorizontalPodAutoscaler")
}

#[test]
fn an_exact_webhook_is_not_called_for_an_equivalent_resource() {
    let v1 = json!([rule("autoscaling", "v1", "*")]);
    let exact = webhook(&json!({"rules": v1, "matchPolicy": "Exact"}));
    check_skipped(&decide(&exact, &autoscaler_v2(), &autoscalers()), Mismatch::Rules);
    let equivalent = webhook(&json!({"rules": v1, "matchPolicy": "Equivalent"}));
    check_called(
        &decide(&equivalent, &autoscaler_v2(), &autoscalers()),
        "autoscaling/v1/horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
    );
}

#[test]
fn a_later_rule_that_matches_exactly_beats_an_earlier_one_that_matches_an_equivalent() {
    let rules = json!([rule("autoscaling", "v1", "*"), rule("autoscaling", "v2", "*")]);
    check_called(
        &decide(&webhook(&json!({"rules": rules})), &autoscaler_v2(), &autoscalers()),
        "autoscaling/v2/horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
    );
}

#[test]
fn the_order_of_rules_takes_precedence_over_the_order_of_versions() {
    let state = State::default()
        .equivalent("e.com/v1/things", Some("Thing"))
        .equivalent("e.com/v2/things", Some("Thing"))
        .equivalent("e.com/v3/things", Some("Thing"));
    let request = attributes(Operation::Create, "e.com/v3/things", "Thing");
    let by_rule = webhook(&json!({"rules": [rule("e.com", "v2", "*"), rule("e.com", "v1", "*")]}));
    check_called(&decide(&by_rule, &request, &state), "e.com/v2/things", "Thing");
    let mut both = rule("e.com", "v2", "*");
    both["apiVersions"] = json!(["v2", "v1"]);
    let by_version = webhook(&json!({"rules": [both]}));
    check_called(&decide(&by_version, &request, &state), "e.com/v1/things", "Thing");
}

#[test]
fn an_equivalent_without_a_known_kind_rejects_the_request() {
    let state = State::default()
        .equivalent("apps/v1/deployments", Some("Scale"))
        .equivalent("extensions/v1beta1/deployments", None);
    let request = attributes(Operation::Update, "apps/v1/deployments", "Scale");
    check_refused(
        &decide(&webhook(&json!({"rules": [rule("extensions", "*", "*")]})), &request, &state),
        500,
        "Internal error occurred: unable to convert to extensions/v1beta1, Resource=deployments: unknown kind",
    );
    let core = State::default().equivalent("/v1/events", None);
    let request = attributes(Operation::Create, "events.k8s.io/v1/events", "Event");
    check_refused(
        &decide(&webhook(&json!({"rules": [rule("", "v1", "*")]})), &request, &core),
        500,
        "Internal error occurred: unable to convert to /v1, Resource=events: unknown kind",
    );
}

#[test]
fn an_equivalent_resource_keeps_the_operation_and_the_scope_of_the_request() {
    let mut v1 = rule("autoscaling", "v1", "*");
    v1["operations"] = json!(["DELETE"]);
    check_skipped(
        &decide(&webhook(&json!({"rules": [v1.clone()]})), &autoscaler_v2(), &autoscalers()),
        Mismatch::Rules,
    );
    v1["operations"] = json!(["CREATE"]);
    v1["scope"] = json!("Cluster");
    check_skipped(
        &decide(&webhook(&json!({"rules": [v1]})), &autoscaler_v2(), &autoscalers()),
        Mismatch::Rules,
    );
}
