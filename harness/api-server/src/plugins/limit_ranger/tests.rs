//! Tests against `cases.json`.
//!
//! The file contains the responses of kube-apiserver 1.37.1 to dry-run creations in a namespace with one `LimitRange`.

use serde_json::json;

use super::super::tests::{Stored, request};
use super::*;
use crate::kinds::defaulting::set_defaults;

fn limit_range(limits: &Value) -> (&'static str, Value) {
    ("limitranges", json!({"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": limits}}))
}

fn plugin(limits: &Value) -> LimitRanger {
    LimitRanger::new(Arc::new(Stored(vec![limit_range(limits)])))
}

fn admit(plugin: &LimitRanger, attributes: &mut Attributes) -> Result<(), Box<Status>> {
    plugin.admit(attributes)?;
    plugin.validate(attributes, &mut Remarks::default())
}

/// Returns the parts of a response that the case file contains.
fn summary(outcome: &Result<(), Box<Status>>, attributes: &Attributes) -> Value {
    if let Err(status) = outcome {
        return json!({"message": status.message, "details": status.details});
    }
    let object = attributes.object.as_ref().unwrap();
    let resources: Vec<Value> = ["containers", "initContainers"]
        .iter()
        .filter_map(|list| object["spec"][*list].as_array())
        .flatten()
        .map(|container| json!([container["name"], container["resources"]]))
        .collect();
    json!({
        "annotation": object["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "resources": if attributes.kind.kind == "Pod" { json!(resources) } else { Value::Null },
    })
}

#[test]
fn recorded_cases_match_upstream() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    for case in cases {
        let mut object = case["object"].clone();
        set_defaults(&mut object);
        let kind = case["object"]["kind"].as_str().unwrap();
        let mut attributes = request(Operation::Create, case["kind"].as_str().unwrap(), kind, object);
        let outcome = admit(&plugin(&case["limits"]), &mut attributes);
        assert_eq!(summary(&outcome, &attributes), case["answer"], "{case:#}");
    }
}

fn pod() -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "resources": {}}]}})
}

fn changes(attributes: &Attributes) -> bool {
    let limits = json!([{"type": "Container", "default": {"cpu": "1"}}]);
    let mut after = attributes.clone();
    plugin(&limits).admit(&mut after).unwrap();
    after != *attributes
}

#[test]
fn pod_is_defaulted_on_create_and_resize() {
    let created = request(Operation::Create, "pods", "Pod", pod());
    let with = |operation, subresource: &str| Attributes {
        operation,
        subresource: subresource.to_owned(),
        ..created.clone()
    };
    assert!(changes(&created));
    assert!(changes(&with(Operation::Update, "resize")));
    assert!(!changes(&with(Operation::Update, "")));
    assert!(!changes(&with(Operation::Update, "status")));
    assert!(!changes(&with(Operation::Create, "eviction")));
    assert!(!changes(&with(Operation::Delete, "")));
}

#[test]
fn pod_being_deleted_is_ignored() {
    let mut attributes = request(Operation::Update, "pods", "Pod", pod());
    attributes.subresource = "resize".to_owned();
    attributes.old_object = Some(json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}));
    assert!(!changes(&attributes));
}

#[test]
fn limit_range_of_another_namespace_is_ignored() {
    let attributes =
        Attributes { namespace: "elsewhere".to_owned(), ..request(Operation::Create, "pods", "Pod", pod()) };
    assert!(!changes(&attributes));
}

#[test]
fn second_round_defaults_added_containers() {
    let plugin = plugin(&json!([{"type": "Container", "default": {"cpu": "1"}}]));
    let mut attributes = request(Operation::Create, "pods", "Pod", pod());
    plugin.admit(&mut attributes).unwrap();
    let added = json!({"name": "b", "resources": {}});
    attributes.object.as_mut().unwrap()["spec"]["containers"].as_array_mut().unwrap().push(added);
    plugin.admit(&mut attributes).unwrap();
    let object = attributes.object.unwrap();
    assert_eq!(object["spec"]["containers"][1]["resources"], json!({"limits": {"cpu": "1"}}));
    assert_eq!(
        object["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu limit for container b"
    );
}
