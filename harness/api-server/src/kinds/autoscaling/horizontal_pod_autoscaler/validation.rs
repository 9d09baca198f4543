//! Validates `HorizontalPodAutoscaler`s in the version `autoscaling/v2`.

use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, word};
use crate::kinds::common::{formats, resources};

const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

const POSITIVE: &str = "must be greater than zero";

/// Validates a `HorizontalPodAutoscaler`.
///
/// Source: kubernetes pkg/apis/autoscaling/validation/validation.go, `validateHorizontalPodAutoscalerSpec`.
/// Rule: VLO-30.
pub(crate) fn autoscaler(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let before = change.map(|change| get(change.old, "spec"));
    let (least, most) = (int(spec, "minReplicas"), int(spec, "maxReplicas").unwrap_or(0));
    let too_few = |field: &str, value: i64, limit: i64| {
        let why = format!("must be greater than or equal to {limit}");
        FieldError::invalid(path.child(field).to_string(), value, why)
    };
    let is_new = |field| before.is_none_or(|before| int(before, field) != int(spec, field));
    if let Some(least) = least.filter(|least| *least < 0 && is_new("minReplicas")) {
        errors.generated(too_few("minReplicas", least, 0));
    }
    match most {
        0 if is_new("maxReplicas") => errors.required_by_type(&path.child("maxReplicas")),
        most if most < 0 && is_new("maxReplicas") => errors.generated(too_few("maxReplicas", most, 1)),
        _ => {}
    }
    if least.is_some_and(|least| most < least) {
        errors.invalid(&path.child("maxReplicas"), most, "must be greater than or equal to `minReplicas`");
    }
    let (target, old_target) =
        (get(spec, "scaleTargetRef"), before.map(|before| get(before, "scaleTargetRef")));
    let is_same_target = old_target.is_some_and(|old| {
        ["apiVersion", "kind"].iter().all(|field| text(old, field) == text(target, field))
    });
    let version = if is_same_target {
        Version::Any
    } else if text(target, "kind") == "ReplicationController" {
        Version::OfCore
    } else {
        Version::OfGroup
    };
    reference(errors, &path.child("scaleTargetRef"), target, version);
    metrics(errors, &path.child("metrics"), spec, before);
    let behavior = path.child("behavior");
    for field in ["scaleUp", "scaleDown"] {
        if let Some(rules) = set(get(spec, "behavior"), field) {
            scaling_rules(errors, &behavior.child(field), rules);
        }
    }
}

/// Validates the status of a `HorizontalPodAutoscaler`.
///
/// Source: kubernetes pkg/apis/autoscaling/validation/validation.go, `ValidateHorizontalPodAutoscalerStatusUpdate`.
/// Rule: VLO-30.
pub(crate) fn status(errors: &mut Errors, object: &Value) {
    let (path, status) = (Path::new("status"), get(object, "status"));
    let conditions = path.child("conditions");
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        errors.none_negative(&conditions.index(index), condition, &["observedGeneration"]);
    }
    errors.none_negative(&path, status, &["currentReplicas", "desiredReplicas"]);
}

/// The API versions that a reference may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Any,
    /// A version with or without a group.
    OfCore,
    OfGroup,
}

