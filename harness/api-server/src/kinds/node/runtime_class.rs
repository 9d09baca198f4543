//! Implements `RuntimeClass` objects.

use crate::kinds::kind::Kind;

/// The behavior of `RuntimeClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "node.k8s.io",
    resource: "runtimeclasses",
    kind: "RuntimeClass",
    has_core_finalizers: false,
    requires_resource_version: true,
    is_created_by_update: true,
    validate: crate::kinds::validation::nodes::runtime_class,
    warn: crate::kinds::validation::warnings::storage::runtime_class,
    cells: Some(crate::kinds::tables::cluster::runtime_class),
    ..Kind::PLAIN
};
