//! Implements the kinds of `admissionregistration.k8s.io`.

pub(crate) mod mutating_admission_policy;
pub(crate) mod mutating_admission_policy_binding;
pub(crate) mod mutating_webhook_configuration;
pub(crate) mod validating_admission_policy;
pub(crate) mod validating_admission_policy_binding;
pub(crate) mod validating_webhook_configuration;

use serde_json::Value;

use crate::kinds::common::warnings::Warnings;

/// Warns about a webhook configuration.
pub(crate) fn warn_configuration(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let mut found = kubernetes_admission::config::warnings(object);
    if old.is_some() {
        found.extend(kubernetes_admission::config::update_warnings(object));
    }
    for warning in found {
        warnings.push(warning);
    }
}
