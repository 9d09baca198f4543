//! Converts unstructured objects to Go's types as apimachinery does, with its errors.
//!
//! Source: apimachinery pkg/runtime/converter.go, `FromUnstructured`.

use serde_json::{Number, Value};

use crate::json_numbers::truncated;

/// Returns Go's error for the first metadata field that Go cannot convert, in the order in which the Go type declares
/// them.
///
/// Source: apimachinery pkg/apis/meta/v1/types.go, `ObjectMeta`.
pub fn metadata_error(metadata: &Value) -> Option<String> {
    let field = |name: &str| metadata.get(name).filter(|value| !value.is_null());
    let texts = ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"];
    let maps = ["labels", "annotations"];
    (texts.into_iter().filter_map(field).find_map(not_a_text))
        .or_else(|| maps.into_iter().filter_map(field).find_map(not_a_map_of_texts))
        .or_else(|| not_a_list_of(field("ownerReferences")?, not_an_owner))
        .or_else(|| not_a_list_of(field("finalizers")?, not_a_text))
}

fn not_a_map_of_texts(value: &Value) -> Option<String> {
    let Some(members) = value.as_object() else {
        return Some(format!("cannot restore map from {}", kind(value)));
    };
    members.values().find_map(not_a_text)
}

fn not_a_list_of(value: &Value, not_an_item: fn(&Value) -> Option<String>) -> Option<String> {
    let Some(items) = value.as_array() else {
        return Some(format!("cannot restore slice from {}", kind(value)));
    };
    items.iter().find_map(not_an_item)
}

fn not_an_owner(value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let Some(members) = value.as_object() else {
        return Some(format!("cannot restore struct from: {}", kind(value)));
    };
    let texts = ["apiVersion", "kind", "name", "uid"];
    texts.into_iter().filter_map(|name| members.get(name)).find_map(not_a_text)
}

/// Returns Go's error for a value that is not a string; `None` for a string or null.
///
/// Go's own conversion rules would accept integers, but apimachinery does not.
///
/// Source: apimachinery pkg/runtime/converter.go, `fromUnstructured`.
pub fn not_a_text(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::String(_) => None,
        Value::Number(number) if !number.is_f64() => Some("cannot convert int64 to string".to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some("unrecognized type: string".to_owned())
        }
    }
}

/// Returns Go's name for the kind of a JSON value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Converts `value` to a 32-bit integer. For larger numbers, higher bits are dropped; null is 0.
///
/// # Errors
/// Returns Go's error for a value of a different type.
pub fn int32(value: &Value) -> Result<i32, String> {
    match value {
        Value::Null => Ok(0),
        Value::Number(number) => integer(number, "int32").map(low_bits),
        Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            Err("unrecognized type: int32".to_owned())
        }
    }
}

/// Converts the number in an integer field. Go accepts floats without a fraction.
pub(crate) fn integer(number: &Number, go_type: &str) -> Result<i64, String> {
    if let Some(integer) = number.as_i64() {
        return Ok(integer);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    if float.fract() == 0.0 {
        Ok(truncated(float))
    } else {
        Err(format!("cannot convert float64 to {go_type}"))
    }
}

/// Returns the lower 32 bits of an integer.
pub(crate) fn low_bits(integer: i64) -> i32 {
    let [a, b, c, d, ..] = integer.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Returns the members of an object that Go converts to a struct; `None` for null.
///
/// # Errors
/// Returns Go's error for a value of a different type.
pub fn members(value: &Value) -> Result<Option<&serde_json::Map<String, Value>>, String> {
    match value {
        Value::Null => Ok(None),
        Value::Object(members) => Ok(Some(members)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(format!("cannot restore struct from: {}", kind(value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Compares the errors with errors recorded from kube-apiserver 1.37.1.
    #[test]
    fn the_first_invalid_field_is_reported_as_by_go() {
        for (metadata, why) in [
            (json!({"name": "x", "labels": {"a": null}}), None),
            (json!({"labels": "a"}), Some("cannot restore map from string")),
            (json!({"labels": {"a": 1}}), Some("cannot convert int64 to string")),
            (json!({"labels": {"a": {"b": "c"}}}), Some("unrecognized type: string")),
            (json!({"annotations": {"a": true}}), Some("unrecognized type: string")),
            (json!({"annotations": ["a"]}), Some("cannot restore map from slice")),
            (json!({"labels": 1.5}), Some("cannot restore map from float64")),
            (json!({"finalizers": {"a": "b"}}), Some("cannot restore slice from map")),
            (json!({"finalizers": [1]}), Some("cannot convert int64 to string")),
            (json!({"ownerReferences": ["a"]}), Some("cannot restore struct from: string")),
            (json!({"name": 1}), Some("cannot convert int64 to string")),
        ] {
            assert_eq!(metadata_error(&metadata).as_deref(), why, "{metadata}");
        }
    }
}
