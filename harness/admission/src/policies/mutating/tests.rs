//! Tests how mutating policies are applied to a request.

use serde_json::json;

use super::*;
use crate::attributes::GroupVersionResource;
use crate::cluster_state::{ClusterState, EquivalentResource};
use crate::event::Event;
use crate::ownership::TimePrecision;
use crate::policy::{mutating_binding, mutating_policy};
use crate::testing::{NoCluster, create_config_map};

fn hook(name: &str, spec: Value) -> MutatingHook {
    let Value::Object(fields) = spec else { unreachable!() };
    let mut spec = json!({"matchConstraints": {"resourceRules": [{
        "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
    }]}});
    spec.as_object_mut().unwrap().extend(fields);
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let binding = json!({"metadata": {"name": "b"}, "spec": {"policyName": name}});
    let (policy, binding) = (mutating_policy(&policy).unwrap(), mutating_binding(&binding).unwrap());
    MutatingHook { policy: Arc::new(policy), bindings: vec![Arc::new(binding)] }
}

fn applies(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patches(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// Applies policies in one round, and returns the data of the object and the rejection.
fn apply(hooks: &[MutatingHook], run: &mut AdmissionRun<'_>, round: Round) -> (Value, Option<Box<Status>>) {
    let mut mutating = select(hooks, run, round).unwrap();
    while let Some(kind) = mutating.next_kind() {
        run.convert(&kind).unwrap();
        mutating.apply_next(run, None);
    }
    let Checked { record, refusal } = mutating.finish(run.attributes());
    run.record.events.push(Event::Policies(Box::new(record)));
    let status = refusal.map(|refusal| match refusal {
        Refusal::Status(status) => status,
        Refusal::Unsupported(unsupported) => panic!("{unsupported}"),
    });
    (run.attributes().object.as_ref().unwrap()["data"].clone(), status)
}

fn run() -> AdmissionRun<'static> {
    AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &NoCluster)
}

#[test]
fn a_policy_sees_the_changes_and_defaults_of_earlier_mutations() {
    let first = hook("a", json!({"mutations": [applies("Object{data: {'a': string(size(object.data))}}")]}));
    let mutations = [
        applies("Object{data: {'b': object.data.a + object.data.defaulted}}"),
        patches("[JSONPatch{op: 'move', from: '/data/b', path: '/data/c'}]"),
    ];
    let second = hook("b", json!({"mutations": mutations}));
    let (data, status) = apply(&[first, second], &mut run(), Round::First);
    assert_eq!(status, None);
    assert_eq!(data, json!({"k": "v", "a": "1", "c": "1yes", "defaulted": "yes"}));
}

#[test]
fn all_policies_match_the_object_before_the_first_change() {
    let labels = applies("Object{metadata: Object.metadata{labels: {'by': 'a'}}}");
    let first = hook("a", json!({"mutations": [labels]}));
    let rules = json!([{
        "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
    }]);
    let constraints = json!({"resourceRules": rules, "objectSelector": {"matchLabels": {"by": "a"}}});
    let mutations = [applies("Object{data: {'b': 'b'}}")];
    let second = hook("b", json!({"matchConstraints": constraints, "mutations": mutations}));
    let (data, _) = apply(&[first, second], &mut run(), Round::First);
    assert_eq!(data, json!({"k": "v", "defaulted": "yes"}));
}

#[test]
fn all_errors_under_fail_are_causes_and_later_mutations_are_applied() {
    let mutations = [
        applies("Object{data: {'a': object.data.missing}}"),
        applies("Object{data: {'b': 'b'}}"),
        patches("[JSONPatch{op: 'remove', path: '/data/missing'}]"),
    ];
    let ignored = hook("i", json!({"mutations": mutations, "failurePolicy": "Ignore"}));
    assert_eq!(apply(&[ignored], &mut run(), Round::First).1, None);
    let (data, status) = apply(&[hook("p", json!({"mutations": mutations}))], &mut run(), Round::First);
    assert_eq!(data["b"], "b");
    let status = status.unwrap();
    let message = "policy 'p' with binding 'b' denied request: expression 'Object{data: {'a': \
                   object.data.missing}}' resulted in error: no such key: missing";
    assert_eq!((status.code, &*status.reason, &*status.message), (403, "Invalid", message));
    assert_eq!(status.details.unwrap().causes.len(), 2);
}

#[test]
fn a_policy_is_applied_again_only_if_its_reinvocation_policy_is_if_needed() {
    let count = |key: &str| {
        let field = format!("has(object.data.{key}) ? object.data.{key} + 'x' : 'x'");
        applies(&format!("Object{{data: {{'{key}': {field}}}}}"))
    };
    let if_needed = json!({"mutations": [count("a")], "reinvocationPolicy": "IfNeeded"});
    let never = json!({"mutations": [count("b")], "reinvocationPolicy": "Never"});
    let hooks = [hook("a", if_needed), hook("b", never)];
    let run = &mut run();
    apply(&hooks, run, Round::First);
    assert!(reinvocation::is_second_round_due(&run.record));
    let (data, _) = apply(&hooks, run, Round::Second);
    assert_eq!((&data["a"], &data["b"]), (&json!("xx"), &json!("x")));
}

/// A cluster whose `Gadget`s are also served as `widgets`, to which they cannot be converted.
struct Gadgets;

impl ClusterState for Gadgets {
    fn namespace(&self, _: &str) -> Option<Arc<Value>> {
        Some(Arc::new(json!({"metadata": {}})))
    }

