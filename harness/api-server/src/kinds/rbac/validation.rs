//! Validates roles and bindings.

use kubernetes_admission::authorizer::RBAC_GROUP;
use kubernetes_types::selector::Selector;
use kubernetes_types::status::{FieldError, MAX_ERRORS};
use serde_json::{Value, json};

use crate::kinds::common::formats;
use crate::kinds::rbac::{list, requirements, text};

/// Validates the rules and the aggregation selectors of a role.
///
/// Errors of generated validation come last.
///
/// Source: kubernetes pkg/apis/rbac/validation/validation.go; `pkg/apis/rbac/v1/zz_generated.validations.go`.
/// Rule: RBAC-18.
pub(crate) fn role(object: &Value, is_namespaced: bool) -> Vec<FieldError> {
    let (mut errors, mut generated) = (Vec::new(), Vec::new());
    for (index, rule) in list(object, "rules").iter().enumerate() {
        if errors.len() + generated.len() > MAX_ERRORS {
            break;
        }
        let path = format!("rules[{index}]");
        if list(rule, "verbs").is_empty() {
            generated.push(FieldError::required(format!("{path}.verbs"), ""));
        }
        errors.extend(rule_errors(rule, &path, is_namespaced));
    }
    if let Some(aggregation) = object.get("aggregationRule").filter(|rule| rule.is_object()) {
        errors.extend(aggregation_errors(aggregation));
    }
    errors.extend(generated);
    errors
}

fn rule_errors(rule: &Value, path: &str, is_namespaced: bool) -> Vec<FieldError> {
    let has = |field: &str| !list(rule, field).is_empty();
    let mut errors = Vec::new();
    if has("nonResourceURLs") {
        let mut invalid = |why: &str| {
            let path = format!("{path}.nonResourceURLs");
            errors.push(FieldError::invalid(path, json!(list(rule, "nonResourceURLs")), why));
        };
        if is_namespaced {
            invalid("namespaced rules cannot apply to non-resource URLs");
        }
        if has("apiGroups") || has("resources") || has("resourceNames") {
            invalid("rules cannot apply to both regular resources and non-resource URLs");
        }
        return errors;
    }
    for (field, why) in [
        ("apiGroups", "resource rules must supply at least one api group"),
        ("resources", "resource rules must supply at least one resource"),
    ] {
        if !has(field) {
            errors.push(FieldError::required(format!("{path}.{field}"), why));
        }
    }
    errors
}

fn aggregation_errors(aggregation: &Value) -> Vec<FieldError> {
    let path = "aggregationRule.clusterRoleSelectors";
    let selectors = list(aggregation, "clusterRoleSelectors");
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        return vec![FieldError::required(path, why)];
    }
    let mut errors = Vec::new();
    for (index, selector) in selectors.iter().enumerate() {
        if errors.len() > MAX_ERRORS {
            break;
        }
        let path = format!("{path}[{index}]");
        errors.extend(requirements::selector(selector, &path));
        if Selector::parse(selector).is_err() {
            errors.push(FieldError::invalid(path, Value::Null, "invalid label selector."));
        }
    }
    errors
}

/// Validates the role and the subjects of a binding.
///
/// Rule: RBAC-19, RBAC-20.
pub(crate) fn binding(object: &Value, old: Option<&Value>, is_namespaced: bool) -> Vec<FieldError> {
    let none = Value::Null;
    let reference = object.get("roleRef").unwrap_or(&none);
    let is_changed =
        old.is_some_and(|old| role_reference(old.get("roleRef")) != role_reference(Some(reference)));
    let (mut errors, mut generated) = (Vec::new(), Vec::new());
    let not_supported = |path: &str, found: &str, supported: &str| {
        FieldError::not_supported(path, Value::from(found), supported)
    };
    let group = text(reference, "apiGroup");
    if group != RBAC_GROUP {
        errors.push(not_supported("roleRef.apiGroup", group, &Value::from(RBAC_GROUP).to_string()));
    }
    let kind = text(reference, "kind");
    let (kinds, supported): (&[&str], _) = if is_namespaced {
        (&["Role", "ClusterRole"], "\"Role\", \"ClusterRole\"")
    } else {
        (&["ClusterRole"], "\"ClusterRole\"")
    };
    if !kinds.contains(&kind) {
        errors.push(not_supported("roleRef.kind", kind, supported));
    }
    let name = text(reference, "name");
    let mut name_missing = None;
    if name.is_empty() {
        name_missing = Some(FieldError::required("roleRef.name", ""));
    } else {
        let why = formats::path_segment_errors(name);
        errors.extend(why.into_iter().map(|why| FieldError::invalid("roleRef.name", Value::from(name), why)));
    }
    // Generated validation stops if the whole reference is rejected.
    if is_changed {
        errors.extend(name_missing.take());
    }
    for (index, subject) in list(object, "subjects").iter().enumerate() {
        if errors.len() + generated.len() > MAX_ERRORS {
            break;
        }
        let path = format!("subjects[{index}]");
        if text(subject, "name").is_empty() {
            generated.push(FieldError::required(format!("{path}.name"), ""));
        }
        errors.extend(subject_errors(subject, &path, is_namespaced));
    }
    if is_changed {
        errors.push(FieldError::invalid("roleRef", role_reference(Some(reference)), "field is immutable"));
    }
    generated.extend(name_missing);
    errors.extend(generated);
    errors
}

/// Formats a role reference for an error message.
fn role_reference(reference: Option<&Value>) -> String {
    let none = Value::Null;
    let reference = reference.unwrap_or(&none);
    let text = |field| Value::from(text(reference, field));
    format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", text("apiGroup"), text("kind"), text("name"))
}

fn subject_errors(subject: &Value, path: &str, is_namespaced: bool) -> Vec<FieldError> {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    let not_supported = |field: &str, found: &str, supported: &str| {
        vec![FieldError::not_supported(format!("{path}.{field}"), Value::from(found), supported)]
    };
    match text(subject, "kind") {
        "ServiceAccount" => {
            let why =
                if name.is_empty() { Vec::new() } else { kubernetes_types::names::dns1123_subdomain(name) };
            let invalid = |why| FieldError::invalid(format!("{path}.name"), Value::from(name), why);
            let mut errors: Vec<FieldError> = why.into_iter().map(invalid).collect();
            if !group.is_empty() {
                errors.extend(not_supported("apiGroup", group, "\"\""));
            }
            if !is_namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(format!("{path}.namespace"), ""));
            }
            errors
        }
        "User" | "Group" if group == RBAC_GROUP => Vec::new(),
        "User" | "Group" => not_supported("apiGroup", group, &Value::from(RBAC_GROUP).to_string()),
        other => not_supported("kind", other, "\"ServiceAccount\", \"User\", \"Group\""),
    }
}
