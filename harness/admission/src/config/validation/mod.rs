//! Validates webhook configurations as the API does.

mod client_config;
mod conditions;
mod error;
mod metadata;
mod rules;

use std::collections::BTreeSet;

use kubernetes_types::names;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use self::error::Errors;
use super::{MUTATING, list, text};

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const OLD_SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Returns the errors of a new configuration, in the API server's order; empty if it is valid.
///
/// The defaults of `configuration` must already be set. A field of the wrong type counts as missing.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `ValidateMutatingWebhookConfiguration` and `ValidateValidatingWebhookConfiguration`; `static_suffix.go` next to it.
/// Rule: NEW-13.
pub fn validate(configuration: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    validate_with(configuration, AllowedErrors::default(), &mut errors);
    metadata::validate_static_suffix(configuration.get("metadata").unwrap_or(&Value::Null), &mut errors);
    errors.distinct()
}

/// Returns the errors of a `clientConfig`; `path` is the path of the field.
pub fn client_config_errors(client_config: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    client_config::validate(client_config, path, &mut errors);
    errors.distinct()
}

/// Returns the errors of a rule with operations; `path` is the path of the rule.
pub fn rule_errors(rule: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    rules::validate(rule, path, &mut errors);
    errors.distinct()
}

/// Returns the errors of a configuration in a file of `staticManifestsDir`, as [`validate`] does.
///
/// The name of the configuration may have the reserved suffix.
///
/// Source: kubernetes pkg/admission/plugin/webhook/manifest/loader/loader.go, `defaultAndValidateMWC` and
/// `defaultAndValidateVWC`.
pub fn validate_manifest(configuration: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    validate_with(configuration, AllowedErrors::default(), &mut errors);
    errors.distinct()
}

/// Returns the errors of a configuration that replaces `old`. Some errors that `old` already has are allowed.
///
/// Changes to the metadata are not checked.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `ValidateMutatingWebhookConfigurationUpdate`.
pub fn validate_update(configuration: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let stored = conditions::expressions(list(old, "webhooks"));
    let allowed = AllowedErrors { stored: Some(&stored), ..AllowedErrors::for_update(configuration, old) };
    validate_with(configuration, allowed, &mut errors);
    errors.distinct()
}

/// The errors that an update may keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
struct AllowedErrors<'a> {
    side_effects: bool,
    review_versions: bool,
    repeated_names: bool,
    label_values: bool,
    match_conditions: bool,
    /// The expressions of the old webhooks. They are compiled with the rules for stored expressions.
    stored: Option<&'a BTreeSet<&'a str>>,
}

impl AllowedErrors<'_> {
    /// Returns the errors that an update from `old` to `new` may keep.
    ///
    /// Rule: VLD-31, VLD-32.
    fn for_update(new: &Value, old: &Value) -> Self {
        let (new, old) = (list(new, "webhooks"), list(old, "webhooks"));
        let mut seen = BTreeSet::new();
        let side_effects =
            |webhook: &Value| SIDE_EFFECTS.contains(&text(webhook, "sideEffects").unwrap_or_default());
        let recognized = |webhook: &Value| {
            let versions = list(webhook, "admissionReviewVersions");
            let known =
                |version: &Value| version.as_str().is_some_and(|text| REVIEW_VERSIONS.contains(&text));
            versions.is_empty() || versions.iter().any(known)
        };
        let conditions = |webhook: &Value| list(webhook, "matchConditions").to_vec();
        Self {
            side_effects: !old.iter().all(side_effects),
            review_versions: !old.iter().all(recognized),
            repeated_names: !old.iter().all(|webhook| seen.insert(text(webhook, "name").unwrap_or_default())),
            label_values: old.iter().any(|webhook| {
                let mut errors = Errors::default();
                selectors(webhook, "", Self::default(), &mut errors);
                !errors.distinct().is_empty()
            }),
            match_conditions: new.iter().map(conditions).eq(old.iter().map(conditions)),
            stored: None,
        }
    }
}

