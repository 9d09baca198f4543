//! Sets the defaults of a schema, and removes nulls that represent absent values.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/{algorithm,prune,prunenulls}.go.

use std::mem;

use serde_json::{Value, json};

use super::coerce;
use super::node::{Additional, Schema};
use super::pruning::{is_container, prune_part};
use crate::schema as types;
use crate::status::Unsupported;
use crate::weight::weight;

/// The maximum memory, in bytes, for the defaults of one object. Defaults can enlarge each list item a hundredfold.
const MAX_DEFAULT_BYTES: usize = 64 << 20;

/// Sets the defaults of `schema` in an object.
///
/// Rule: SCH-02.
///
/// # Errors
/// Returns [`Unsupported`] if the defaults take too much memory.
pub(crate) fn set_defaults(object: &mut Value, schema: &Schema) -> Result<(), Unsupported> {
    let mut left = MAX_DEFAULT_BYTES;
    fill(object, schema, &mut left).ok_or_else(|| Unsupported {
        what: format!("defaults of a custom resource that take more than {MAX_DEFAULT_BYTES} bytes"),
    })
}

/// Sets the defaults of `schema` in a value; returns `None` if they take more than `left` bytes of memory.
fn fill(value: &mut Value, schema: &Schema, left: &mut usize) -> Option<()> {
    if !schema.within.defaults {
        return Some(());
    }
    match value {
        Value::Object(members) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                let is_missing =
                    members.get(name).is_none_or(|value| value.is_null() && property.forbids_null());
                if is_missing {
                    members.insert(name.clone(), copy(default, left)?);
                }
            }
            // A default may replace a null; other scalars are never changed.
            let parts = members.iter_mut().filter(|(_, value)| value.is_null() || is_container(value));
            for (name, value) in parts {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => fill(value, property, left)?,
                    (None, Additional::Schema(values)) => fill_element(value, values, left)?,
                    (None, Additional::Absent | Additional::Flag(_)) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = &schema.items else { return Some(()) };
            for item in items {
                fill_element(item, of_items, left)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Some(())
}

fn fill_element(value: &mut Value, schema: &Schema, left: &mut usize) -> Option<()> {
    if value.is_null()
        && schema.forbids_null()
        && let Some(default) = &schema.default
    {
        *value = copy(default, left)?;
    }
    fill(value, schema, left)
}

fn copy(default: &Value, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(weight(default))?;
    Some(default.clone())
}

/// Removes members that are null, are not nullable, and do not have a default.
///
/// Rule: SCH-02.
pub(crate) fn prune_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            if !value.is_null() && !is_container(value) {
                return true;
            }
            let Some(schema) = schema.member(name) else { return true };
            if value.is_null() {
                return !schema.forbids_null() || schema.default.is_some();
            }
            prune_nulls(value, schema);
            true
        }),
        Value::Array(items) => {
            let Some(of_items) = &schema.items else { return };
            for item in items {
                prune_nulls(item, of_items);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes unknown fields from all defaults in a schema.
pub(super) fn prune_defaults(schema: &mut Schema) {
    if let Some(mut default) = mem::take(&mut schema.default) {
        prune_part(&mut default, schema);
        // Lenient coercion drops invalid metadata, so it reports no errors.
        let _ = coerce::coerce(&mut default, schema, true);
        schema.default = Some(default);
    }
    if let Additional::Schema(values) = &mut schema.additional {
        prune_defaults(values);
    }
    if let Some(items) = &mut schema.items {
        prune_defaults(items);
    }
    for (name, property) in &mut schema.properties {
        match name.as_str() {
            // Metadata has a Go type, and the schema does not describe it.
            "metadata" if schema.embedded_resource => {
                if let Some(default) = mem::take(&mut property.default) {
                    let mut object = json!({"metadata": default});
                    types::normalize_metadata(&mut object);
                    property.default = object.get_mut("metadata").map(Value::take);
                }
            }
            "apiVersion" | "kind" if schema.embedded_resource => {}
            _ => prune_defaults(property),
        }
    }
}
