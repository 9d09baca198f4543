//! Implements `DaemonSet` objects.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::fields::{get, text};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use crate::kinds::strategy::TEMPLATE_GENERATION;
use kubernetes_types::equality::same;
use kubernetes_types::json::at;
use kubernetes_types::json::set;
use kubernetes_types::schema::Type;
use serde_json::Value;
use serde_json::json;

/// The behavior of `DaemonSet` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "daemonsets",
    kind: "DaemonSet",
    set_defaults: Some(crate::kinds::defaulting::workloads::daemon_set),
    through_internal: Some(crate::kinds::defaulting::internal::daemon_set),
    into_internal: Some(("v1", into_internal)),
    drop_disabled_fields: crate::kinds::strategy::disabled_fields::drop_of_template,
    prepare_create: |object| crate::kinds::strategy::set_annotation(object, TEMPLATE_GENERATION, "1"),
    finish_update: count_template,
    validate: crate::kinds::validation::workloads::daemon_set,
    validate_subresources: &[("status", validate_status)],
    warn: warn,
    fill_empty: |object| {
        set(object, &["metadata", "annotations"], json!({TEMPLATE_GENERATION: "0"}));
    },
    cells: Some(crate::kinds::tables::workloads::daemon_set),
    internal_annotations: &[("v1", &[TEMPLATE_GENERATION])],
    ..Kind::COUNTED
};

const COUNTERS: [&str; 9] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    crate::kinds::validation::statuses::counters(errors, object, change, &COUNTERS, &[], "");
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let generation = |set| text(get(get(set, "metadata"), "annotations"), TEMPLATE_GENERATION);
    if old.is_none_or(|old| generation(old) != generation(object)) {
        crate::kinds::validation::warnings::of_template(warnings, get(object, "spec"));
    }
}

/// Increments the generation of the template if the template changes.
fn count_template(object: &mut Value, old: &Value, of: Type) {
    let pointer = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
    let generation = old.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
    let mut generation: i64 = generation.parse().unwrap_or(0);
    let path = ["spec", "template"];
    if !same(at(object, &path), at(old, &path), of.member("spec").member("template")) {
        generation = generation.wrapping_add(1);
    }
    crate::kinds::strategy::set_annotation(object, TEMPLATE_GENERATION, &generation.to_string());
}

/// Keeps the generation of the template, which the internal type has as a field.
fn into_internal(object: &mut Value, before: &Value) {
    crate::kinds::defaulting::internal::keep_annotations(object, before, &[TEMPLATE_GENERATION]);
    crate::kinds::defaulting::internal::daemon_set(object);
}
