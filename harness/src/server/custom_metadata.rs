//! Whether the metadata of a custom resource, which is free-form on its way through the webhooks, are metadata in the end.

use serde_json::Value;

use crate::status::FieldError;

/// What is wrong with the metadata; none if the server can read them.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta/validation.go, `Validate`; apimachinery
/// pkg/runtime/converter.go, `FromUnstructured`.
pub(super) fn check(object: &Value) -> Option<FieldError> {
    let metadata = object.get("metadata")?;
    let why = unreadable(metadata)?;
    Some(FieldError {
        reason: "FieldValueInvalid",
        field: "metadata".to_owned(),
        detail: format!("Invalid value: {metadata}: {why}"),
    })
}

/// Why Go cannot read the first of the fields, in the order of the type.
fn unreadable(metadata: &Value) -> Option<String> {
    let field = |name: &str| metadata.get(name).filter(|value| !value.is_null());
    let texts = ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"];
    let text = texts.into_iter().find_map(|name| not_a_text(field(name)?));
    text.or_else(|| {
        ["labels", "annotations"].into_iter().find_map(|name| match field(name)? {
            Value::Object(members) => members.values().find_map(not_a_text),
            other => Some(format!("cannot restore map from {}", kind(other))),
        })
    })
    .or_else(|| match field("ownerReferences")? {
        Value::Array(owners) => owners.iter().find_map(|owner| match owner {
            Value::Null => None,
            Value::Object(members) => {
                let texts = ["apiVersion", "kind", "name", "uid"];
                texts.into_iter().find_map(|name| not_a_text(members.get(name)?))
            }
            other => Some(format!("cannot restore struct from: {}", kind(other))),
        }),
        other => Some(format!("cannot restore slice from {}", kind(other))),
    })
    .or_else(|| match field("finalizers")? {
        Value::Array(finalizers) => finalizers.iter().find_map(not_a_text),
        other => Some(format!("cannot restore slice from {}", kind(other))),
    })
}

fn not_a_text(value: &Value) -> Option<String> {
    let of = match value {
        Value::Null | Value::String(_) => return None,
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Bool(_) | Value::Number(_) => kind(value),
    };
    Some(format!("cannot convert {of} to string"))
}

/// As Go calls the kind of a JSON value.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What kube-apiserver 1.37.1 said.
    #[test]
    fn the_first_field_that_go_cannot_read_is_told() {
        for (metadata, why) in [
            (json!({"name": "x", "labels": {"a": null}}), None),
            (json!({"labels": "a"}), Some("cannot restore map from string")),
            (json!({"labels": {"a": 1}}), Some("cannot convert int64 to string")),
            (json!({"annotations": ["a"]}), Some("cannot restore map from slice")),
            (json!({"labels": 1.5}), Some("cannot restore map from float64")),
            (json!({"finalizers": {"a": "b"}}), Some("cannot restore slice from map")),
            (json!({"finalizers": [1]}), Some("cannot convert int64 to string")),
            (json!({"ownerReferences": ["a"]}), Some("cannot restore struct from: string")),
            (json!({"name": 1}), Some("cannot convert int64 to string")),
        ] {
            assert_eq!(unreadable(&metadata).as_deref(), why, "{metadata}");
        }
    }
}
