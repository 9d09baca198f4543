//! Validates label and field selectors in roles and access reviews.

use kubernetes_types::names;
use kubernetes_types::status::{FieldError, MAX_ERRORS};
use serde_json::Value;

use crate::kinds::rbac;

const MISSING_VALUES: &str = "must be specified when `operator` is 'In' or 'NotIn'";

const UNEXPECTED_VALUES: &str = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";

/// Determines whether an unknown operator is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownOperator {
    Refused,
    /// Accepts an unknown operator, because a newer client may have written it.
    Allowed,
}

/// Validates a `LabelSelector`.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabelSelector`.
pub(crate) fn selector(selector: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    for (key, value) in labels {
        if errors.len() > MAX_ERRORS {
            break;
        }
        let path = format!("{path}.matchLabels");
        errors.extend(invalid(&path, key, names::label_key(key)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(&path, value, names::label_value(value)));
    }
    for (index, requirement) in rbac::list(selector, "matchExpressions").iter().enumerate() {
        if errors.len() > MAX_ERRORS {
            break;
        }
        let path = format!("{path}.matchExpressions[{index}]");
        errors.extend(of_labels(requirement, &path, UnknownOperator::Refused));
    }
    errors
}

/// Validates a requirement of a label selector.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabelSelectorRequirement`.
pub(crate) fn of_labels(requirement: &Value, path: &str, unknown: UnknownOperator) -> Vec<FieldError> {
    let mut errors = of_operator(requirement, path, unknown);
    let key = rbac::text(requirement, "key");
    errors.extend(invalid(&format!("{path}.key"), key, names::label_key(key)));
    for (index, value) in rbac::list(requirement, "values").iter().enumerate() {
        if errors.len() > MAX_ERRORS {
            break;
        }
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(&format!("{path}.values[{index}]"), value, names::label_value(value)));
    }
    errors
}

/// Validates a requirement of a field selector.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateFieldSelectorRequirement`.
pub(crate) fn of_fields(requirement: &Value, path: &str) -> Vec<FieldError> {
    let has_key = !rbac::text(requirement, "key").is_empty();
    let missing = (!has_key).then(|| FieldError::required(format!("{path}.key"), "must be specified"));
    missing.into_iter().chain(of_operator(requirement, path, UnknownOperator::Allowed)).collect()
}

fn of_operator(requirement: &Value, path: &str, unknown: UnknownOperator) -> Vec<FieldError> {
    let has_values = !rbac::list(requirement, "values").is_empty();
    let error = match rbac::text(requirement, "operator") {
        "In" | "NotIn" if !has_values => FieldError::required(format!("{path}.values"), MISSING_VALUES),
        "Exists" | "DoesNotExist" if has_values => {
            FieldError::forbidden(format!("{path}.values"), UNEXPECTED_VALUES)
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => return Vec::new(),
        _ if unknown == UnknownOperator::Allowed => return Vec::new(),
        other => {
            let path = format!("{path}.operator");
            FieldError::invalid(path, Value::from(other), "not a valid selector operator")
        }
    };
    vec![error]
}

fn invalid(path: &str, value: &str, why: Vec<String>) -> Vec<FieldError> {
    why.into_iter().map(|why| FieldError::invalid(path, Value::from(value), why)).collect()
}
