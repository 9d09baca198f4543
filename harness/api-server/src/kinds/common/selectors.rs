//! Validates label selectors.

use kubernetes_types::names;
use kubernetes_types::selector::Selector;
use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, get, list, map, text, texts};
use crate::kinds::common::internal::Form;
use crate::kinds::common::{formats, internal};

/// Validates an optional `LabelSelector`.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabelSelector`.
pub(crate) fn label_selector(errors: &mut Errors, path: &Path<'_>, selector: &Value) {
    formats::labels(errors, &path.child("matchLabels"), get(selector, "matchLabels"));
    let path = path.child("matchExpressions");
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        requirement(errors, &path.index(index), expression);
    }
}

fn requirement(errors: &mut Errors, path: &Path<'_>, expression: &Value) {
    let values = path.child("values");
    let is_empty = list(expression, "values").is_empty();
    match text(expression, "operator") {
        "In" | "NotIn" if is_empty => {
            errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !is_empty => {
            errors.forbidden(&values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.invalid_text(&path.child("operator"), other, "not a valid selector operator"),
    }
    let key = text(expression, "key");
    formats::qualified_name(errors, &path.child("key"), key);
    for (index, value) in texts(expression, "values").enumerate() {
        errors.all_invalid(&values.index(index), value, names::label_value(value));
    }
}

/// Returns whether a selector does not have requirements.
pub(crate) fn is_empty(selector: &Value) -> bool {
    list(selector, "matchExpressions").is_empty()
        && map(selector, "matchLabels").is_none_or(serde_json::Map::is_empty)
}

/// Returns whether a selector matches the labels of `template`; `None` if the selector cannot be evaluated.
///
/// An absent selector does not match any labels.
///
/// Source: apimachinery pkg/apis/meta/v1/helpers.go, `LabelSelectorAsSelector`.
pub(crate) fn picks(selector: &Value, template: &Value) -> Option<bool> {
    if selector.is_null() {
        return Some(false);
    }
    let selector = Selector::parse(selector).ok()?;
    let labels = kubernetes_types::selector::Labels::from_object(template).unwrap_or_default();
    Some(selector.matches(labels))
}

/// Formats a selector for an error message.
pub(crate) fn shown(selector: &Value) -> String {
    internal::shown(Form::Pointer, "v1.LabelSelector", selector)
}
