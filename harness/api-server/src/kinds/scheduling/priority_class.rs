//! Implements `PriorityClass` objects.

use crate::kinds::kind::Kind;

/// The behavior of `PriorityClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "scheduling.k8s.io",
    resource: "priorityclasses",
    kind: "PriorityClass",
    set_defaults: Some(crate::kinds::defaulting::extensions::priority_class),
    starts_generation: true,
    validate: crate::kinds::validation::policies::priority_class,
    forbids_deletion: forbids_deletion,
    cells: Some(crate::kinds::tables::cluster::priority_class),
    ..Kind::PLAIN
};

/// Upstream does not check the deletion of a collection.
///
/// Source: kubernetes pkg/registry/scheduling/priorityclass/storage/storage.go, `Delete`.
/// Rule: KND-17.
fn forbids_deletion(name: &str) -> Option<&'static str> {
    let is_system = ["system-node-critical", "system-cluster-critical"].contains(&name);
    is_system.then_some("this is a system priority class and cannot be deleted")
}
