//! Implements `StorageClass` objects.

use crate::kinds::kind::Kind;

/// The behavior of `StorageClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "storageclasses",
    kind: "StorageClass",
    set_defaults: Some(crate::kinds::defaulting::storage::storage_class),
    returns_deleted_object: true,
    validate: crate::kinds::validation::storage::class,
    warn: crate::kinds::validation::warnings::storage::class,
    cells: Some(crate::kinds::tables::storage::class),
    default_in_list: Some(crate::kinds::tables::storage::default_class),
    ..Kind::PLAIN
};
