//! Implements Leases.

use crate::kinds::kind::Kind;
use serde_json::Value;

/// The behavior of Leases.
pub(crate) const KIND: Kind = Kind {
    group: "coordination.k8s.io",
    resource: "leases",
    kind: "Lease",
    set_defaults: Some(crate::kinds::defaulting::extensions::lease),
    has_core_finalizers: false,
    requires_resource_version: true,
    is_created_by_update: true,
    drop_disabled_fields: drop_disabled_fields,
    validate: crate::kinds::validation::nodes::lease,
    cells: Some(crate::kinds::tables::cluster::lease),
    ..Kind::PLAIN
};

/// Removes the fields of the feature gate `CoordinatedLeaderElection`.
fn drop_disabled_fields(object: &mut Value) {
    crate::kinds::strategy::disabled_fields::drop_all(
        object.get_mut("spec"),
        &[&["strategy"], &["preferredHolder"]],
    );
}
