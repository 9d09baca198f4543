//! Reads and sets fields of JSON objects.
//!
//! As in a Go struct, `null` is equivalent to an absent field. An empty string is also equivalent to an absent field
//! unless the Go type of the field is a pointer.

use kubernetes_types::quantity::Quantity;
use serde_json::Value;

/// Sets `object[field]` if it is absent, `null`, or an empty string. Ignores an `object` that is not a JSON object.
pub(crate) fn fill(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut()
        && members.get(field).is_none_or(|present| present.is_null() || present.as_str() == Some(""))
    {
        members.insert(field.to_owned(), value.into());
    }
}

/// Sets `object[field]`, a pointer in the Go type, if it is absent or `null`.
pub(crate) fn fill_pointer(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut()
        && members.get(field).is_none_or(Value::is_null)
    {
        members.insert(field.to_owned(), value.into());
    }
}

/// Sets `object[field]` if it is absent, `null`, an empty string, or zero.
pub(crate) fn fill_zero(object: &mut Value, field: &str, value: i64) {
    if object.get(field).is_some_and(|present| present.as_i64() == Some(0)) {
        remove(object, field);
    }
    fill(object, field, value);
}

/// Removes `object[field]` and returns its value; `None` if the field is absent.
pub(crate) fn remove(object: &mut Value, field: &str) -> Option<Value> {
    object.as_object_mut()?.remove(field)
}

/// Returns the object at `object[field]`; creates it if absent or `null`.
///
/// Returns `None` for a value of a different type.
pub(crate) fn ensure<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let child = object.as_object_mut()?.entry(field).or_insert(Value::Null);
    if child.is_null() {
        *child = Value::Object(serde_json::Map::new());
    }
    child.is_object().then_some(child)
}

/// Calls `action` with `object[field]` if it is an object.
pub(crate) fn with(object: &mut Value, field: &str, action: impl FnOnce(&mut Value)) {
    if let Some(child) = object.get_mut(field).filter(|child| child.is_object()) {
        action(child);
    }
}

/// Calls `action` with each item of `object[field]` if it is an array.
pub(crate) fn each(object: &mut Value, field: &str, action: impl FnMut(&mut Value)) {
    if let Some(entries) = object.get_mut(field).and_then(Value::as_array_mut) {
        entries.iter_mut().for_each(action);
    }
}

/// Returns the string `object[field]`; empty if the field is absent or not a string.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether `object[field]` is present and not `null`.
pub(crate) fn has(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

/// Returns whether `object[field]` is absent, `null`, or empty.
pub(crate) fn is_empty(object: &Value, field: &str) -> bool {
    match object.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::Array(entries)) => entries.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}

/// Rounds the quantities of the resource list `object[field]` up to thousandths.
///
/// Does not change invalid quantities. Validation rejects them later.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_ResourceList`.
/// Rule: KND-01.
pub(crate) fn resource_list(object: &mut Value, field: &str) {
    let amounts = object.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten();
    for (_, amount) in amounts {
        let quantity = amount.as_str().and_then(|text| Quantity::parse(text).ok());
        if let Some(rounded) = quantity.and_then(|quantity| quantity.rounded_up(-3).ok()) {
            *amount = Value::String(rounded.to_string());
        }
    }
}

/// Copies the annotations `names` from `before` to `object`, but keeps annotations that `object` already has.
pub(crate) fn keep_annotations(object: &mut Value, before: &Value, names: &[&str]) {
    let Some(before) = before.get("metadata").and_then(|metadata| metadata.get("annotations")) else {
        return;
    };
    for name in names {
        if let Some(value) = before.get(name)
            && let Some(annotations) = annotations(object)
        {
            fill_pointer(annotations, name, value.clone());
        }
    }
}

pub(crate) fn annotations(object: &mut Value) -> Option<&mut Value> {
    ensure(ensure(object, "metadata")?, "annotations")
}
