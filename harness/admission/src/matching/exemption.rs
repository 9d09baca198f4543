//! Identifies requests for which webhooks are never called, regardless of their rules.

use crate::attributes::Attributes;
use crate::config::{self, Source};

/// Returns whether webhooks from `source` are never called for this request.
///
/// A configuration from a file cannot be changed through the API, so its webhooks may reject changes to webhook
/// configurations.
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

/// Returns whether the request is an authentication or authorization review.
///
/// A webhook that blocks these reviews could lock out every user.
///
/// Rule: EXM-03, NEW-05.
pub(crate) fn is_virtual(attributes: &Attributes) -> bool {
    config::EXCLUDED.contains(&(attributes.resource.group.as_str(), attributes.resource.resource.as_str()))
}

/// Returns whether the request is for an object that configures admission.
///
/// A webhook that rejects changes to these objects could never be removed.
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
