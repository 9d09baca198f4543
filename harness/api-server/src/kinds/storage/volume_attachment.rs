//! Implements `VolumeAttachment` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `VolumeAttachment` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattachments",
    kind: "VolumeAttachment",
    set_defaults: Some(crate::kinds::defaulting::storage::volume_attachment),
    returns_deleted_object: true,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    validate: crate::kinds::validation::attachments::attachment,
    validate_subresources: &[("status", |errors, object, change| {
        crate::kinds::validation::attachments::attachment(errors, object, Some(change))
    })],
    cells: Some(crate::kinds::tables::storage::attachment),
    ..Kind::PLAIN
};
