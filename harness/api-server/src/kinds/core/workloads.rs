//! Provides what workloads share: defaults, validation, and cells of their pod templates.

use kubernetes_types::json;
use kubernetes_types::quoting::encode;
use serde_json::{Value, json};

use crate::kinds::common;
use crate::kinds::common::cells::{Context, age_of, containers, items, name, number, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill, fill_pointer, is_empty};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, set, text};
use crate::kinds::common::selectors;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::pod;
use crate::kinds::core::pod::disabled_fields::drop_of_pod;

/// Sets the defaults of the pod template in `spec`, and returns `spec`.
pub(crate) fn with_template(object: &mut Value) -> Option<&mut Value> {
    ensure(object, "metadata");
    let spec = ensure(object, "spec")?;
    if let Some(template) = ensure(spec, "template") {
        pod::defaults::template(template);
    }
    Some(spec)
}

/// Sets absent status counters to zero. Clients receive these counters even if they are zero.
pub(crate) fn counted_status(object: &mut Value, counters: &[&str]) {
    if let Some(status) = ensure(object, "status") {
        for counter in counters {
            fill(status, counter, 0);
        }
    }
}

pub(crate) fn rolling_update(strategy: &mut Value, defaults: &Value) {
    fill(strategy, "type", "RollingUpdate");
    if common::defaults::text(strategy, "type") == "RollingUpdate"
        && let Some(update) = ensure(strategy, "rollingUpdate")
    {
        for (field, value) in defaults.as_object().into_iter().flatten() {
            fill_pointer(update, field, value.clone());
        }
    }
}

pub(crate) fn labels_of_template(object: &mut Value, labels: Value) {
    if let Some(metadata) = ensure(object, "metadata")
        && is_empty(metadata, "labels")
    {
        json::set(metadata, &["labels"], labels);
    }
}

/// Removes the disabled fields from the pod template of a workload.
pub(crate) fn drop_of_template(object: &mut Value) {
    drop_of_pod(object.pointer_mut("/spec/template/spec"));
}

/// Validates the counters in the status of a workload. The counters in `parts` cannot be greater than the replicas.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `Validate*StatusUpdate`;
/// pkg/apis/core/validation/validation.go, `ValidateReplicationControllerStatus`.
/// Rule: VLO-39.
pub(crate) fn counters(
    errors: &mut Errors,
    object: &Value,
    change: Change<'_>,
    counters: &[&str],
    parts: &[&str],
    shown_parent: &str,
) {
    let (path, status) = (Path::new("status"), get(object, "status"));
    errors.none_negative(&path, status, counters);
    let count = |field: &str| int(status, field).unwrap_or(0);
    for part in parts.iter().filter(|part| count(part) > count("replicas")) {
        errors.invalid(&path.child(part), count(part), "cannot be greater than status.replicas");
    }
    if !parts.is_empty() && count("availableReplicas") > count("readyReplicas") {
        let why = format!("cannot be greater than {shown_parent}readyReplicas");
        errors.invalid(&path.child("availableReplicas"), count("availableReplicas"), why);
    }
    let collisions = |object| int(get(object, "status"), "collisionCount");
    if let Some(before) = collisions(change.old)
        && collisions(object).unwrap_or(-1) < before
    {
        let now = collisions(object).unwrap_or(0);
        errors.invalid(&path.child("collisionCount"), now, "cannot be decremented");
    }
}

/// Validates the status of a `ReplicaSet` or `ReplicationController`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateReplicaSetStatus`;
/// pkg/apis/core/validation/validation.go, `ValidateReplicationControllerStatus`.
pub(crate) fn replica_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    const COUNTERS: [&str; 6] = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    counters(errors, object, change, &COUNTERS, &PARTS, "");
}

pub(crate) fn warn_about_template(warnings: &mut Warnings, spec: &Value) {
    let path = Path::new("spec");
    pod::warnings::template(warnings, &path.child("template"), get(spec, "template"));
}

/// Warns about a new object whose name the names of its Pods begin with, and about the template in `spec`.
///
/// An update without a new generation has no warnings.
pub(crate) fn warn_about_name_and_template(
    warnings: &mut Warnings,
    object: &Value,
    old: Option<&Value>,
    spec: &Value,
) {
    if common::warnings::has_next_generation(object, old) {
        if old.is_none() {
            common::warnings::named_as_host(warnings, object, common::warnings::POD_NAMES);
        }
        warn_about_template(warnings, spec);
    }
}

