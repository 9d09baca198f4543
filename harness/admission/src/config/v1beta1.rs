//! Handles configurations of `admissionregistration.k8s.io/v1beta1`, which API servers served until Kubernetes 1.21.
//!
//! Source: kubernetes pkg/apis/admissionregistration/v1beta1/defaults.go, which remains for stored configurations.

use kubernetes_types::status::FieldError;
use serde_json::{Map, Value, json};

use super::defaults::{self, set};
use super::{API_VERSION, MUTATING, VALIDATING, list, validate};

const OLD_API_VERSION: &str = "admissionregistration.k8s.io/v1beta1";

/// An omitted field of a v1beta1 configuration that has a different default in v1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefaultDifference {
    /// The field's path, such as `webhooks[0].failurePolicy`.
    pub field: String,
    /// The default of v1beta1, such as `Ignore` or `30`.
    pub v1beta1: String,
    /// The default of v1.
    pub v1: String,
}

/// Formats the difference: `webhooks[0].failurePolicy is not set: Ignore in v1beta1, Fail in v1`.
impl std::fmt::Display for DefaultDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is not set: {} in v1beta1, {} in v1", self.field, self.v1beta1, self.v1)
    }
}

/// Returns whether `object` is a v1beta1 webhook configuration.
pub fn is_v1beta1(object: &Value) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    text("apiVersion") == OLD_API_VERSION && [MUTATING, VALIDATING].contains(&text("kind"))
}

/// Sets the v1beta1 defaults that differ from the v1 defaults.
///
/// Rule: CFG-06.
pub(super) fn set_own_defaults(webhook: &mut Map<String, Value>) {
    set(webhook, "failurePolicy", || json!("Ignore"));
    set(webhook, "matchPolicy", || json!("Exact"));
    set(webhook, "sideEffects", || json!("Unknown"));
    set(webhook, "timeoutSeconds", || json!(30));
    let versions = webhook.get("admissionReviewVersions").unwrap_or(&Value::Null);
    // An empty list is defaulted, too.
    if versions.is_null() || versions.as_array().is_some_and(Vec::is_empty) {
        webhook.insert("admissionReviewVersions".to_owned(), json!(["v1beta1"]));
    }
}

/// Converts a v1beta1 configuration to v1, with the v1beta1 defaults written out.
///
/// A current API server does the same when it reads a v1beta1 configuration from storage. Returns `None` for other
/// objects.
///
/// The result may contain values that v1 rejects: see [`v1_errors`].
pub fn upgraded(configuration: &Value) -> Option<Value> {
    if !is_v1beta1(configuration) {
        return None;
    }
    let mut upgraded = configuration.clone();
    defaults::set_defaults(&mut upgraded);
    upgraded.as_object_mut()?.insert("apiVersion".to_owned(), API_VERSION.into());
    Some(upgraded)
}

/// Returns the omitted fields of a v1beta1 configuration that have different defaults in v1.
///
/// The result is empty for a v1 configuration.
pub fn v1_differences(configuration: &Value) -> Vec<DefaultDifference> {
    if !is_v1beta1(configuration) {
        return Vec::new();
    }
    let (old, new) = (with_defaults_of(configuration, OLD_API_VERSION), as_v1(configuration));
    let written = |value: &Value| value.to_string().replace('"', "");
    let mut differing = Vec::new();
    for (index, (old, new)) in list(&old, "webhooks").iter().zip(list(&new, "webhooks")).enumerate() {
        for (field, value) in new.as_object().into_iter().flatten() {
            let before = old.get(field).unwrap_or(&Value::Null);
            if before != value {
                let field = format!("webhooks[{index}].{field}");
                differing.push(DefaultDifference { field, v1beta1: written(before), v1: written(value) });
            }
        }
    }
    differing
}

/// Returns the validation errors that a v1beta1 configuration has if only its `apiVersion` is changed to v1.
///
/// The result is empty for a v1 configuration.
pub fn v1_errors(configuration: &Value) -> Vec<FieldError> {
    if is_v1beta1(configuration) { validate(&as_v1(configuration)) } else { Vec::new() }
}

fn as_v1(configuration: &Value) -> Value {
    with_defaults_of(configuration, API_VERSION)
}

