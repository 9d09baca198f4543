//! Which requests a webhook never sees, whatever its rules.

use crate::attributes::Attributes;
use crate::config::{self, Source};

/// Whether no webhook from `source` is called for this request. A configuration from a file cannot be changed by the API,
/// so that its webhooks may refuse changes of what configures admission.
///
/// Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, `Dispatch`; kubernetes
/// pkg/kubeapiserver/admission/exclusion/resources.go.
/// Rule: EXM-02.
pub(super) fn is_exempt(source: Source, attributes: &Attributes) -> bool {
    let is_protected = match source {
        Source::Api => configures_admission(attributes),
        Source::Manifest => false,
    };
    is_protected || is_virtual(attributes)
}

/// Reviews of who somebody is and what they may do: a webhook in their way could lock everybody out.
///
/// Rule: EXM-03, NEW-05.
fn is_virtual(attributes: &Attributes) -> bool {
    config::EXCLUDED.contains(&(attributes.resource.group.as_str(), attributes.resource.resource.as_str()))
}

/// A webhook that refused these could never be removed again.
///
/// Source: apiserver pkg/admission/plugin/webhook/predicates/rules/rules.go,
/// `IsExemptAdmissionConfigurationResource`.
/// Rule: EXM-01, NEW-09.
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
