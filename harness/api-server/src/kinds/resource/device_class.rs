//! Implements `DeviceClass` objects.

use crate::kinds::kind::Kind;

/// The behavior of `DeviceClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "deviceclasses",
    kind: "DeviceClass",
    has_name_by_type: true,
    returns_deleted_object: true,
    validate: |errors, object, change| {
        let result = crate::kinds::validation::devices::class(errors, object, change);
        errors.note(result);
    },
    cells: Some(crate::kinds::tables::cluster::name_and_age),
    ..Kind::COUNTED
};