pub(crate) const SELECTOR_MISMATCH: &str = "`selector` does not match template `labels`";

/// Validates that the selector of a workload matches the labels of its template.
pub(crate) fn labels_match(errors: &mut Errors, path: &Path<'_>, selector: &Value, template: &Value) {
    if selectors::picks(selector, template) == Some(false) {
        let labels = get(get(template, "metadata"), "labels");
        let path = path.child("template");
        let path = path.child("metadata");
        errors.invalid(&path.child("labels"), encode(labels), SELECTOR_MISMATCH);
    }
}

/// Validates the restart policy and the deadline in the pod template of a long-running workload.
pub(crate) fn keeps_running(errors: &mut Errors, path: &Path<'_>, template: &Value, kind: &str) {
    let spec = get(template, "spec");
    let path = path.child("template");
    let path = path.child("spec");
    errors.one_of(&path.child("restartPolicy"), Some(text(spec, "restartPolicy")), &["Always"]);
    if set(spec, "activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&path.child("activeDeadlineSeconds"), why);
    }
}

/// Validates the required selector of a workload.
pub(crate) fn selector(errors: &mut Errors, path: &Path<'_>, spec: &Value, kind: &str) {
    let path = path.child("selector");
    let Some(selector) = set(spec, "selector") else {
        errors.required(&path, "");
        return;
    };
    selectors::label_selector(errors, &path, selector);
    if selectors::is_empty(selector) {
        errors.invalid(&path, "{}", format!("empty selector is invalid for {kind}"));
    }
}

/// Validates that an update does not change the selector.
pub(crate) fn selector_stays(errors: &mut Errors, spec: &Value, change: Change<'_>) {
    if !change.is_same(&["spec", "selector"]) {
        let path = Path::new("spec");
        let shown = selectors::shown(get(spec, "selector"));
        errors.invalid(&path.child("selector"), shown, IMMUTABLE);
    }
}

/// Validates the template of a `ReplicaSet`, or of a Deployment, because a Deployment creates `ReplicaSet`s.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidatePodTemplateSpecForReplicaSet`.
pub(crate) fn template_of_replica_set(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let (selector, template) = (get(spec, "selector"), get(spec, "template"));
    if selectors::picks(selector, template).is_none() {
        errors.invalid(&path.child("selector"), selectors::shown(selector), "invalid label selector");
        return;
    }
    labels_match(errors, path, selector, template);
    pod::validation::template(errors, &path.child("template"), template, None);
    keeps_running(errors, path, template, "ReplicaSet");
}

/// Reports an unknown strategy type. The error contains the strategy as a value of the internal Go type.
pub(crate) fn unknown_strategy(errors: &mut Errors, path: &Path<'_>, strategy: &Value, supported: &[&str]) {
    let rolling = set(strategy, "rollingUpdate");
    let member = |name: &str, field: &str| {
        let rolling = rolling?;
        Some(format!("{}:{}", Value::from(name), set(rolling, field).unwrap_or(&json!(0))))
    };
    let members: Vec<String> = [member("MaxUnavailable", "maxUnavailable"), member("MaxSurge", "maxSurge")]
        .into_iter()
        .flatten()
        .collect();
    let rolling = if rolling.is_some() { format!("{{{}}}", members.join(",")) } else { "null".to_owned() };
    let shown = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", encode(get(strategy, "type")));
    let supported: Vec<String> = supported.iter().map(|text| Value::from(*text).to_string()).collect();
    errors.push(kubernetes_types::status::FieldError::not_supported(
        path.to_string(),
        shown,
        supported.join(", "),
    ));
}

/// Returns the cells of a kind that has `replicas`.
pub(crate) fn replicated(object: &Value, context: &Context<'_>, selector: String) -> Vec<Value> {
    let (names, images) = containers(items(object, &["spec", "template", "spec", "containers"]));
    row![
        name(object),
        number(object, &["spec", "replicas"]),
        number(object, &["status", "replicas"]),
        number(object, &["status", "readyReplicas"]),
        age_of(object, context),
        names,
        images,
        selector,
    ]
}

/// Formats the ready and the desired replicas.
pub(crate) fn ready(object: &Value) -> String {
    let ready = number(object, &["status", "readyReplicas"]);
    format!("{ready}/{}", number(object, &["spec", "replicas"]))
}
