//! Implements `ResourceClaimTemplate` objects.

use crate::kinds::kind::Kind;

/// The behavior of `ResourceClaimTemplate` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaimtemplates",
    kind: "ResourceClaimTemplate",
    set_defaults: Some(crate::kinds::defaulting::devices::resource_claim_template),
    returns_deleted_object: true,
    drop_disabled_fields: |object| {
        crate::kinds::strategy::disabled_fields::drop_all(
            object.pointer_mut("/spec/spec"),
            crate::kinds::strategy::disabled_fields::OF_CLAIMS,
        )
    },
    validate: |errors, object, change| {
        let result = crate::kinds::validation::devices::template(errors, object, change);
        errors.note(result);
    },
    cells: Some(crate::kinds::tables::cluster::name_and_age),
    admin_access: crate::kinds::validation::devices::template_admin_access,
    ..Kind::PLAIN
};
