//! Which requests no webhook ever sees.

use crate::attributes::Attributes;
use crate::config;

/// Whether no webhook of a configuration is called for this request, whatever its rules.
///
/// Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, `Dispatch`; kubernetes
/// pkg/kubeapiserver/admission/exclusion/resources.go.
pub(super) fn is_exempt(attributes: &Attributes) -> bool {
    is_virtual(attributes) || configures_admission(attributes)
}

/// Reviews of who somebody is and what they may do: a webhook in their way could lock everybody out.
fn is_virtual(attributes: &Attributes) -> bool {
    config::EXCLUDED.contains(&(attributes.resource.group.as_str(), attributes.resource.resource.as_str()))
}

/// A webhook that refused these could never be removed again.
///
/// Source: apiserver pkg/admission/plugin/webhook/predicates/rules/rules.go,
/// `IsExemptAdmissionConfigurationResource`.
fn configures_admission(attributes: &Attributes) -> bool {
    attributes.kind.group == "admissionregistration.k8s.io"
        && matches!(
            attributes.kind.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}
