//! Defaults of `HorizontalPodAutoscaler` objects.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::set;
use kubernetes_types::schema;
use serde_json::{Value, json};

use super::super::conversion::{ROUND_TRIP, Strategy, convert};
use super::fields::{ensure, fill, has, is_empty, remove, with};

const KIND: &str = "HorizontalPodAutoscaler";

/// `autoscaling/v1`.
///
/// Source: kubernetes pkg/apis/autoscaling/v1/defaults.go.
pub(super) fn version_1(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "status");
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "minReplicas", 1);
    }
}

/// On its way through the internal type an object of `autoscaling/v1` gets a target of 80 % if it has no other metric, and
/// its annotations are read and written anew.
///
/// Source: kubernetes pkg/apis/autoscaling/v1/conversion.go.
pub(super) fn version_1_through_internal(object: &mut Value) {
    // What has another shape is left to validation.
    if !["metadata", "spec", "status"].iter().all(|field| object[*field].is_object()) {
        return;
    }
    let [old, new] = ["v1", "v2"].map(|version| GroupVersionKind::new("autoscaling", version, KIND));
    let Ok(mut internal) = convert(object, &new, Strategy::Scheme) else { return };
    // What annotations hold is read into the server's types, too.
    drop(schema::normalize(&mut internal, &new));
    if let Ok(converted) = convert(&internal, &old, Strategy::Scheme) {
        *object = converted;
    }
}

/// On its way through the internal type an object of `autoscaling/v2` loses the annotations of `autoscaling/v1`.
///
/// Source: kubernetes pkg/apis/autoscaling/v2/conversion.go.
pub(super) fn version_2_through_internal(object: &mut Value) {
    with(object, "metadata", |metadata| {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| !ROUND_TRIP.contains(&name.as_str()));
            if annotations.is_empty() {
                remove(metadata, "annotations");
            }
        }
    });
}

/// `autoscaling/v2`.
///
/// Source: kubernetes pkg/apis/autoscaling/v2/defaults.go.
pub(super) fn version_2(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        fill(status, "desiredReplicas", 0);
        if !has(status, "currentMetrics") {
            set(status, &["currentMetrics"], Value::Null);
        }
    }
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if is_empty(spec, "metrics") {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metrics = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
        set(spec, &["metrics"], metrics);
    }
    with(spec, "behavior", |behavior| {
        scaling_rules(
            behavior,
            "scaleUp",
            &json!({
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [
                    {"type": "Pods", "value": 4, "periodSeconds": 15},
                    {"type": "Percent", "value": 100, "periodSeconds": 15},
                ],
            }),
        );
        scaling_rules(
            behavior,
            "scaleDown",
            &json!({
                "selectPolicy": "Max",
                "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
            }),
        );
    });
}

fn scaling_rules(behavior: &mut Value, field: &str, defaults: &Value) {
    if let Some(rules) = ensure(behavior, field) {
        for (name, value) in defaults.as_object().into_iter().flatten() {
            fill(rules, name, value.clone());
        }
    }
}
