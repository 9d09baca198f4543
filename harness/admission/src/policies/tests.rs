//! Tests how validating policies are applied to a request.

use serde_json::json;

use super::*;
use crate::attributes::{GroupVersionKind, GroupVersionResource};
use crate::audit;
use crate::cluster_state::{ClusterState, EquivalentResource};
use crate::event::{Event, Record};
use crate::ownership::TimePrecision;
use crate::policy::{MatchField, validating_binding, validating_policy};
use crate::testing::create_config_map;

/// A cluster with three `ConfigMap`s as params. It also serves the kind `Limit`, without any objects.
struct Cluster;

impl ClusterState for Cluster {
    fn namespace(&self, name: &str) -> Option<Arc<Value>> {
        Some(Arc::new(json!({"metadata": {"name": name, "labels": {"env": "test"}, "managedFields": []}})))
    }

    fn equivalent_resources(&self, _: &GroupVersionResource, _: &str) -> Arc<[EquivalentResource]> {
        Arc::default()
    }

    fn convert(&self, _: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        Err(ConversionError::Refused(format!("cannot convert to {kind}")))
    }

    fn set_defaults(&self, _: &mut Value) {}

    fn is_built_in(&self, _: &GroupVersionKind) -> bool {
        true
    }

    fn is_namespaced(&self, kind: &GroupVersionKind) -> Option<bool> {
        match kind.kind.as_str() {
            "ConfigMap" => Some(true),
            "Limit" => Some(false),
            _ => None,
        }
    }

    fn stored(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Vec<Arc<Value>> {
        let all = [("ns", "a", "1"), ("ns", "b", "2"), ("other", "a", "3")];
        all.into_iter()
            .filter(|(own, named, _)| {
                kind.kind == "ConfigMap" && *own == namespace && (name.is_empty() || *named == name)
            })
            .map(|(namespace, name, max)| {
                Arc::new(json!({
                    "metadata": {"name": name, "namespace": namespace, "labels": {"name": name}},
                    "data": {"max": max},
                }))
            })
            .collect()
    }
}

fn hook(policy: &Value, bindings: &[Value]) -> ValidatingHook {
    let mut spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        }]},
    });
    let members = policy.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(members);
    let policy = json!({"metadata": {"name": "p"}, "spec": spec});
    let bindings = bindings.iter().enumerate().map(|(index, binding)| {
        let mut spec = json!({"policyName": "p", "validationActions": ["Deny"]});
        spec.as_object_mut().unwrap().extend(binding.as_object().unwrap().clone());
        let binding = json!({"metadata": {"name": format!("b{index}")}, "spec": spec});
        Arc::new(validating_binding(&binding).unwrap())
    });
    ValidatingHook { policy: Arc::new(validating_policy(&policy).unwrap()), bindings: bindings.collect() }
}

fn run_hooks(hooks: &[ValidatingHook], attributes: Attributes) -> (Option<Box<Status>>, PoliciesChecked) {
    let mut run = AdmissionRun::new(attributes, TimePrecision::Seconds, &Cluster);
    let Checked { record, refusal } = validate(hooks, &mut run, None).unwrap();
    let status = refusal.map(|refusal| match refusal {
        Refusal::Status(status) => status,
        Refusal::Unsupported(unsupported) => Box::new(Status::unsupported(&unsupported)),
    });
    (status, record)
}

#[test]
fn policies_are_not_evaluated_after_the_deadline() {
    let hooks = [hook(&validation("false"), &[json!({})])];
    let mut run = AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &Cluster);
    let deadline = Some(tokio::time::Instant::now());
    let Checked { refusal, .. } = validate(&hooks, &mut run, deadline).unwrap();
    assert!(matches!(refusal, Some(Refusal::Status(status)) if status.code == 504));
}

