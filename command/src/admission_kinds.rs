//! Recognizes the kinds of `admissionregistration.k8s.io` in files.

use harness::attributes::GroupVersionKind;
use harness::verify::similar_name::most_similar;
use serde_json::Value;

use crate::Failure;
use crate::documents::DocumentLocation;

const GROUP: &str = "admissionregistration.k8s.io";

/// The kinds of webhook configurations, and the versions that admit reads.
const CONFIGURATIONS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
const CONFIGURATION_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The kinds of admission policies, and the versions that Kubernetes has served.
const POLICIES: [&str; 4] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];
const POLICY_VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Returns whether `object` is a webhook configuration in v1 or v1beta1.
pub(crate) fn is_configuration(object: &Value) -> bool {
    let kind = GroupVersionKind::from_object(object);
    kind.group == GROUP
        && CONFIGURATIONS.contains(&&*kind.kind)
        && CONFIGURATION_VERSIONS.contains(&&*kind.version)
}

/// Returns the error of an API server that does not serve the kind, with the name that is probably meant.
pub(crate) fn no_matches(kind: &str, api_version: &str, meant: Option<&str>) -> String {
    let suggestion = meant.map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default();
    format!("no matches for kind \"{kind}\" in version \"{api_version}\"{suggestion}")
}

/// Rejects objects of `admissionregistration.k8s.io` whose kind or version no API server serves.
///
/// # Errors
/// Returns a usage failure for the first such object.
pub(crate) fn reject_unknown<'a>(
    mut objects: impl Iterator<Item = (DocumentLocation, &'a Value)>,
) -> Result<(), Failure> {
    let unknown = objects.find_map(|(place, object)| Some((place, unknown(object)?)));
    unknown.map_or(Ok(()), |(place, message)| Err(place.failure(output::OneLine(message))))
}

fn unknown(object: &Value) -> Option<String> {
    let found = GroupVersionKind::from_object(object);
    if found.group != GROUP {
        return None;
    }
    let (kind, version) = (&*found.kind, &*found.version);
    let versions: &[&str] = if CONFIGURATIONS.contains(&kind) {
        &CONFIGURATION_VERSIONS
    } else if POLICIES.contains(&kind) {
        &POLICY_VERSIONS
    } else {
        let meant = most_similar(kind, CONFIGURATIONS.into_iter().chain(POLICIES));
        return Some(no_matches(kind, &found.api_version(), meant));
    };
    let meant = format!("{GROUP}/v1");
    (!versions.contains(&version)).then(|| no_matches(kind, &found.api_version(), Some(&meant)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_and_versions_that_no_server_serves_are_rejected_with_the_similar_name() {
        let error = |api_version: &str, kind: &str| {
            unknown(&json!({"apiVersion": api_version, "kind": kind, "webhooks": []})).unwrap_or_default()
        };
        assert_eq!(
            error("admissionregistration.k8s.io/v1", "ValidatingWebhookConfig"),
            "no matches for kind \"ValidatingWebhookConfig\" in version \"admissionregistration.k8s.io/v1\" \
             (did you mean ValidatingWebhookConfiguration?)"
        );
        assert_eq!(
            error("admissionregistration.k8s.io/v2", "MutatingWebhookConfiguration"),
            "no matches for kind \"MutatingWebhookConfiguration\" in version \
             \"admissionregistration.k8s.io/v2\" (did you mean admissionregistration.k8s.io/v1?)"
        );
        assert_eq!(
            error("admissionregistration.k8s.io/v1", "Foo"),
            "no matches for kind \"Foo\" in version \"admissionregistration.k8s.io/v1\""
        );
        assert_eq!(error("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration"), "");
        assert_eq!(error("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy"), "");
        assert_eq!(error("example.com/v1", "ValidatingWebhookConfig"), "");
    }

    #[test]
    fn only_the_two_kinds_of_the_group_are_configurations() {
        let is = |api_version: &str, kind: &str| {
            is_configuration(&json!({"apiVersion": api_version, "kind": kind, "webhooks": []}))
        };
        for version in ["v1", "v1beta1"] {
            let api_version = format!("{GROUP}/{version}");
            assert!(CONFIGURATIONS.iter().all(|kind| is(&api_version, kind)), "{version}");
        }
        assert!(!is("admissionregistration.k8s.io/v1", "MutatingWebhookConfigurations"));
        assert!(!is("admissionregistration.k8s.io/v2", "MutatingWebhookConfiguration"));
        assert!(!is("example.com/v1", "Widget"));
    }
}
