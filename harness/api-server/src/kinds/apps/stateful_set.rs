//! Implements `StatefulSet` objects.

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::kind::Kind;
use kubernetes_types::json::set;
use kubernetes_types::names;
use serde_json::Value;

/// The behavior of `StatefulSet` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "statefulsets",
    kind: "StatefulSet",
    set_defaults: Some(crate::kinds::defaulting::workloads::stateful_set),
    through_internal: Some(crate::kinds::defaulting::internal::stateful_set),
    validate_name: |name, _| {
        if name.contains('.') { vec!["must not contain dots".to_owned()] } else { names::dns1123_label(name) }
    },
    drop_disabled_fields: crate::kinds::strategy::disabled_fields::drop_of_template,
    validate: crate::kinds::validation::workloads::stateful_set,
    validate_subresources: &[("status", validate_status)],
    warn: crate::kinds::validation::warnings::stateful_set,
    fill_empty: |object| {
        set(object, &["spec", "replicas"], 0);
    },
    cells: Some(crate::kinds::tables::workloads::stateful_set),
    ..Kind::COUNTED
};

const COUNTERS: [&str; 7] = [
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
];
const PARTS: [&str; 4] = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    crate::kinds::validation::statuses::counters(errors, object, change, &COUNTERS, &PARTS, "status.");
}
