//! Implements the kinds of `admissionregistration.k8s.io`.

pub(crate) mod bindings;
pub(crate) mod configurations;
pub(crate) mod defaults;
pub(crate) mod expressions;
pub(crate) mod matching;
pub(crate) mod mutating_admission_policy;
pub(crate) mod mutating_admission_policy_binding;
pub(crate) mod mutating_webhook_configuration;
pub(crate) mod policies;
pub(crate) mod validating_admission_policy;
pub(crate) mod validating_admission_policy_binding;
pub(crate) mod validating_webhook_configuration;
