//! Implements `ValidatingWebhookConfiguration` objects.

use crate::kinds::admissionregistration::configurations;
use crate::kinds::kind::{Changes, Kind};

/// The behavior of `ValidatingWebhookConfiguration` objects.
pub(crate) const KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingwebhookconfigurations",
    kind: "ValidatingWebhookConfiguration",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(kubernetes_admission::config::set_defaults),
    next_generation: Changes::OfIntentOrEmptyFields,
    is_webhook_configuration: true,
    warn: |warnings, object, old| configurations::warn_configuration(warnings, object, old),
    cells: Some(configurations::cells),
    ..Kind::COUNTED
};
