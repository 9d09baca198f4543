//! Implements `ReplicationController` objects.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::fields::get;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use serde_json::Value;

/// The behavior of `ReplicationController` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "replicationcontrollers",
    kind: "ReplicationController",
    set_defaults: Some(crate::kinds::defaulting::workloads::replication_controller),
    has_name_by_type: true,
    orphans_dependents: true,
    drop_disabled_fields: crate::kinds::strategy::disabled_fields::drop_of_template,
    validate: crate::kinds::validation::workloads::replication_controller,
    validate_subresources: &[("status", validate_status)],
    warn: warn,
    cells: Some(crate::kinds::tables::workloads::replication_controller),
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "status.replicas"]),
    ..Kind::COUNTED
};

const COUNTERS: [&str; 6] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
];
const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    crate::kinds::validation::statuses::counters(errors, object, change, &COUNTERS, &PARTS, "");
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if crate::kinds::common::warnings::has_next_generation(object, old) {
        if old.is_none() {
            crate::kinds::common::warnings::named_as_host(
                warnings,
                object,
                crate::kinds::common::warnings::POD_NAMES,
            );
        }
        // An update warns about the replaced template.
        crate::kinds::validation::warnings::of_template(warnings, get(old.unwrap_or(object), "spec"));
    }
}
