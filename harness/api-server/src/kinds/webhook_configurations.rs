//! Names the resources that configure admission webhooks.

pub(crate) const GROUP: &str = "admissionregistration.k8s.io";
pub(crate) const MUTATING: &str = "mutatingwebhookconfigurations";
pub(crate) const VALIDATING: &str = "validatingwebhookconfigurations";
