//! Implements `CSIStorageCapacity` objects.

use crate::kinds::kind::Kind;

/// The behavior of `CSIStorageCapacity` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csistoragecapacities",
    kind: "CSIStorageCapacity",
    requires_resource_version: true,
    validate: crate::kinds::validation::drivers::capacity,
    warn: crate::kinds::validation::warnings::storage::capacity,
    has_default_columns: true,
    ..Kind::PLAIN
};
