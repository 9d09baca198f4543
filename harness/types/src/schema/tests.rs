//! Tests the normalization of small objects and of objects from upstream's own tests.

use crate::testing::without_nulls;
use serde_json::json;

use super::*;

#[track_caller]
fn check(mut object: Value, expected: &Value, unknown: &[&str]) {
    let kind = GroupVersionKind::from_object(&object);
    let found = normalize(&mut object, &kind);
    assert_eq!(object, *expected);
    assert_eq!(found, unknown);
}

/// Returns the objects in `protobuf/recorded.jsonl` and `protobuf/complete.jsonl`. Go encoded these objects.
fn written_by_go() -> Vec<Value> {
    let lines = [
        include_str!("../../../api-server/src/apimachinery/protobuf/recorded.jsonl"),
        include_str!("../../../api-server/src/apimachinery/protobuf/complete.jsonl"),
    ];
    let cases = lines.into_iter().flat_map(str::lines);
    cases.map(|line| serde_json::from_str::<Value>(line).unwrap()["object"].clone()).collect()
}

#[test]
fn objects_written_by_go_are_unchanged_even_without_nulls() {
    for expected in written_by_go() {
        check(expected.clone(), &expected, &[]);
        // Arbitrary JSON and maps of times lose significant nulls.
        if !["CustomResourceDefinition", "PodDisruptionBudget"].iter().any(|kind| expected["kind"] == *kind) {
            let mut sparse = expected.clone();
            without_nulls(&mut sparse);
            check(sparse, &expected, &[]);
        }
    }
}

#[test]
fn unknown_fields_are_removed_and_reported() {
    check(
        json!({
            "apiVersion": "v1", "kind": "Pod", "bogus": 1, "metadata": {"labels": {"a": null, "b": "b"}, "x": {}},
            "spec": {"containers": [{"name": "a", "image": null, "resources": {"limits": {"cpu": "1000m"}}}, {"y": 1}]},
        }),
        &json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "", "b": "b"}}, "status": {},
            "spec": {"containers": [
                {"name": "a", "resources": {"limits": {"cpu": "1"}}}, {"name": "", "resources": {}},
            ]},
        }),
        &["bogus", "metadata.x", "spec.containers[1].y"],
    );
}

#[test]
fn fields_without_omitempty_are_present() {
    check(
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "aggregationRule": null}),
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {}, "rules": null}),
        &[],
    );
}

#[test]
fn a_nested_object_may_have_a_kind() {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "spec": {"volumeClaimTemplates": [{"apiVersion": "v1", "kind": "", "bogus": 1}], "template": {"kind": "x"}},
    });
    let kind = GroupVersionKind::from_object(&set);
    let unknown = normalize(&mut set, &kind);
    assert_eq!(unknown, ["spec.template.kind", "spec.volumeClaimTemplates[0].bogus"]);
    let claim = &set["spec"]["volumeClaimTemplates"][0];
    assert_eq!((&claim["apiVersion"], claim.get("kind")), (&json!("v1"), None));
    normalize_stored(&mut set);
    assert_eq!(set["spec"]["volumeClaimTemplates"][0].get("apiVersion"), None);
}

#[test]
fn stored_objects_have_no_empty_lists_or_maps() {
    let mut slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [],
        "metadata": {"labels": {}, "finalizers": []},
        "endpoints": [{"addresses": [], "conditions": {}, "deprecatedTopology": {}}],
    });
    normalize_stored(&mut slice);
    assert_eq!(
        slice,
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": null,
            "metadata": {}, "endpoints": [{"addresses": null, "conditions": {}}],
        })
    );
    // Arbitrary JSON is unchanged.
    let revision = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {}, "data": {"list": [], "map": {}},
        "revision": 1,
    });
    let mut stored = revision.clone();
    normalize_stored(&mut stored);
    assert_eq!(stored, revision);
}

#[test]
fn numbers_of_custom_resources_are_formatted_as_in_go() {
    let mut numbers: Value =
        serde_json::from_str("[1, 1.0, 1e2, -0.5, 9007199254740993, 12345678901234567890, -2.0, 1e300]")
            .unwrap();
    normalize_numbers(&mut numbers);
    let text = "[1,1,100,-0.5,9007199254740993,12345678901234567000,-2,1e+300]";
    assert_eq!(numbers, serde_json::from_str::<Value>(text).unwrap());
}

#[test]
fn other_kinds_and_wrong_types_are_unchanged() {
    let custom = json!({"apiVersion": "example.com/v1", "kind": "Pod", "spec": null});
    check(custom.clone(), &custom, &[]);
    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": [1], "metadata": "x"});
    check(wrong.clone(), &wrong, &[]);
}
