//! Tests with objects that kube-apiserver 1.37.1 returned in both versions.
//!
//! `v2_of_v1` is the object `v1` after kube-apiserver converted it to `autoscaling/v2`.

use serde_json::json;

use super::*;

fn pairs(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

fn autoscalers() -> Vec<Value> {
    pairs(include_str!("horizontal_pod_autoscalers.json"))
}

#[track_caller]
fn check(object: &Value, expected: &Value) {
    let kind = GroupVersionKind::from_object(expected);
    let converted = convert(object, &kind, Strategy::Scheme).unwrap();
    assert_eq!(converted, *expected, "{converted:#}");
}

#[test]
fn v2_autoscaler_converts_to_v1_like_upstream() {
    for pair in autoscalers() {
        check(&pair["v2"], &pair["v1"]);
    }
}

#[test]
fn v1_autoscaler_converts_to_v2_like_upstream() {
    for pair in autoscalers() {
        check(&pair["v1"], &pair["v2_of_v1"]);
    }
}

#[test]
fn events_convert_between_groups_like_upstream() {
    for pair in pairs(include_str!("events.json")) {
        check(&pair["core"], &pair["events"]);
        check(&pair["events"], &pair["core"]);
    }
}

#[test]
fn object_in_the_requested_version_is_unchanged() {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"x": null}});
    assert_eq!(convert(&object, &GroupVersionKind::from_object(&object), Strategy::Scheme).unwrap(), object);
}

#[test]
fn none_strategy_changes_only_the_api_version() {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Foo", "spec": {"a": 1}});
    let kind = GroupVersionKind::new("example.com", "v2", "Foo");
    let converted = convert(&object, &kind, Strategy::None).unwrap();
    assert_eq!(converted, json!({"apiVersion": "example.com/v2", "kind": "Foo", "spec": {"a": 1}}));
}

#[test]
fn unsupported_conversion_names_both_kinds() {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Foo"});
    let kind = GroupVersionKind::new("example.com", "v2", "Foo");
    let error = convert(&object, &kind, Strategy::Scheme).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unsupported: conversion of example.com/v1, Kind=Foo to example.com/v2, Kind=Foo"
    );
}

#[test]
fn unreadable_annotation_is_ignored() {
    for text in ["nonsense", "{}", "[1]", "\"x\"", "{\"ScaleUp\":1}"] {
        let mut object = autoscalers()[0]["v1"].clone();
        object["metadata"]["annotations"] = json!({
            "autoscaling.alpha.kubernetes.io/metrics": text,
            "autoscaling.alpha.kubernetes.io/behavior": text,
            "autoscaling.alpha.kubernetes.io/current-metrics": text,
            "autoscaling.alpha.kubernetes.io/conditions": text,
        });
        check(&object, &autoscalers()[0]["v2"]);
    }
}
