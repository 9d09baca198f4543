//! Validates the schema of a definition. It must be structural and complete, and have valid defaults and rules.
//!
//! Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go,
//! `validateCustomResourceDefinitionValidation`.

mod defaults;
mod openapi;
mod rules;
mod shape;

use serde_json::{Map, Value};

use self::openapi::{Context, SchemaErrors};
use crate::status::{FieldError, Unsupported};

/// The fields that are allowed at the root of a schema if the status subresource is enabled.
const WITH_STATUS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Returns the validation errors of an `openAPIV3Schema`. `path` is the path of the schema in the errors.
///
/// # Errors
/// Returns [`Unsupported`] if the schema uses a feature that admit does not support.
pub fn errors(schema: &Value, path: &str, has_status: bool) -> Result<Vec<FieldError>, Unsupported> {
    let mut errors = Vec::new();
    if has_status {
        errors.extend(beside_status(schema, path)?);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let mut with_rules = false;
    // Fields that structural schemas do not have are reported separately.
    if openapi::can_be_structural(schema) {
        let mut wrong = shape::errors(schema, path);
        if wrong.is_empty() {
            wrong = defaults::errors(schema, path)?;
        }
        with_rules = wrong.is_empty();
        errors.extend(wrong);
    }
    let context = Context::new(with_rules);
    let mut found = SchemaErrors::default();
    openapi::visit(schema, path, &context, true, &mut found)?;
    errors.append(&mut found.of_schema);
    errors.append(&mut found.of_rules);
    if with_rules {
        errors.extend(found.cost.errors(path));
    }
    Ok(errors)
}

/// Normalizes the metadata of the embedded objects in all defaults of a valid `openAPIV3Schema`.
///
/// # Errors
/// Returns [`Unsupported`] if the schema uses a feature that admit does not support.
pub fn coerce_defaults(schema: &mut Value) -> Result<(), Unsupported> {
    defaults::coerce(schema, true)
}

fn beside_status(schema: &Value, path: &str) -> Result<Option<FieldError>, Unsupported> {
    let Some(members) = schema.as_object() else { return Ok(None) };
    let kind = text(schema, "type");
    if !kind.is_empty() && kind != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Ok(Some(FieldError::invalid(format!("{path}.type"), Value::from(kind), why)));
    }
    match members.iter().find(|(name, value)| is_set(value) && !WITH_STATUS.contains(&name.as_str())) {
        None => Ok(None),
        Some((name, _)) => {
            let what = format!(
                "the error of kube-apiserver about {name} at the root of a schema with a status subresource, which it \
                 does not allow there"
            );
            Err(Unsupported { what })
        }
    }
}

/// Returns whether a value is set and differs from the zero value.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the member `name` of a schema if the member is an object.
fn nested<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get(name).filter(|schema| schema.is_object())
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn list<'s>(schema: &'s Value, name: &str) -> &'s [Value] {
    schema.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