    fn equivalent_resources(&self, _: &GroupVersionResource, _: &str) -> Arc<[EquivalentResource]> {
        let resource = GroupVersionResource::new("example.com", "v1", "widgets").into();
        let kind = Some(GroupVersionKind::new("example.com", "v1", "Widget").into());
        [EquivalentResource { resource, kind }].into()
    }

    fn convert(&self, _: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError> {
        Err(ConversionError::Refused(format!("cannot convert to {kind}")))
    }

    fn set_defaults(&self, _: &mut Value) {}

    fn is_built_in(&self, _: &GroupVersionKind) -> bool {
        false
    }
}

#[test]
fn a_failed_conversion_is_recorded_once() {
    let rules = json!([{
        "operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"],
    }]);
    let mutations = [applies("Object{data: {'b': 'b'}}")];
    let spec = json!({"matchConstraints": {"resourceRules": rules}, "mutations": mutations});
    let mut widgets = hook("widgets", spec);
    widgets.bindings.push(Arc::clone(&widgets.bindings[0]));
    let run = &mut AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &Gadgets);
    let (_, status) = apply(&[widgets], run, Round::First);
    let message = "policy \"widgets\" denied request: failed to configure policy: cannot convert to example.com/v1, \
                   Kind=Widget";
    let status = status.unwrap();
    assert_eq!((&*status.message, status.details.unwrap().causes.len()), (message, 2));
    let [Event::Policies(record)] = run.record.events.as_slice() else { panic!("one record") };
    let [policy] = record.policies.as_slice() else { panic!("one policy") };
    assert_eq!(policy.error, None);
    let errors: Vec<_> = policy.bindings.iter().map(|binding| binding.error.as_deref()).collect();
    assert_eq!(errors, [Some("cannot convert to example.com/v1, Kind=Widget"); 2]);
}

#[test]
fn a_patch_that_panics_is_a_server_error_whatever_the_failure_policy() {
    for (expression, panic) in [
        (
            "[JSONPatch{op: 'test', path: ''}]",
            "runtime error: invalid memory address or nil pointer dereference",
        ),
        (
            "[JSONPatch{op: 'replace', path: '/data', value: null}, JSONPatch{op: 'add', path: '/data/x', value: ''}]",
            "assignment to entry in nil map",
        ),
    ] {
        let spec = json!({"mutations": [patches(expression)], "failurePolicy": "Ignore"});
        let (data, status) = apply(&[hook("p", spec)], &mut run(), Round::First);
        let status = status.unwrap();
        assert_eq!((status.code, status.message), (500, format!("Internal error occurred: {panic}")));
        assert_eq!(data, json!({"k": "v"}));
    }
}

#[test]
fn a_match_condition_that_exceeds_the_budget_is_recorded() {
    let costly = format!("{}true{}", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, ".repeat(5), ")".repeat(5));
    let conditions: Vec<_> =
        (0..40).map(|index| json!({"name": format!("c{index}"), "expression": costly})).collect();
    let spec = json!({"matchConditions": conditions, "mutations": [applies("Object{data: {'a': 'a'}}")]});
    let run = &mut run();
    let message = apply(&[hook("p", spec)], run, Round::First).1.unwrap().message;
    assert!(message.contains("running out of cost budget"), "{message}");
    let [Event::Policies(record)] = run.record.events.as_slice() else { panic!("one record") };
    let evaluation = record.policies[0].bindings[0].runs[0].conditions.as_ref().unwrap();
    let (last, others) = evaluation.conditions.split_last().unwrap();
    let spent: u64 = others.iter().map(|condition| condition.cost).sum();
    assert!(spent <= 2_500_000 && spent + last.cost > 2_500_000, "{spent} and {}", last.cost);
}

#[test]
fn an_ignored_error_does_not_cause_a_second_round() {
    let mutations = [applies("Object{data: {'a': object.data.missing}}")];
    let spec = json!({
        "mutations": mutations, "failurePolicy": "Ignore", "reinvocationPolicy": "IfNeeded",
    });
    let run = &mut run();
    apply(&[hook("p", spec)], run, Round::First);
    assert!(!reinvocation::is_second_round_due(&run.record));
}

#[test]
fn the_record_has_the_objects_of_a_policy_that_changed_the_object() {
    let mutations = [applies("Object{data: {'a': 'a'}}"), applies("Object{data: {'b': 'b'}}")];
    let hooks = [
        hook("first", json!({"mutations": mutations})),
        hook("nothing", json!({"mutations": [applies("Object{data: {'a': 'a'}}")]})),
    ];
    let changes = |explains: bool| -> Vec<Option<(Value, Value)>> {
        let mut run = run().explaining_policies(explains);
        apply(&hooks, &mut run, Round::First);
        let Some(Event::Policies(checked)) = run.record.events.pop() else { unreachable!() };
        let runs =
            checked.policies.into_iter().flat_map(|policy| policy.bindings).flat_map(|binding| binding.runs);
        let data = |change: PolicyChange| (change.before["data"].clone(), change.after["data"].clone());
        runs.map(|run| run.change.map(|change| data(*change))).collect()
    };
    let after = json!({"k": "v", "a": "a", "b": "b", "defaulted": "yes"});
    assert_eq!(changes(true), [Some((json!({"k": "v"}), after)), None]);
    assert_eq!(changes(false), [None, None]);
}