/// Validates the metadata, then each webhook in order.
///
/// Rule: VLD-02, VLD-05.
fn validate_with(configuration: &Value, allowed: AllowedErrors<'_>, errors: &mut Errors) {
    metadata::validate(configuration.get("metadata").unwrap_or(&Value::Null), errors);
    let mutating = text(configuration, "kind") == Some(MUTATING);
    let mut seen = BTreeSet::new();
    for (index, webhook) in list(configuration, "webhooks").iter().enumerate() {
        let path = format!("webhooks[{index}]");
        validate_webhook(webhook, &path, mutating, allowed, errors);
        review_versions(webhook, &format!("{path}.admissionReviewVersions"), allowed, errors);
        let name = text(webhook, "name").unwrap_or_default();
        if !allowed.repeated_names && !name.is_empty() && !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
    }
}

/// Validates the fields of one webhook, in the API server's order.
///
/// Rule: VLD-02, VLD-06, VLD-15, VLD-16, VLD-17.
fn validate_webhook(
    webhook: &Value,
    path: &str,
    mutating: bool,
    allowed: AllowedErrors<'_>,
    errors: &mut Errors,
) {
    name(text(webhook, "name").unwrap_or_default(), &format!("{path}.name"), errors);
    for (index, rule) in list(webhook, "rules").iter().enumerate() {
        rules::validate(rule, &format!("{path}.rules[{index}]"), errors);
    }
    word(webhook, "failurePolicy", &FAILURE_POLICIES, path, errors);
    word(webhook, "matchPolicy", &MATCH_POLICIES, path, errors);
    let side_effects: &[&str] = if allowed.side_effects { &OLD_SIDE_EFFECTS } else { &SIDE_EFFECTS };
    if text(webhook, "sideEffects").is_none() {
        let detail = format!("must specify one of {}", side_effects.join(", "));
        errors.required(format!("{path}.sideEffects"), &detail);
    }
    word(webhook, "sideEffects", side_effects, path, errors);
    let timeout = webhook.get("timeoutSeconds").and_then(Value::as_i64);
    if let Some(seconds) = timeout.filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.invalid_value(format!("{path}.timeoutSeconds"), &Value::from(seconds), detail);
    }
    selectors(webhook, path, allowed, errors);
    if mutating {
        word(webhook, "reinvocationPolicy", &REINVOCATION_POLICIES, path, errors);
    }
    let client_config = webhook.get("clientConfig").unwrap_or(&Value::Null);
    client_config::validate(client_config, &format!("{path}.clientConfig"), errors);
    if !allowed.match_conditions {
        let conditions = list(webhook, "matchConditions");
        conditions::validate(conditions, allowed.stored, &format!("{path}.matchConditions"), errors);
    }
}

fn selectors(webhook: &Value, path: &str, allowed: AllowedErrors<'_>, errors: &mut Errors) {
    for field in ["namespaceSelector", "objectSelector"] {
        let value = webhook.get(field).unwrap_or(&Value::Null);
        selector(value, &format!("{path}.{field}"), allowed, errors);
    }
}

/// Validates the name of a webhook: a domain with at least three segments.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsFullyQualifiedName`.
/// Rule: VLD-04.
fn name(name: &str, path: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let wrong = names::dns1123_subdomain(name);
    if !wrong.is_empty() {
        errors.invalid(path, name, &wrong.join(","));
    } else if name.split('.').count() < 3 {
        errors.invalid(path, name, "should be a domain with at least three segments separated by dots");
    }
}

