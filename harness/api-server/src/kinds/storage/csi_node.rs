//! Implements `CSINode` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `CSINode` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csinodes",
    kind: "CSINode",
    returns_deleted_object: true,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    drop_disabled_fields: |object| {
        crate::kinds::strategy::disabled_fields::drop_all(object.get_mut("status"), &[&["storageHealth"]])
    },
    validate: crate::kinds::validation::attachments::node,
    cells: Some(crate::kinds::tables::storage::csi_node),
    ..Kind::PLAIN
};
