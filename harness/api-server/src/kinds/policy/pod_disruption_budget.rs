//! Implements `PodDisruptionBudget` objects.

use kubernetes_types::json::at;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, name, number, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill};
use crate::kinds::common::fields::{Errors, Path, get, set, word};
use crate::kinds::common::{conditions, formats, selectors};
use crate::kinds::kind::Kind;

/// The behavior of `PodDisruptionBudget` objects.
pub(crate) const KIND: Kind = Kind {
    group: "policy",
    resource: "poddisruptionbudgets",
    kind: "PodDisruptionBudget",
    set_defaults: Some(set_defaults),
    validate_name: |name, _| formats::path_segment_errors(name),
    has_core_finalizers: false,
    requires_resource_version: true,
    validates_metadata_last: true,
    validate,
    validate_subresources: &[("status", validate_status)],
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the defaults of a `PodDisruptionBudget`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "spec");
    if let Some(status) = ensure(object, "status") {
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            fill(status, field, 0);
        }
    }
}

/// Validates a `PodDisruptionBudget`.
///
/// Source: kubernetes pkg/apis/policy/validation/validation.go, `ValidatePodDisruptionBudgetSpec`.
/// Rule: VLO-22.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let fields = ["minAvailable", "maxUnavailable"];
    if fields.iter().all(|field| set(spec, field).is_some()) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.invalid_structure(&path, "policy.PodDisruptionBudgetSpec", spec, why);
    }
    for field in fields {
        if let Some(value) = set(spec, field) {
            formats::number_or_percent(errors, &path.child(field), value);
            formats::at_most_all(errors, &path.child(field), value);
        }
    }
    selectors::label_selector(errors, &path.child("selector"), get(spec, "selector"));
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    let policy = word(spec, "unhealthyPodEvictionPolicy");
    errors.one_of(&path.child("unhealthyPodEvictionPolicy"), policy, &policies);
}

/// Validates the status of a `PodDisruptionBudget`.
///
/// Source: kubernetes pkg/apis/policy/validation/validation.go, `ValidatePodDisruptionBudgetStatusUpdate`.
/// Rule: VLO-39.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, _: Change<'_>) {
    let counters = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    if set(object, "status").is_some() {
        conditions::of_status(errors, object);
        errors.none_negative(&Path::new("status"), get(object, "status"), &counters);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let limit = |field| match at(object, &["spec", field]) {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => "N/A".to_owned(),
    };
    row![
        name(object),
        limit("minAvailable"),
        limit("maxUnavailable"),
        number(object, &["status", "disruptionsAllowed"]),
        age_of(object, context),
    ]
}