/// Returns the message after `denied request: `, or `allowed`.
#[track_caller]
fn outcome(policy: &Value, bindings: &[Value]) -> String {
    let (status, _) = run_hooks(&[hook(policy, bindings)], create_config_map());
    status.map_or("allowed".to_owned(), |status| {
        let message = status.message.split_once(" denied request: ").map(|(_, message)| message.to_owned());
        message.unwrap_or(status.message)
    })
}

fn validation(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[test]
fn false_validation_denies_with_the_first_usable_message() {
    let (status, _) = run_hooks(&[hook(&validation(" object == null "), &[json!({})])], create_config_map());
    let status = status.unwrap();
    let message =
        "ValidatingAdmissionPolicy 'p' with binding 'b0' denied request: failed expression: object == null";
    assert_eq!(status.message, format!("configmaps \"n\" is forbidden: {message}"));
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.details.unwrap().causes[0].message, message);
    let message = |text: &str, message: &str| {
        let validation = json!({"expression": "false", "message": message, "messageExpression": text, "reason": "Forbidden"});
        outcome(&json!({"validations": [validation]}), &[json!({})])
    };
    assert_eq!(message("'a' + object.metadata.name", ""), "an");
    assert_eq!(message("' '", " b "), "b");
    assert_eq!(message("'a\\nb'", "c"), "c");
    assert_eq!(message("object.missing", "d"), "d");
    assert_eq!(message("authorizer.path('/a').check('get').reason()", ""), "failed expression: false");
}

#[test]
fn failing_expression_follows_the_failure_policy() {
    let mut policy = validation("object.missing == 1");
    let error = "expression 'object.missing == 1' resulted in error: no such key: missing";
    assert_eq!(outcome(&policy, &[json!({})]), error);
    assert_eq!(outcome(&policy, &[json!({"validationActions": ["Warn"]})]), "allowed");
    policy["failurePolicy"] = json!("Ignore");
    assert_eq!(outcome(&policy, &[json!({})]), "allowed");
}

#[test]
fn variables_are_composed_and_evaluated_once() {
    let mut policy = validation("variables.b == 'vv' && variables.b.size() == 2");
    policy["variables"] = json!([
        {"name": "a", "expression": "object.data.k"},
        {"name": "b", "expression": "variables.a + variables.a"},
        {"name": "unused", "expression": "object.missing"},
    ]);
    let (status, record) = run_hooks(&[hook(&policy, &[json!({})])], create_config_map());
    assert_eq!(status, None);
    let expressions: Vec<String> = record.policies[0].bindings[0].runs[0]
        .expressions
        .iter()
        .map(|evaluated| {
            format!("{} = {} ({})", evaluated.expression, evaluated.value.clone().unwrap(), evaluated.cost)
        })
        .collect();
    assert_eq!(
        expressions,
        [
            "object.data.k = \"v\" (3)",
            "variables.a + variables.a = \"vv\" (5)",
            "variables.b == 'vv' && variables.b.size() == 2 = true (7)",
        ]
    );
    policy["validations"] = json!([{"expression": "variables.unused == 1"}]);
    assert_eq!(
        outcome(&policy, &[json!({})]),
        "expression 'variables.unused == 1' resulted in error: composited variable \"unused\" fails to evaluate: no such key: missing"
    );
}

#[test]
fn many_variables_that_use_each_other_do_not_overflow_the_stack() {
    let chain = |length: usize| {
        let sum = |index: usize| format!("variables.v{} + 1", index - 1);
        let variables: Vec<Value> = (0..length)
            .map(|index| {
                let expression = if index == 0 { "0".to_owned() } else { sum(index) };
                json!({"name": format!("v{index}"), "expression": expression})
            })
            .collect();
        let mut policy = validation(&format!("variables.v{0} == {0}", length - 1));
        policy["variables"] = json!(variables);
        outcome(&policy, &[json!({})])
    };
    assert_eq!(chain(300), "allowed");
    assert!(chain(6000).contains("variables that use each other more than 1000 levels deep"));
}

