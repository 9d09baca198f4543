//! Implements `PodDisruptionBudget` objects.

use crate::kinds::kind::Kind;

/// The behavior of `PodDisruptionBudget` objects.
pub(crate) const KIND: Kind = Kind {
    group: "policy",
    resource: "poddisruptionbudgets",
    kind: "PodDisruptionBudget",
    set_defaults: Some(crate::kinds::defaulting::extensions::pod_disruption_budget),
    validate_name: |name, _| crate::kinds::object_names::path_segment_errors(name),
    has_core_finalizers: false,
    requires_resource_version: true,
    validates_metadata_last: true,
    validate: crate::kinds::validation::policies::disruption_budget,
    validate_subresources: &[("status", crate::kinds::validation::statuses::budget)],
    cells: Some(crate::kinds::tables::workloads::pod_disruption_budget),
    ..Kind::COUNTED
};
