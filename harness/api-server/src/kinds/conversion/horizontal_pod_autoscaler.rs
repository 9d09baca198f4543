//! Converts `HorizontalPodAutoscaler`s between `autoscaling/v1` and `autoscaling/v2`.
//!
//! `autoscaling/v1` uses annotations to store fields that exist only in `autoscaling/v2`.
//!
//! Source: kubernetes pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/v2/conversion.go
//! and pkg/apis/autoscaling/helpers.go.

use serde_json::{Map, Value, json};

use crate::kinds::conversion::metrics::MetricLocation;
use crate::kinds::conversion::{go_json, metrics};

/// The `autoscaling/v1` annotation with the metrics other than CPU utilization.
pub(crate) const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// The annotations that conversions interpret or discard instead of copying them.
pub(crate) const ROUND_TRIP: [&str; 6] = [
    METRICS,
    BEHAVIOR,
    CURRENT_METRICS,
    CONDITIONS,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Converts an object from `autoscaling/v2` to `autoscaling/v1`.
pub(crate) fn to_version_1(object: &Value) -> Value {
    let spec = object.get("spec");
    let status = object.get("status");
    let mut annotations = lasting_annotations(object);

    let mut old_spec = fields(spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    let (cpu, others): (Vec<&Value>, Vec<&Value>) =
        list(spec, "metrics").partition(|metric| cpu_utilization(metric).is_some());
    if let Some(utilization) = cpu.first().and_then(|metric| cpu_utilization(metric)) {
        old_spec.insert("targetCPUUtilizationPercentage".to_owned(), utilization.clone());
    }
    let others =
        others.into_iter().map(|metric| metrics::to_version_1(metric, MetricLocation::Spec)).collect();
    annotate(&mut annotations, METRICS, others);

    if let Some(behavior) = spec.and_then(|spec| spec.get("behavior")).filter(|behavior| behavior.is_object())
    {
        annotations.insert(BEHAVIOR.to_owned(), json!(go_json::text(&internal_behavior(behavior))));
    }

    let mut old_status = fields(status, &["observedGeneration", "lastScaleTime"]);
    for counter in ["currentReplicas", "desiredReplicas"] {
        old_status.insert(counter.to_owned(), member(status, counter).cloned().unwrap_or_else(|| json!(0)));
    }
    for metric in list(status, "currentMetrics") {
        let is_cpu = metric.pointer("/resource/name").is_some_and(|name| name == "cpu");
        if let Some(utilization) = metric.pointer("/resource/current/averageUtilization").filter(|_| is_cpu) {
            old_status.insert("currentCPUUtilizationPercentage".to_owned(), utilization.clone());
        }
    }
    let statuses =
        list(status, "currentMetrics").map(|metric| metrics::to_version_1(metric, MetricLocation::Status));
    annotate(&mut annotations, CURRENT_METRICS, statuses.collect());
    annotate(&mut annotations, CONDITIONS, list(status, "conditions").cloned().collect());

    assembled(object, annotations, old_spec, old_status)
}

/// Converts an object from `autoscaling/v1` to `autoscaling/v2`.
pub(crate) fn to_version_2(object: &Value) -> Value {
    let spec = object.get("spec");
    let status = object.get("status");

    let mut new_spec = fields(spec, &["scaleTargetRef", "minReplicas", "maxReplicas"]);
    let others = annotation(object, METRICS).unwrap_or_default();
    let mut new_metrics: Vec<Value> =
        others.iter().map(|metric| metrics::to_version_2(metric, MetricLocation::Spec)).collect();
    if let Some(utilization) = member(spec, "targetCPUUtilizationPercentage") {
        new_metrics.push(cpu_metric(utilization));
    }
    if new_metrics.is_empty() {
        new_metrics.push(cpu_metric(&json!(80)));
    }
    new_spec.insert("metrics".to_owned(), Value::Array(new_metrics));
    if let Some(behavior) = annotation_text(object, BEHAVIOR).and_then(external_behavior) {
        new_spec.insert("behavior".to_owned(), behavior);
    }

    let mut new_status = fields(status, &["observedGeneration", "lastScaleTime", "currentReplicas"]);
    if new_status.get("currentReplicas").is_some_and(|count| *count == 0) {
        new_status.remove("currentReplicas");
    }
    let desired = member(status, "desiredReplicas").cloned().unwrap_or_else(|| json!(0));
    new_status.insert("desiredReplicas".to_owned(), desired);
    let mut current = member(status, "currentCPUUtilizationPercentage").map_or(Value::Null, |utilization| {
        json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": utilization}}}])
    });
    if let Some(statuses) = annotation(object, CURRENT_METRICS) {
        current =
            statuses.iter().map(|metric| metrics::to_version_2(metric, MetricLocation::Status)).collect();
    }
    new_status.insert("currentMetrics".to_owned(), current);
    if let Some(conditions) = annotation(object, CONDITIONS).filter(|conditions| !conditions.is_empty()) {
        new_status.insert("conditions".to_owned(), Value::Array(conditions));
    }

    assembled(object, lasting_annotations(object), new_spec, new_status)
}

fn cpu_utilization(metric: &Value) -> Option<&Value> {
    let is_cpu = metric.get("type").is_some_and(|metric_type| metric_type == "Resource")
        && metric.pointer("/resource/name").is_some_and(|name| name == "cpu");
    metric.pointer("/resource/target/averageUtilization").filter(|value| is_cpu && !value.is_null())
}

fn cpu_metric(utilization: &Value) -> Value {
    json!({
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": utilization}},
    })
}

/// The fields of scaling rules in `autoscaling/v2` and their Go names.
///
/// The annotation contains `null` for missing fields.
const RULES: [(&str, &str); 4] = [
    ("stabilizationWindowSeconds", "StabilizationWindowSeconds"),
    ("selectPolicy", "SelectPolicy"),
    ("policies", "Policies"),
    ("tolerance", "Tolerance"),
];

const POLICY: [(&str, &str); 3] = [("type", "Type"), ("value", "Value"), ("periodSeconds", "PeriodSeconds")];

fn internal_behavior(behavior: &Value) -> Value {
    let direction = |field: &str| {
        let Some(rules) = behavior.get(field).filter(|rules| rules.is_object()) else { return Value::Null };
        let mut internal = Map::new();
        for (name, go_name) in RULES {
            internal.insert(go_name.to_owned(), rules.get(name).cloned().unwrap_or(Value::Null));
        }
        if let Some(policies) = internal.get_mut("Policies").and_then(Value::as_array_mut) {
            for policy in policies {
                *policy = POLICY
                    .iter()
                    .map(|(name, go_name)| {
                        ((*go_name).to_owned(), policy.get(*name).cloned().unwrap_or(Value::Null))
                    })
                    .collect();
            }
        }
        Value::Object(internal)
    };
    json!({"ScaleUp": direction("scaleUp"), "ScaleDown": direction("scaleDown")})
}

/// Parses a behavior; `None` if `text` is not JSON or does not contain scaling rules.
///
/// As Go does, matches field names case-insensitively.
fn external_behavior(text: &str) -> Option<Value> {
    let internal: Value = serde_json::from_str(text).ok()?;
    let mut behavior = Map::new();
    for (field, go_name) in [("scaleUp", "ScaleUp"), ("scaleDown", "ScaleDown")] {
        let Some(rules) = ignoring_case(&internal, go_name).filter(|rules| rules.is_object()) else {
            continue;
        };
        let mut external = Map::new();
        for (name, go_name) in RULES {
            if let Some(value) = ignoring_case(rules, go_name) {
                external.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(policies) = external.get_mut("policies").and_then(Value::as_array_mut) {
            for policy in policies {
                *policy = POLICY
                    .iter()
                    .filter_map(|(name, go_name)| {
                        Some(((*name).to_owned(), ignoring_case(policy, go_name)?.clone()))
                    })
                    .collect();
            }
        }
        behavior.insert(field.to_owned(), Value::Object(external));
    }
    (!behavior.is_empty()).then_some(Value::Object(behavior))
}

fn ignoring_case<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let mut members = object.as_object()?.iter();
    members
        .find(|(member, value)| member.eq_ignore_ascii_case(name) && !value.is_null())
        .map(|(_, value)| value)
}

fn assembled(
    object: &Value,
    annotations: Map<String, Value>,
    spec: Map<String, Value>,
    status: Map<String, Value>,
) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    if let Some(members) = metadata.as_object_mut() {
        members.remove("annotations");
        if !annotations.is_empty() {
            members.insert("annotations".to_owned(), Value::Object(annotations));
        }
    }
    let members = [("metadata", metadata), ("spec", Value::Object(spec)), ("status", Value::Object(status))];
    members.into_iter().map(|(name, member)| (name.to_owned(), member)).collect()
}

fn lasting_annotations(object: &Value) -> Map<String, Value> {
    let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
    let mut annotations = annotations.cloned().unwrap_or_default();
    annotations.retain(|name, _| !ROUND_TRIP.contains(&name.as_str()));
    annotations
}

fn annotation_text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// Returns the list in an annotation; `None` if the annotation is missing or is not a list of objects.
///
/// The server ignores an annotation that is not a list of objects.
pub(crate) fn annotation(object: &Value, name: &str) -> Option<Vec<Value>> {
    let entries: Vec<Value> = serde_json::from_str(annotation_text(object, name)?).ok()?;
    entries.iter().all(Value::is_object).then_some(entries)
}

fn annotate(annotations: &mut Map<String, Value>, name: &str, entries: Vec<Value>) {
    if !entries.is_empty() {
        annotations.insert(name.to_owned(), json!(go_json::text(&Value::Array(entries))));
    }
}

fn list<'a>(object: Option<&'a Value>, field: &str) -> impl Iterator<Item = &'a Value> {
    member(object, field).and_then(Value::as_array).into_iter().flatten()
}

fn member<'a>(object: Option<&'a Value>, field: &str) -> Option<&'a Value> {
    object?.get(field).filter(|value| !value.is_null())
}

fn fields(object: Option<&Value>, names: &[&str]) -> Map<String, Value> {
    let found = |name: &&str| Some(((*name).to_owned(), member(object, name)?.clone()));
    names.iter().filter_map(found).collect()
}
