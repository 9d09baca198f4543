//! Defaults of `HorizontalPodAutoscaler` objects.

use serde_json::{Value, json};

use super::fields::{each, ensure, fill, has, is_empty, with};
use super::quantities;

/// `autoscaling/v1`. The target of 80 % is set on the way through the internal type, and only where no other metric is
/// kept in the annotation.
///
/// Source: kubernetes pkg/apis/autoscaling/v1/defaults.go and conversion.go.
pub(super) fn version_1(object: &mut Value) {
    let has_metrics = object
        .pointer("/metadata/annotations/autoscaling.alpha.kubernetes.io~1metrics")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .is_some_and(|metrics| metrics.as_array().is_some_and(|metrics| !metrics.is_empty()));
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        fill(status, "currentReplicas", 0);
        fill(status, "desiredReplicas", 0);
    }
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if !has_metrics {
        fill(spec, "targetCPUUtilizationPercentage", 80);
    }
}

/// `autoscaling/v2`.
///
/// Source: kubernetes pkg/apis/autoscaling/v2/defaults.go.
pub(super) fn version_2(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        fill(status, "desiredReplicas", 0);
        if !has(status, "currentMetrics") {
            status["currentMetrics"] = Value::Null;
        }
    }
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if is_empty(spec, "metrics") {
        spec["metrics"] = json!([{
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }]);
    }
    each(spec, "metrics", |metric| {
        for source in ["containerResource", "external", "object", "pods", "resource"] {
            with(metric, source, |source| {
                with(source, "target", |target| {
                    quantities::canonical_field(target, "value");
                    quantities::canonical_field(target, "averageValue");
                });
            });
        }
    });
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
        quantities::canonical_field(rules, "tolerance");
    }
}
