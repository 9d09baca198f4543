//! Implements `ValidatingAdmissionPolicyBinding` objects.

use crate::kinds::kind::Kind;

/// The behavior of `ValidatingAdmissionPolicyBinding` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicybindings",
    kind: "ValidatingAdmissionPolicyBinding",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(crate::kinds::defaulting::policies::binding),
    validate: |errors, object, change| {
        crate::kinds::validation::admission_policies::bindings::validating_binding(
            errors,
            object,
            change.is_none(),
        )
    },
    cells: Some(crate::kinds::tables::cluster::policy_binding),
    ..Kind::COUNTED
};
