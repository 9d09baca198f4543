//! Implements `ValidatingAdmissionPolicyBinding` objects.

use crate::kinds::admissionregistration;
use crate::kinds::admissionregistration::bindings;
use crate::kinds::kind::Kind;

/// The behavior of `ValidatingAdmissionPolicyBinding` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicybindings",
    kind: "ValidatingAdmissionPolicyBinding",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(admissionregistration::defaults::binding),
    validate: |errors, object, change| bindings::validating_binding(errors, object, change.is_none()),
    cells: Some(bindings::cells),
    ..Kind::COUNTED
};
