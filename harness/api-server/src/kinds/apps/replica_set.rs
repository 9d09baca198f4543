//! Implements `ReplicaSet` objects.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::fields::get;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use kubernetes_types::json::set;
use serde_json::Value;

/// The behavior of `ReplicaSet` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "replicasets",
    kind: "ReplicaSet",
    set_defaults: Some(crate::kinds::defaulting::workloads::replica_set),
    drop_disabled_fields: crate::kinds::strategy::disabled_fields::drop_of_template,
    validate: crate::kinds::validation::workloads::replica_set,
    validate_subresources: &[("status", validate_status)],
    warn: warn,
    fill_empty: |object| {
        set(object, &["spec", "replicas"], 0);
    },
    cells: Some(crate::kinds::tables::workloads::replica_set),
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
        crate::kinds::validation::warnings::of_template(warnings, get(object, "spec"));
    }
}