fn with_defaults_of(configuration: &Value, api_version: &str) -> Value {
    let mut complete = configuration.clone();
    if let Some(members) = complete.as_object_mut() {
        members.insert("apiVersion".to_owned(), api_version.into());
    }
    defaults::set_defaults(&mut complete);
    complete
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{FailurePolicy, MatchPolicy, ReinvocationPolicy, Scope, SideEffects, webhooks};

    fn configuration(kind: &str, fields: &Value) -> Value {
        let mut webhook = json!({
            "name": "w.example.com",
            "clientConfig": {"service": {"namespace": "n", "name": "s"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        });
        for (field, value) in fields.as_object().into_iter().flatten() {
            webhook[field] = value.clone();
        }
        json!({"apiVersion": OLD_API_VERSION, "kind": kind, "metadata": {"name": "c"}, "webhooks": [webhook]})
    }

    #[test]
    fn omitted_fields_have_the_v1beta1_defaults() {
        let upgraded = upgraded(&configuration(MUTATING, &json!({"timeoutSeconds": null}))).unwrap();
        assert_eq!(upgraded["apiVersion"], API_VERSION);
        assert_eq!(
            upgraded["webhooks"][0],
            json!({
                "name": "w.example.com",
                "clientConfig": {"service": {"namespace": "n", "name": "s", "port": 443}},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                    "scope": "*"}],
                "failurePolicy": "Ignore",
                "matchPolicy": "Exact",
                "namespaceSelector": {},
                "objectSelector": {},
                "sideEffects": "Unknown",
                "timeoutSeconds": 30,
                "admissionReviewVersions": ["v1beta1"],
                "reinvocationPolicy": "Never",
            })
        );
    }

    #[test]
    fn a_v1beta1_webhook_is_read_with_v1beta1_defaults() {
        let webhook = webhooks(&configuration(MUTATING, &json!({}))).unwrap().remove(0);
        assert_eq!(webhook.failure_policy, FailurePolicy::Ignore);
        assert_eq!(webhook.match_policy, MatchPolicy::Exact);
        assert_eq!(webhook.side_effects, SideEffects::Unknown);
        assert_eq!(webhook.timeout, Duration::from_secs(30));
        assert_eq!(webhook.admission_review_versions, ["v1beta1"]);
        assert_eq!(webhook.reinvocation_policy, ReinvocationPolicy::Never);
        assert_eq!(webhook.rules[0].scope, Scope::All);
    }

    #[test]
    fn set_fields_are_kept() {
        let given = json!({"failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None",
            "timeoutSeconds": 3, "admissionReviewVersions": ["v1"]});
        let configuration = configuration(VALIDATING, &given);
        let upgraded = upgraded(&configuration).unwrap();
        for (field, value) in given.as_object().unwrap() {
            assert_eq!(upgraded["webhooks"][0][field], *value);
        }
        assert_eq!(upgraded["webhooks"][0].get("reinvocationPolicy"), None);
        assert_eq!((v1_differences(&configuration), v1_errors(&configuration)), (vec![], vec![]));
    }

    #[test]
    fn v1_differences_are_listed_by_field() {
        let configuration = configuration(VALIDATING, &json!({}));
        let differences: Vec<String> =
            v1_differences(&configuration).iter().map(ToString::to_string).collect();
        assert_eq!(
            differences,
            [
                "webhooks[0].failurePolicy is not set: Ignore in v1beta1, Fail in v1",
                "webhooks[0].matchPolicy is not set: Exact in v1beta1, Equivalent in v1",
                "webhooks[0].timeoutSeconds is not set: 30 in v1beta1, 10 in v1",
            ]
        );
        let errors: Vec<String> = v1_errors(&configuration).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
                "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ]
        );
    }

    #[test]
    fn other_objects_are_not_v1beta1() {
        let v1 = json!({"apiVersion": API_VERSION, "kind": MUTATING, "webhooks": [{}]});
        let policy = json!({"apiVersion": OLD_API_VERSION, "kind": "ValidatingAdmissionPolicy"});
        for object in [v1, policy] {
            assert_eq!(upgraded(&object), None);
            assert_eq!((v1_differences(&object), v1_errors(&object)), (vec![], vec![]));
        }
    }
}
