//! Implements `MutatingAdmissionPolicy` objects.

use crate::kinds::kind::Kind;

/// The behavior of `MutatingAdmissionPolicy` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingadmissionpolicies",
    kind: "MutatingAdmissionPolicy",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(crate::kinds::defaulting::policies::policy),
    validate: crate::kinds::validation::admission_policies::mutating::mutating_policy,
    cells: Some(crate::kinds::tables::cluster::mutating_policy),
    ..Kind::COUNTED
};
