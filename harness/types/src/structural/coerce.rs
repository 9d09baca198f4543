//! Normalizes and validates embedded objects: `x-kubernetes-embedded-resource`.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta/{algorithm,coerce,validation}.go.

use serde_json::Value;

use super::node::Schema;
use crate::names;
use crate::path::Path;
use crate::quoting::{encode, printed, quote};
use crate::schema;
use crate::status::FieldError;

/// Normalizes the metadata of embedded objects as their Go type does. Returns the sorted paths of unknown fields.
///
/// # Errors
/// Returns [`FieldError`] for invalid metadata. If `lenient`, invalid metadata is removed instead.
pub(crate) fn coerce(object: &mut Value, schema: &Schema, lenient: bool) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    visit(object, schema, lenient, &Path::Root, &mut unknown)?;
    unknown.sort_unstable();
    Ok(unknown)
}

fn visit(
    value: &mut Value,
    schema: &Schema,
    lenient: bool,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    if !schema.within.resources {
        return Ok(());
    }
    if schema.embedded_resource && value.is_object() {
        identify(value, lenient, path, unknown)?;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    visit(value, property, lenient, &path.member(name), unknown)?;
                } else if let Some(values) = schema.member(name) {
                    visit(value, values, lenient, &Path::Entry(path, name), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = &schema.items else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                visit(item, of_items, lenient, &Path::Item(path, index), unknown)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Checks the types of `apiVersion`, `kind`, and `metadata` of an embedded object, and normalizes its metadata.
fn identify(
    object: &mut Value,
    lenient: bool,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    let Some(members) = object.as_object_mut() else { return Ok(()) };
    for name in ["apiVersion", "kind"] {
        match members.get(name) {
            None | Some(Value::String(_)) => {}
            Some(_) if lenient => {
                members.remove(name);
            }
            Some(other) => {
                let field = path.member(name).to_string();
                return Err(FieldError::invalid(field, displayed(other), "must be a string"));
            }
        }
    }
    let Some(metadata) = members.get_mut("metadata") else { return Ok(()) };
    if let Err(why) = schema::metadata_type_error(metadata) {
        if !lenient {
            return Err(FieldError::invalid(path.member("metadata").to_string(), displayed(metadata), why));
        }
        let Some(metadata) = metadata.as_object_mut() else { return Ok(()) };
        metadata.retain(|name, value| schema::is_metadata(name, value));
    }
    let found = schema::normalize_metadata(object);
    unknown.extend(found.into_iter().map(|found| path.member(&found).to_string()));
    Ok(())
}

/// Returns the validation errors of embedded objects.
pub(super) fn errors(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    judge(object, schema, &Path::Root, &mut errors);
    errors
}

fn judge(value: &Value, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.within.resources {
        return;
    }
    match value {
        Value::Object(members) => {
            if schema.embedded_resource {
                validate_embedded(value, path, errors);
            }
            for (name, value) in members {
                if let Some(property) = schema.properties.get(name) {
                    judge(value, property, &path.member(name), errors);
                } else if let Some(values) = schema.member(name) {
                    judge(value, values, &Path::Entry(path, name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                judge(item, of_items, &Path::Item(path, index), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Validates the `apiVersion`, `kind`, and `metadata` of an embedded object.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta/validation.go, `validateEmbeddedResource`.
/// Rule: SCH-08.
fn validate_embedded(object: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let field = |name: &str| path.member(name).to_string();
    for name in ["apiVersion", "kind"] {
        if object.get(name).is_none() {
            errors.push(FieldError::required(field(name), ""));
        }
    }
    let mut invalid = |name: &str, value: &Value, why: &str| {
        errors.push(FieldError::invalid(field(name), displayed(value), why));
    };
    match object.get("apiVersion") {
        None => {}
        Some(value @ Value::String(text)) => {
            if text.is_empty() {
                invalid("apiVersion", value, "must not be empty");
            } else if text.matches('/').count() > 1 {
                invalid("apiVersion", value, &format!("unexpected GroupVersion string: {text}"));
            }
        }
        Some(other) => invalid("apiVersion", other, "must be a string"),
    }
    match object.get("kind") {
        None => {}
        Some(value @ Value::String(text)) => {
            let wrong = names::dns1035_label(&text.to_lowercase());
            if text.is_empty() {
                invalid("kind", value, "must not be empty");
            } else if !wrong.is_empty() {
                let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                invalid("kind", value, &why);
            }
        }
        Some(other) => invalid("kind", other, "must be a string"),
    }
    let Some(metadata) = object.get("metadata") else { return };
    if let Err(why) = schema::metadata_type_error(metadata) {
        invalid("metadata", metadata, &why);
        return;
    }
    validate_metadata(metadata, &path.member("metadata"), errors);
}

/// Validates the names, labels, annotations, finalizers, and owners of an embedded object.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateObjectMetaAccessor`.
fn validate_metadata(metadata: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    for name in ["generateName", "name"] {
        let value = text(name);
        let mut wrong = Vec::new();
        if name == "name" && [".", ".."].contains(&value) {
            wrong.push(format!("may not be '{value}'"));
        } else {
            for part in ["/", "%"].into_iter().filter(|part| value.contains(part)) {
                wrong.push(format!("may not contain '{part}'"));
            }
        }
        for why in wrong {
            errors.push(FieldError::invalid(format!("{path}.{name}"), quote(value), why));
        }
    }
    let namespace = text("namespace");
    for why in if namespace.is_empty() { Vec::new() } else { names::dns1123_label(namespace) } {
        errors.push(FieldError::invalid(format!("{path}.namespace"), quote(namespace), why));
    }
    let members = |name: &str| metadata.get(name).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in members("labels") {
        let value = value.as_str().unwrap_or_default();
        let wrong = names::label_key(key).into_iter().map(|why| (key.as_str(), why));
        for (shown, why) in wrong.chain(names::label_value(value).into_iter().map(|why| (value, why))) {
            errors.push(FieldError::invalid(format!("{path}.labels"), quote(shown), why));
        }
    }
    for (key, _) in members("annotations") {
        for why in names::label_key(&key.to_lowercase()) {
            errors.push(FieldError::invalid(format!("{path}.annotations"), quote(key), why));
        }
    }
    let finalizers = metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten();
    for finalizer in finalizers.filter_map(Value::as_str) {
        for why in names::label_key(finalizer) {
            errors.push(FieldError::invalid(format!("{path}.finalizers"), quote(finalizer), why));
        }
    }
    let owners = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    for (index, owner) in owners.enumerate() {
        for name in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let field = format!("{path}.ownerReferences[{index}].{name}");
                errors.push(FieldError::required(field, "must not be empty"));
            }
        }
    }
}

/// Formats a value for a field error.
///
/// Source: apimachinery pkg/util/validation/field/errors.go, `ErrorBody`.
pub(super) fn displayed(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(_) => printed(value),
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => encode(value),
    }
}