#[test]
fn match_conditions_exclude_requests_and_follow_the_failure_policy() {
    let mut policy = validation("false");
    policy["matchConditions"] = json!([{"name": "c", "expression": "request.name != 'n'"}]);
    assert_eq!(outcome(&policy, &[json!({})]), "allowed");
    policy["matchConditions"] = json!([{"name": "c", "expression": "namespaceObject != null"}]);
    assert_eq!(outcome(&policy, &[json!({})]), "allowed");
    policy["matchConditions"] = json!([{"name": "c", "expression": "object.missing"}]);
    assert_eq!(outcome(&policy, &[json!({})]), "compilation error: must evaluate to bool but got dyn");
    policy["failurePolicy"] = json!("Ignore");
    assert_eq!(outcome(&policy, &[json!({})]), "allowed");
}

#[test]
fn params_come_from_the_namespace_of_the_request_or_of_the_binding() {
    let mut policy = validation("params.data.max == '1'");
    policy["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let check = |reference: Value| outcome(&policy, &[json!({"paramRef": reference})]);
    let failed = "failed expression: params.data.max == '1'";
    assert_eq!(check(json!({"name": "a", "parameterNotFoundAction": "Deny"})), "allowed");
    assert_eq!(check(json!({"name": "b", "parameterNotFoundAction": "Deny"})), failed);
    assert_eq!(check(json!({"name": "a", "namespace": "other", "parameterNotFoundAction": "Deny"})), failed);
    assert_eq!(check(json!({"name": "c", "parameterNotFoundAction": "Allow"})), "allowed");
    let missing =
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(check(json!({"name": "c", "parameterNotFoundAction": "Deny"})), missing);
    let selector = json!({"matchLabels": {"name": "b"}});
    assert_eq!(check(json!({"selector": selector, "parameterNotFoundAction": "Deny"})), failed);
    assert_eq!(
        outcome(&policy, &[json!({})]),
        "expression 'params.data.max == '1'' resulted in error: no such key: data"
    );
}

#[test]
fn wrong_params_are_configuration_errors_regardless_of_the_actions() {
    let check = |kind: &str, reference: Value| {
        let mut policy = validation("true");
        policy["paramKind"] = json!({"apiVersion": "v1", "kind": kind});
        outcome(&policy, &[json!({"validationActions": ["Warn"], "paramRef": reference})])
    };
    assert_eq!(
        check("Unknown", json!({"name": "a"})),
        "failed to configure policy: failed to find resource referenced by paramKind: '/v1, Kind=Unknown'"
    );
    assert_eq!(
        check("Limit", json!({"name": "a", "namespace": "ns"})),
        "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    );
}

#[test]
fn violations_and_annotations_reach_the_audit_log() {
    let mut policy = json!({"validations": [
        {"expression": "true"},
        {"expression": "false", "message": "no <x>"},
    ]});
    policy["auditAnnotations"] = json!([
        {"key": "name", "valueExpression": "object.metadata.name + string(params.data.max)"},
        {"key": "none", "valueExpression": "null"},
    ]);
    policy["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let reference = json!({"selector": {}, "parameterNotFoundAction": "Deny"});
    let binding = json!({"validationActions": ["Audit", "Warn"], "paramRef": reference});
    let (status, record) = run_hooks(&[hook(&policy, &[binding])], create_config_map());
    assert_eq!(status, None);
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b0': no <x>";
    assert_eq!(record.warnings, [warning, warning]);
    let record = Record { events: vec![Event::Policies(Box::new(record))], ..Record::default() };
    let annotations = audit::annotations(&record);
    assert_eq!(annotations["p/name"], "n1, n2");
    let one = r#"{"message":"no \u003cx\u003e","policy":"p","binding":"b0","expressionIndex":1,"validationActions":["Audit","Warn"]}"#;
    assert_eq!(
        annotations["validation.policy.admission.k8s.io/validation_failure"],
        format!("[{one},{one}]")
    );
    assert_eq!(annotations.len(), 2);
}

#[test]
fn resource_names_exclusions_and_binding_resources_restrict_a_policy() {
    let rule = |names: &[&str]| {
        json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
               "resourceNames": names})
    };
    let check = |constraints: Value, binding: Value| {
        let mut policy = validation("false");
        policy["matchConstraints"] = constraints;
        outcome(&policy, &[binding]) != "allowed"
    };
    assert!(check(json!({"resourceRules": [rule(&["x", "n"])]}), json!({})));
    assert!(!check(json!({"resourceRules": [rule(&["x"])]}), json!({})));
    let excluded = json!({"resourceRules": [rule(&[])], "excludeResourceRules": [rule(&["n"])]});
    assert!(!check(excluded, json!({})));
    let all = || json!({"resourceRules": [rule(&[])]});
    let selector =
        |value: &str| json!({"matchResources": {"namespaceSelector": {"matchLabels": {"env": value}}}});
    assert!(check(all(), selector("test")));
    assert!(!check(all(), selector("prod")));
}

#[test]
fn skipped_policies_and_bindings_have_the_compared_values() {
    let rule = |names: &[&str], operation: &str| {
        json!({"operations": [operation], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
               "resourceNames": names})
    };
    let all = json!([rule(&[], "*")]);
    let record = |constraints: Value, binding: Value, explains: bool| {
        let mut policy = validation("false");
        policy["matchConstraints"] = constraints;
        let mut run = AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &Cluster)
            .explaining_policies(explains);
        validate(&[hook(&policy, &[binding])], &mut run, None).unwrap().record
    };
    for (constraints, field, compared) in [
        (
            json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            MatchField::NamespaceSelector,
            &[r#"namespaceSelector requires env=prod; the namespace "ns" has the labels {"env":"test"}"#][..],
        ),
        (
            json!({"objectSelector": {"matchLabels": {"app": "web"}}}),
            MatchField::ObjectSelector,
            &["objectSelector requires app=web; the object has no labels"],
        ),
        (
            json!({"resourceRules": [rule(&[], "DELETE"), rule(&["x"], "*")]}),
            MatchField::ResourceRules,
            &[
                r#"resourceRules[0].operations has ["DELETE"], but the request has "CREATE""#,
                r#"resourceRules[1].resourceNames has ["x"], but the request has "n""#,
            ],
        ),
        (
            json!({"resourceRules": all, "excludeResourceRules": [rule(&["x"], "*"), rule(&["n"], "*")]}),
            MatchField::ExcludeResourceRules,
            &["excludeResourceRules[1] matches the request"],
        ),
    ] {
        let found = record(constraints.clone(), json!({}), true).skipped;
        assert_eq!((&*found[0].policy, found[0].mismatch.field), ("p", field));
        assert_eq!(found[0].mismatch.compared, compared);
        assert_eq!(record(constraints.clone(), json!({}), false).skipped, []);
        let found = record(json!({"resourceRules": all}), json!({"matchResources": constraints}), true);
        let mismatch = found.policies[0].bindings[0].mismatch.clone().unwrap();
        assert_eq!(
            (mismatch.field, mismatch.compared),
            (field, compared.iter().map(|&it| it.to_owned()).collect())
        );
    }
}

#[test]
fn policies_and_reviews_are_exempt() {
    let hooks = [hook(
        &json!({"validations": [{"expression": "false"}], "matchConstraints": {"resourceRules": [
            {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]},
        ]}}),
        &[json!({})],
    )];
    for (group, resource, denied) in [
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", false),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", true),
        ("authorization.k8s.io", "subjectaccessreviews", false),
        ("", "configmaps", true),
    ] {
        let resource = GroupVersionResource::new(group, "v1", resource);
        let attributes = Attributes { resource: resource.clone(), ..create_config_map() };
        assert_eq!(run_hooks(&hooks, attributes).0.is_some(), denied, "{resource}");
    }
}
