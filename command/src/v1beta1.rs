//! Warns about webhook configurations of `admissionregistration.k8s.io/v1beta1` in files.

use std::fmt::Display;
use std::fmt::Write as _;

use harness::config;
use harness::json::text;
use output::OneLine;
use serde_json::Value;

/// Returns a warning if `configuration` is a v1beta1 configuration; `place` is its location.
///
/// The first line is about the configuration. The other lines name each field whose default differs in v1, and each
/// error of v1 validation.
pub(crate) fn warning(place: impl Display, configuration: &Value) -> Option<String> {
    if !config::is_v1beta1(configuration) {
        return None;
    }
    let (kind, name) = (text(configuration, &["kind"]), text(configuration, &["metadata", "name"]));
    let mut warning = format!(
        "{place}: {kind} {name:?} is of admissionregistration.k8s.io/v1beta1, which API servers have not \
         served since Kubernetes 1.22; admit uses the defaults of v1beta1",
        place = OneLine(place.to_string()),
    );
    for differing in config::v1_differences(configuration) {
        let _ = write!(warning, "\n  {}", OneLine(differing.to_string()));
    }
    for error in config::v1_errors(configuration) {
        let _ = write!(warning, "\n  v1 rejects {}", OneLine(error.to_string()));
    }
    Some(warning)
}

/// Prints the [`warning`] for `configuration`, if any, to standard error.
pub(crate) fn warn(place: impl Display, configuration: &Value) {
    if let Some(warning) = warning(place, configuration) {
        crate::screen::status!("warning: {warning}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_v1beta1_configuration_causes_a_warning_with_its_v1_differences() {
        let mut configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1beta1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "c"},
            "webhooks": [{"name": "w.example.com", "clientConfig": {"url": "https://h/"}, "failurePolicy": "Fail",
                "timeoutSeconds": 5, "admissionReviewVersions": ["v1"]}],
        });
        assert_eq!(
            warning("c.yaml:3", &configuration).unwrap(),
            "c.yaml:3: MutatingWebhookConfiguration \"c\" is of admissionregistration.k8s.io/v1beta1, which API \
             servers have not served since Kubernetes 1.22; admit uses the defaults of v1beta1\n  \
             webhooks[0].matchPolicy is not set: Exact in v1beta1, Equivalent in v1\n  \
             v1 rejects webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"
        );
        configuration["apiVersion"] = json!("admissionregistration.k8s.io/v1");
        assert_eq!(warning("c.yaml:3", &configuration), None);
    }
}
