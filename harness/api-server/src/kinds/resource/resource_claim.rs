//! Implements `ResourceClaim` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `ResourceClaim` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaims",
    kind: "ResourceClaim",
    set_defaults: Some(crate::kinds::defaulting::devices::resource_claim),
    returns_deleted_object: true,
    status_keeps: StatusKeeps::Metadata,
    has_status_table: false,
    prepare_status: crate::kinds::strategy::update::drop_deallocated_devices,
    drop_disabled_fields: crate::kinds::strategy::disabled_fields::drop_of_claim,
    validate: |errors, object, change| {
        let result = crate::kinds::validation::devices::claim(errors, object, change);
        errors.note(result);
    },
    validate_subresources: &[("status", crate::kinds::validation::devices::status::claim_status)],
    cells: Some(crate::kinds::tables::cluster::resource_claim),
    admin_access: crate::kinds::validation::devices::admin_access,
    ..Kind::PLAIN
};
