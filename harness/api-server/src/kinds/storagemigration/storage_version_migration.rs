//! Implements `StorageVersionMigration` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `StorageVersionMigration` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storagemigration.k8s.io",
    resource: "storageversionmigrations",
    kind: "StorageVersionMigration",
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    validate: crate::kinds::validation::migrations::migration,
    validate_subresources: &[("status", crate::kinds::validation::migrations::status)],
    cells: Some(crate::kinds::tables::cluster::migration),
    ..Kind::PLAIN
};
