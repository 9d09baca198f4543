//! Implements `ValidatingAdmissionPolicy` objects.

use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `ValidatingAdmissionPolicy` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicies",
    kind: "ValidatingAdmissionPolicy",
    has_core_finalizers: false,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    set_defaults: Some(crate::kinds::defaulting::policies::policy),
    validate: crate::kinds::validation::admission_policies::validating::validating_policy,
    validate_subresources: &[(
        "status",
        crate::kinds::validation::admission_policies::validating::validating_policy_status,
    )],
    cells: Some(crate::kinds::tables::cluster::validating_policy),
    ..Kind::COUNTED
};