/// Validates the `admissionReviewVersions` of a webhook.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateAdmissionReviewVersions`.
/// Rule: VLD-18, VLD-19.
fn review_versions(webhook: &Value, path: &str, allowed: AllowedErrors<'_>, errors: &mut Errors) {
    let versions = list(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.required(path, &format!("must specify one of {}", REVIEW_VERSIONS.join(", ")));
        return;
    }
    let texts: Vec<&str> = versions.iter().map(|version| version.as_str().unwrap_or_default()).collect();
    let mut seen = BTreeSet::new();
    for (index, version) in texts.iter().enumerate() {
        let version_path = format!("{path}[{index}]");
        if seen.insert(version) {
            errors.all_invalid(&version_path, version, &names::dns1035_label(version));
        } else {
            errors.invalid(version_path, version, "duplicate version");
        }
    }
    if !allowed.review_versions && !texts.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.invalid_value(path, &Value::from(texts), &detail);
    }
}

/// Validates a label selector.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabelSelector`.
/// Rule: VLD-26.
fn selector(selector: &Value, path: &str, allowed: AllowedErrors<'_>, errors: &mut Errors) {
    metadata::labels(selector.get("matchLabels"), &format!("{path}.matchLabels"), errors);
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = list(expression, "values");
        match text(expression, "operator").unwrap_or_default() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(format!("{path}.values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(format!("{path}.values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(format!("{path}.operator"), other, "not a valid selector operator"),
        }
        let key = text(expression, "key").unwrap_or_default();
        errors.all_invalid(&format!("{path}.key"), key, &names::label_key(key));
        if allowed.label_values {
            continue;
        }
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            errors.all_invalid(&format!("{path}.values[{index}]"), value, &names::label_value(value));
        }
    }
}

fn word(webhook: &Value, field: &str, supported: &[&str], path: &str, errors: &mut Errors) {
    if let Some(text) = text(webhook, field).filter(|text| !supported.contains(text)) {
        errors.unsupported(format!("{path}.{field}"), text, supported);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configuration(webhooks: &[Value]) -> Value {
        json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": webhooks})
    }

    fn webhook(field: &str, value: &Value) -> Value {
        let mut webhook = json!({
            "name": "w.example.com",
            "clientConfig": {"url": "https://127.0.0.1/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        webhook[field] = value.clone();
        webhook
    }

    /// Checks an update of `field` to an invalid value.
    ///
    /// The update must be rejected if the old webhook was valid, and accepted if the old webhook had the same error.
    #[track_caller]
    fn check(field: &str, wrong: &Value, path: &str) {
        let sound = configuration(&[webhook("failurePolicy", &json!("Fail"))]);
        let wrong = configuration(&[webhook(field, wrong)]);
        let paths: Vec<String> =
            validate_update(&wrong, &sound).into_iter().map(|error| error.field).collect();
        assert_eq!(paths, [path]);
        assert_eq!(validate_update(&wrong, &wrong), []);
    }

    #[test]
    fn an_update_may_keep_existing_errors() {
        check("sideEffects", &json!("Some"), "webhooks[0].sideEffects");
        check("admissionReviewVersions", &json!(["v2"]), "webhooks[0].admissionReviewVersions");
        check(
            "objectSelector",
            &json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}),
            "webhooks[0].objectSelector.matchExpressions[0].values[0]",
        );
        check(
            "matchConditions",
            &json!([{"name": "a b", "expression": "true"}]),
            "webhooks[0].matchConditions[0].name",
        );
    }

    #[test]
    fn an_update_may_keep_repeated_names() {
        let one = webhook("failurePolicy", &json!("Fail"));
        let twice = configuration(&[one.clone(), one.clone()]);
        assert_eq!(validate_update(&twice, &configuration(&[one])).len(), 1);
        assert_eq!(validate_update(&twice, &twice), []);
    }

    #[test]
    fn a_reserved_name_is_rejected_only_on_create() {
        let mut reserved = configuration(&[]);
        reserved["metadata"]["name"] = json!("a.static.k8s.io");
        assert_eq!(validate(&reserved).len(), 1);
        assert_eq!(validate_update(&reserved, &reserved), []);
    }
}
