//! Implements `MutatingWebhookConfiguration` objects.

use crate::kinds::kind::{Changes, Kind};

/// The behavior of `MutatingWebhookConfiguration` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingwebhookconfigurations",
    kind: "MutatingWebhookConfiguration",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(kubernetes_admission::config::set_defaults),
    next_generation: Changes::OfIntentOrEmptyFields,
    is_webhook_configuration: true,
    warn: |warnings, object, old| {
        crate::kinds::admissionregistration::warn_configuration(warnings, object, old)
    },
    cells: Some(crate::kinds::tables::cluster::webhooks),
    ..Kind::COUNTED
};
