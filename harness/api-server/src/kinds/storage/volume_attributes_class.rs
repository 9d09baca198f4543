//! Implements `VolumeAttributesClass` objects.

use crate::kinds::kind::Kind;

/// The behavior of `VolumeAttributesClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattributesclasses",
    kind: "VolumeAttributesClass",
    returns_deleted_object: true,
    validate: crate::kinds::validation::attachments::attributes_class,
    cells: Some(crate::kinds::tables::storage::attributes_class),
    ..Kind::PLAIN
};