/// Returns the reason why a version is invalid; `None` if it is valid.
///
/// Source: kubernetes pkg/apis/autoscaling/validation/validation.go, `ValidateAPIVersion`; apimachinery
/// `pkg/runtime/schema/group_version.go`, `ParseGroupVersion`.
fn wrong_version(version: &str, allowed: Version) -> Option<String> {
    match version.matches('/').count() {
        _ if allowed == Version::Any => None,
        0 if allowed == Version::OfGroup => Some("apiVersion must specify API group".to_owned()),
        1 if allowed == Version::OfGroup && version.starts_with('/') => {
            Some("apiVersion must specify API group".to_owned())
        }
        0 | 1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn reference(errors: &mut Errors, path: &Path<'_>, reference: &Value, version: Version) {
    for field in ["kind", "name"] {
        let (path, found) = (path.child(field), text(reference, field));
        if found.is_empty() {
            errors.required(&path, "");
        } else {
            formats::path_segment(errors, &path, found);
        }
    }
    let found = text(reference, "apiVersion");
    if let Some(why) = wrong_version(found, version) {
        errors.invalid_text(&path.child("apiVersion"), found, why);
    }
}

fn metrics(errors: &mut Errors, path: &Path<'_>, spec: &Value, before: Option<&Value>) {
    let was_wrong = before.is_some_and(|before| {
        list(before, "metrics").iter().any(|metric| {
            let object = get(get(metric, "object"), "describedObject");
            text(metric, "type") == "Object"
                && wrong_version(text(object, "apiVersion"), Version::OfCore).is_some()
        })
    });
    let version = if was_wrong { Version::Any } else { Version::OfCore };
    let metrics = list(spec, "metrics");
    for (index, found) in metrics.iter().enumerate() {
        metric(errors, &path.index(index), found, version);
    }
    let counts_from_zero = |metric| ["Object", "External"].contains(&text(metric, "type"));
    if int(spec, "minReplicas") == Some(0) && !metrics.iter().any(counts_from_zero) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(path, why);
    }
}

/// Validates a metric specification.
///
/// Source: kubernetes pkg/apis/autoscaling/validation/validation.go, `validateMetricSpec`. If it forbids several
/// sources, the order of the errors is random.
fn metric(errors: &mut Errors, path: &Path<'_>, metric: &Value, version: Version) {
    const MISSING_SOURCE: &str = "must populate information for the given metric source";
    let kinds = ["ContainerResource", "External", "Object", "Pods", "Resource"];
    let (kind, kind_path) = (text(metric, "type"), path.child("type"));
    if kind.is_empty() {
        errors.required(&kind_path, "must specify a metric source type");
    }
    errors.one_of(&kind_path, Some(kind), &kinds);
    let present: Vec<&str> =
        SOURCES.iter().map(|(field, _)| *field).filter(|field| set(metric, field).is_some()).collect();
    if let Some(first) = present.first() {
        source(errors, &path.child(first), first, get(metric, first), version);
    }
    let expected = SOURCES.iter().find(|(_, name)| *name == kind).map(|(field, _)| *field);
    match expected {
        Some(field) if set(metric, field).is_none() => errors.required(&path.child(field), MISSING_SOURCE),
        Some(_) => {}
        None => errors.one_of(&kind_path, Some(kind), &kinds),
    }
    if present.len() != 1 {
        for field in present.into_iter().filter(|field| Some(*field) != expected) {
            errors.forbidden(&path.child(field), "must populate the given metric source only");
        }
    }
}

fn source(errors: &mut Errors, path: &Path<'_>, field: &str, source: &Value, version: Version) {
    match field {
        "object" => {
            reference(errors, &path.child("describedObject"), get(source, "describedObject"), version);
        }
        "containerResource" => {
            let (name, container) = (text(source, "name"), text(source, "container"));
            if name.is_empty() {
                errors.required(&path.child("name"), "must specify a resource name");
            } else {
                resources::container_resource_name(errors, &path.child("name"), name);
            }
            if container.is_empty() {
                errors.required(&path.child("container"), "must specify a container");
            } else {
                formats::dns_label(errors, &path.child("container"), container);
            }
        }
        "resource" if text(source, "name").is_empty() => {
            errors.required(&path.child("name"), "must specify a resource name");
        }
        _ => {}
    }
    if ["object", "external", "pods"].contains(&field) {
        let of_metric = path.child("metric");
        let (path, name) = (of_metric.child("name"), text(get(source, "metric"), "name"));
        if name.is_empty() {
            errors.required(&path, "must specify a metric name");
        } else {
            formats::path_segment(errors, &path, name);
        }
    }
    let (target, path) = (get(source, "target"), path.child("target"));
    target_errors(errors, &path, target);
    let has = |field| set(target, field).is_some();
    let (value, average) = (has("value"), has("averageValue"));
    match field {
        "object" if !value && !average => {
            let why = "must set either a target value or averageValue";
            errors.required(&path.child("averageValue"), why);
        }
        "external" if !value && !average => {
            let why = "must set either a target value for metric or a per-pod target";
            errors.required(&path.child("averageValue"), why);
        }
        "external" if value && average => {
            let why = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&path.child("value"), why);
        }
        "pods" if !average => {
            errors.required(&path.child("averageValue"), "must specify a positive target averageValue");
        }
        "resource" | "containerResource" => match (has("averageUtilization"), average) {
            (false, false) => {
                let why = "must set either a target raw value or a target utilization";
                errors.required(&path.child("averageUtilization"), why);
            }
            (true, true) => {
                let why = "may not set both a target raw value and a target utilization";
                errors.forbidden(&path.child("averageValue"), why);
            }
            _ => {}
        },
        _ => {}
    }
}

/// Validates the target of a metric.
///
/// Source: kubernetes pkg/apis/autoscaling/validation/validation.go, `validateMetricTarget`.
fn target_errors(errors: &mut Errors, path: &Path<'_>, target: &Value) {
    let kind = text(target, "type");
    if kind.is_empty() {
        errors.required(&path.child("type"), "must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.invalid_text(&path.child("type"), kind, why);
    }
    for field in ["value", "averageValue"] {
        let amount = set(target, field).and_then(quantity::from_value);
        if let Some(amount) = amount.filter(|amount| *amount <= Quantity::ZERO) {
            errors.invalid_text(&path.child(field), &amount.to_string(), "must be positive");
        }
    }
    if let Some(utilization) = int(target, "averageUtilization").filter(|utilization| *utilization < 1) {
        errors.invalid(&path.child("averageUtilization"), utilization, "must be greater than 0");
    }
}

/// Validates scaling rules.
///
/// Source: kubernetes pkg/apis/autoscaling/validation/validation.go, `validateScalingRules`.
fn scaling_rules(errors: &mut Errors, path: &Path<'_>, rules: &Value) {
    const MAX_STABILIZATION_WINDOW_SECONDS: i64 = 3600;
    const MAX_PERIOD_SECONDS: i64 = 1800;
    let window = path.child("stabilizationWindowSeconds");
    match int(rules, "stabilizationWindowSeconds") {
        Some(seconds) if seconds < 0 => {
            errors.invalid(&window, seconds, "must be greater than or equal to zero");
        }
        Some(seconds) if seconds > MAX_STABILIZATION_WINDOW_SECONDS => {
            errors.invalid(
                &window,
                seconds,
                format!("must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}"),
            );
        }
        _ => {}
    }
    errors.one_of(&path.child("selectPolicy"), word(rules, "selectPolicy"), &["Disabled", "Max", "Min"]);
    let policies = path.child("policies");
    if list(rules, "policies").is_empty() {
        errors.required(&policies, "must specify at least one Policy");
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        let path = policies.index(index);
        errors.one_of(&path.child("type"), Some(text(policy, "type")), &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            let number = int(policy, field).unwrap_or(0);
            if number <= 0 {
                errors.invalid(&path.child(field), number, POSITIVE);
            } else if field == "periodSeconds" && number > MAX_PERIOD_SECONDS {
                let why = format!("must be less than or equal to {MAX_PERIOD_SECONDS}");
                errors.invalid(&path.child(field), number, why);
            }
        }
    }
    if let Some(tolerance) = set(rules, "tolerance") {
        formats::quantity_not_negative(errors, &path.child("tolerance"), tolerance);
    }
}
