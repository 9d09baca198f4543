//! Sets the defaults of `HorizontalPodAutoscaler`s, and converts them to the internal type.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::set;
use kubernetes_types::schema;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{ensure, fill, has, is_empty, remove, with};
use crate::kinds::conversion::horizontal_pod_autoscaler::{METRICS, ROUND_TRIP, annotation};
use crate::kinds::conversion::{Strategy, convert};

const KIND: &str = "HorizontalPodAutoscaler";

/// Sets the defaults of a `HorizontalPodAutoscaler` of `autoscaling/v1`.
///
/// Source: kubernetes pkg/apis/autoscaling/v1/defaults.go.
pub(crate) fn version_1(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "status");
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "minReplicas", 1);
    }
}

/// Converts an object of `autoscaling/v1` to the internal type and back.
///
/// Adds a CPU target of 80% to an object without metrics. Parses the annotations and encodes them again.
///
/// Source: kubernetes pkg/apis/autoscaling/v1/conversion.go.
pub(crate) fn version_1_through_internal(object: &mut Value) {
    // Validation rejects any other shape.
    if !["metadata", "spec", "status"].iter().all(|field| object[*field].is_object()) {
        return;
    }
    if let Some(internal) = internal(object) {
        replace_by_internal(object, &internal);
    }
}

/// Converts as [`version_1_through_internal`] does, but into the existing internal object `before`.
///
/// The result keeps the fields of `before` that the object does not have. If the object has metrics in its annotation
/// but no target, the server appends the first metric of `before` and an empty metric for each other metric of
/// `before`.
///
/// Source: kubernetes pkg/apis/autoscaling/v1/conversion.go,
/// `Convert_v1_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler`.
pub(crate) fn version_1_into_internal(object: &mut Value, before: &Value) {
    let metrics = |internal: &Value| internal.pointer("/spec/metrics").and_then(Value::as_array).cloned();
    let (None, Some(mut internal), Some(kept)) = (
        object.pointer("/spec/targetCPUUtilizationPercentage"),
        internal(object),
        internal(before).as_ref().and_then(metrics),
    ) else {
        return version_1_through_internal(object);
    };
    let all = match annotation(object, METRICS) {
        Some(own) => {
            // Without metrics, the list contains the default target of 80 %.
            let own = metrics(&internal).filter(|_| !own.is_empty()).unwrap_or_default();
            let empty = std::iter::repeat_n(json!({"type": ""}), kept.len().saturating_sub(1));
            own.into_iter().chain(kept.into_iter().take(1)).chain(empty).collect()
        }
        None => kept,
    };
    set(&mut internal, &["spec", "metrics"], all);
    replace_by_internal(object, &internal);
}

fn kind(version: &str) -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", version, KIND)
}

/// Converts an object of `autoscaling/v1` to `autoscaling/v2`, the version most similar to the internal type.
fn internal(object: &Value) -> Option<Value> {
    let mut internal = convert(object, &kind("v2"), Strategy::Scheme).ok()?;
    // The content of annotations is also decoded into the server's types.
    drop(schema::normalize(&mut internal, &kind("v2")));
    Some(internal)
}

fn replace_by_internal(object: &mut Value, internal: &Value) {
    if let Ok(converted) = convert(internal, &kind("v1"), Strategy::Scheme) {
        *object = converted;
    }
}

/// Converts an object of `autoscaling/v2` to the internal type and back.
///
/// This removes the `autoscaling/v1` annotations.
///
/// Source: kubernetes pkg/apis/autoscaling/v2/conversion.go.
pub(crate) fn version_2_through_internal(object: &mut Value) {
    with(object, "metadata", |metadata| {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| !ROUND_TRIP.contains(&name.as_str()));
            if annotations.is_empty() {
                remove(metadata, "annotations");
            }
        }
    });
}

/// Sets the defaults of a `HorizontalPodAutoscaler` of `autoscaling/v2`.
///
/// Source: kubernetes pkg/apis/autoscaling/v2/defaults.go.
pub(crate) fn version_2(object: &mut Value) {
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
