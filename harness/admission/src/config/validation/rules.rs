//! Validates the rules of a webhook.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::Errors;
use crate::config::{list, text};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// Validates one rule of a webhook.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateRuleWithOperations`.
/// Rule: VLD-07, VLD-08, VLD-14.
pub(super) fn validate(rule: &Value, path: &str, errors: &mut Errors) {
    let operations = texts(rule, "operations");
    let operations_path = format!("{path}.operations");
    some(&operations, &operations_path, errors);
    star_alone(&operations, &operations_path, "operations", errors);
    for (index, operation) in operations.iter().enumerate() {
        if !OPERATIONS.contains(operation) {
            errors.unsupported(format!("{operations_path}[{index}]"), operation, &OPERATIONS);
        }
    }
    let groups = texts(rule, "apiGroups");
    some(&groups, &format!("{path}.apiGroups"), errors);
    star_alone(&groups, &format!("{path}.apiGroups"), "API groups", errors);
    let versions = texts(rule, "apiVersions");
    let versions_path = format!("{path}.apiVersions");
    some(&versions, &versions_path, errors);
    star_alone(&versions, &versions_path, "API versions", errors);
    for (index, version) in versions.iter().enumerate() {
        if version.is_empty() {
            errors.required(format!("{versions_path}[{index}]"), "");
        }
    }
    resources(&texts(rule, "resources"), &format!("{path}.resources"), errors);
    if let Some(scope) = text(rule, "scope").filter(|scope| !SCOPES.contains(scope)) {
        errors.unsupported(format!("{path}.scope"), scope, &SCOPES);
    }
}

/// Validates the resources of a rule. Each entry is compared only with the entries before it.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateResources`.
/// Rule: VLD-09, VLD-10, VLD-11, VLD-12, VLD-13.
fn resources(resources: &[&str], path: &str, errors: &mut Errors) {
    some(resources, path, errors);
    let mut with_any_subresource = BTreeSet::new();
    let mut of_any_resource = BTreeSet::new();
    // As in upstream, only the last entry without a slash counts.
    let mut last_plain_is_a_name = false;
    for (index, entry) in resources.iter().enumerate() {
        let entry_path = format!("{path}[{index}]");
        if entry.is_empty() {
            errors.required(entry_path, "");
            continue;
        }
        let Some((resource, subresource)) = entry.split_once('/') else {
            last_plain_is_a_name = *entry != "*";
            continue;
        };
        if with_any_subresource.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {entry}");
            errors.invalid(entry_path.clone(), entry, &detail);
        }
        if of_any_resource.contains(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {entry}");
            errors.invalid(entry_path, entry, &detail);
        }
        if subresource == "*" {
            with_any_subresource.insert(resource);
        }
        if resource == "*" {
            of_any_resource.insert(subresource);
        }
    }
    let all = Value::from(resources);
    if resources.len() > 1 && resources.contains(&"*/*") {
        errors.invalid_value(path, &all, "if '*/*' is present, must not specify other resources");
    }
    if resources.contains(&"*") && last_plain_is_a_name {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid_value(path, &all, detail);
    }
}

fn texts<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    list(rule, field).iter().map(|value| value.as_str().unwrap_or_default()).collect()
}

fn some(entries: &[&str], path: &str, errors: &mut Errors) {
    if entries.is_empty() {
        errors.required(path, "");
    }
}

fn star_alone(entries: &[&str], path: &str, what: &str, errors: &mut Errors) {
    if entries.len() > 1 && entries.contains(&"*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.invalid_value(path, &Value::from(entries), &detail);
    }
}
