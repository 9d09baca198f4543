//! What the API refuses in a new configuration.

mod client_config;
mod error;
mod metadata;
mod rules;
mod url;

use std::collections::BTreeSet;

use serde_json::Value;

use self::error::Errors;
use super::MUTATING;
use crate::names;
use crate::status::FieldError;

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const MAX_MATCH_CONDITIONS: usize = 64;

/// What is wrong with a configuration that is to be created, in the API server's order; nothing when it is valid.
///
/// `configuration` has its defaults already. A field of another type than the API's counts as missing. The
/// expressions of match conditions are not compiled.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go,
/// `ValidateMutatingWebhookConfiguration` and `ValidateValidatingWebhookConfiguration`; `static_suffix.go` beside it.
pub fn validate(configuration: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let metadata = configuration.get("metadata").unwrap_or(&Value::Null);
    metadata::validate(metadata, &mut errors);
    let mutating = text(configuration, "kind") == Some(MUTATING);
    let mut seen = BTreeSet::new();
    for (index, webhook) in list(configuration, "webhooks").iter().enumerate() {
        let path = format!("webhooks[{index}]");
        validate_webhook(webhook, &path, mutating, &mut errors);
        review_versions(webhook, &format!("{path}.admissionReviewVersions"), &mut errors);
        let name = text(webhook, "name").unwrap_or_default();
        if !name.is_empty() && !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
    }
    metadata::validate_static_suffix(metadata, &mut errors);
    errors.distinct()
}

fn validate_webhook(webhook: &Value, path: &str, mutating: bool, errors: &mut Errors) {
    name(text(webhook, "name").unwrap_or_default(), &format!("{path}.name"), errors);
    for (index, rule) in list(webhook, "rules").iter().enumerate() {
        rules::validate(rule, &format!("{path}.rules[{index}]"), errors);
    }
    word(webhook, "failurePolicy", &FAILURE_POLICIES, path, errors);
    word(webhook, "matchPolicy", &MATCH_POLICIES, path, errors);
    if text(webhook, "sideEffects").is_none() {
        errors.required(format!("{path}.sideEffects"), "must specify one of None, NoneOnDryRun");
    }
    word(webhook, "sideEffects", &SIDE_EFFECTS, path, errors);
    let timeout = webhook.get("timeoutSeconds").and_then(Value::as_i64);
    if let Some(seconds) = timeout.filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.invalid_value(format!("{path}.timeoutSeconds"), &Value::from(seconds), detail);
    }
    for field in ["namespaceSelector", "objectSelector"] {
        selector(webhook.get(field).unwrap_or(&Value::Null), &format!("{path}.{field}"), errors);
    }
    if mutating {
        word(webhook, "reinvocationPolicy", &REINVOCATION_POLICIES, path, errors);
    }
    let client_config = webhook.get("clientConfig").unwrap_or(&Value::Null);
    client_config::validate(client_config, &format!("{path}.clientConfig"), errors);
    match_conditions(list(webhook, "matchConditions"), &format!("{path}.matchConditions"), errors);
}

/// Source: apimachinery pkg/util/validation/validation.go, `IsFullyQualifiedName`.
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

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateAdmissionReviewVersions`.
fn review_versions(webhook: &Value, path: &str, errors: &mut Errors) {
    let versions = list(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.required(path, &format!("must specify one of {}", REVIEW_VERSIONS.join(", ")));
        return;
    }
    let texts: Vec<&str> = versions.iter().map(|version| version.as_str().unwrap_or_default()).collect();
    for (index, version) in texts.iter().enumerate() {
        let version_path = format!("{path}[{index}]");
        if texts[..index].contains(version) {
            errors.invalid(version_path, version, "duplicate version");
        } else {
            errors.all_invalid(&version_path, version, &names::dns1035_label(version));
        }
    }
    if !texts.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.invalid_value(path, &Value::from(texts), &detail);
    }
}

/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabelSelector`.
fn selector(selector: &Value, path: &str, errors: &mut Errors) {
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
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            errors.all_invalid(&format!("{path}.values[{index}]"), value, &names::label_value(value));
        }
    }
}

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateMatchConditions`.
fn match_conditions(conditions: &[Value], path: &str, errors: &mut Errors) {
    if conditions.len() > MAX_MATCH_CONDITIONS {
        errors.too_many(path, conditions.len(), MAX_MATCH_CONDITIONS);
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        if text(condition, "expression").unwrap_or_default().trim().is_empty() {
            errors.required(format!("{path}[{index}].expression"), "");
        }
        let name_path = format!("{path}[{index}].name");
        let name = text(condition, "name").unwrap_or_default();
        if name.is_empty() {
            errors.required(name_path, "");
            continue;
        }
        errors.all_invalid(&name_path, name, &names::label_key(name));
        if !seen.insert(name) {
            errors.duplicate(name_path, name);
        }
    }
}

fn word(webhook: &Value, field: &str, supported: &[&str], path: &str, errors: &mut Errors) {
    if let Some(text) = text(webhook, field).filter(|text| !supported.contains(text)) {
        errors.unsupported(format!("{path}.{field}"), text, supported);
    }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

fn list<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
