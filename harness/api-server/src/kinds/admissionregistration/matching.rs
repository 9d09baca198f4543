//! Validates the match constraints of policies and bindings.

use std::collections::HashSet;

use kubernetes_admission::config;
use serde_json::Value;

use crate::kinds::admissionregistration::policies;
use crate::kinds::common::fields::{Errors, Path, list, set, texts, word};
use crate::kinds::common::{formats, selectors};

const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

/// The operations that a mutating policy can match.
const MUTATING_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

/// Validates the `matchConstraints` of a policy. They must contain a rule.
pub(crate) fn constraints(errors: &mut Errors, path: &Path<'_>, constraints: &Value) {
    resources(errors, path, constraints);
    if list(constraints, "resourceRules").is_empty() {
        errors.required(&path.child("resourceRules"), "");
    }
}

/// Validates the `matchResources` of a binding, if present, or the `matchConstraints` of a policy.
///
/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateMatchResources`.
/// Rule: POL-D.
pub(crate) fn resources(errors: &mut Errors, path: &Path<'_>, resources: &Value) {
    if resources.is_null() {
        return;
    }
    policies::one_of(errors, &path.child("matchPolicy"), word(resources, "matchPolicy"), &MATCH_POLICIES);
    for field in ["namespaceSelector", "objectSelector"] {
        match set(resources, field) {
            None => errors.required(&path.child(field), ""),
            Some(selector) => selectors::label_selector(errors, &path.child(field), selector),
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        let path = path.child(field);
        for (index, rule) in list(resources, field).iter().enumerate() {
            named_rule(errors, &path.index(index), rule);
        }
    }
}

/// Source: kubernetes pkg/apis/admissionregistration/validation/validation.go, `validateNamedRuleWithOperations`.
fn named_rule(errors: &mut Errors, path: &Path<'_>, rule: &Value) {
    let names = path.child("resourceNames");
    let mut seen = HashSet::new();
    for (index, name) in texts(rule, "resourceNames").enumerate() {
        formats::path_segment(errors, &names.index(index), name);
        if !seen.insert(name) {
            errors.duplicate(&names.index(index), name);
        }
    }
    errors.extend(config::rule_errors(rule, &path.to_string()));
}

/// Validates that the rules of a mutating policy or its binding do not match operations that it cannot mutate.
///
/// The path of an error does not contain indexes.
pub(crate) fn mutating_operations(errors: &mut Errors, path: &Path<'_>, resources: &Value) {
    let path = path.child("resourceRules");
    for operation in list(resources, "resourceRules").iter().flat_map(|rule| texts(rule, "operations")) {
        errors.one_of(&path.child("operations"), Some(operation), &MUTATING_OPERATIONS);
    }
}
