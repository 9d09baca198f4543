//! Removes the fields of an object that its schema does not describe.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/pruning/algorithm.go.

use serde_json::Value;

use super::node::{Additional, Schema};
use crate::path::Path;

/// The maximum total length, in bytes, of the reported paths. A response cannot contain more.
const MAX_PATH_BYTES: usize = 4 << 20;

/// The fields of every object, regardless of its schema.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the fields of an object that `schema` does not describe. Returns their sorted paths.
///
/// Rule: SCH-01.
pub(crate) fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut pruner = Pruner::default();
    if schema.preserve_unknown_fields {
        pruner.visit_known(object, schema, true, &Path::Root);
    } else {
        pruner.prune(object, Some(schema), true, &Path::Root);
    }
    pruner.unknown.sort_unstable();
    pruner.unknown
}

/// Removes unknown fields from a part of an object.
pub(super) fn prune_part(value: &mut Value, schema: &Schema) {
    Pruner::default().part(value, Some(schema), &Path::Root);
}

#[derive(Default)]
struct Pruner {
    unknown: Vec<String>,
    bytes: usize,
}

impl Pruner {
    fn part(&mut self, value: &mut Value, schema: Option<&Schema>, path: &Path<'_>) {
        match schema {
            Some(schema) if schema.preserve_unknown_fields => {
                self.visit_known(value, schema, schema.embedded_resource, path);
            }
            Some(schema) => self.prune(value, Some(schema), schema.embedded_resource, path),
            None => self.prune(value, None, false, path),
        }
    }

    fn prune(&mut self, value: &mut Value, schema: Option<&Schema>, is_resource: bool, path: &Path<'_>) {
        match value {
            Value::Object(members) => {
                members.retain(|name, value| {
                    let Some(schema) = schema else {
                        self.report(path, name);
                        return false;
                    };
                    if is_resource && META_FIELDS.contains(&name.as_str()) {
                        return true;
                    }
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(property), _) => self.part(value, Some(property), &path.member(name)),
                        (None, Additional::Schema(values)) => {
                            self.part(value, Some(values), &path.member(name));
                        }
                        (None, Additional::Flag(_)) => self.part(value, None, &path.member(name)),
                        (None, Additional::Absent) => {
                            self.report(path, name);
                            return false;
                        }
                    }
                    true
                });
            }
            Value::Array(items) => {
                let of_items = schema.and_then(|schema| schema.items.as_deref());
                for (index, item) in items.iter_mut().enumerate() {
                    if is_container(item) {
                        self.part(item, of_items, &Path::Item(path, index));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Prunes the values of known fields only. Unknown fields of `value` itself are preserved.
    fn visit_known(&mut self, value: &mut Value, schema: &Schema, is_resource: bool, path: &Path<'_>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter_mut().filter(|(_, value)| is_container(value)) {
                    if is_resource && META_FIELDS.contains(&name.as_str()) {
                        continue;
                    }
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(property), _) => self.part(value, Some(property), &path.member(name)),
                        (None, Additional::Schema(values)) => {
                            self.part(value, Some(values), &path.member(name));
                        }
                        (None, Additional::Flag(_)) => self.part(value, None, &path.member(name)),
                        (None, Additional::Absent) => {}
                    }
                }
            }
            Value::Array(items) => {
                let Some(of_items) = schema.items.as_deref() else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    let path = Path::Item(path, index);
                    self.visit_known(item, of_items, of_items.embedded_resource, &path);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn report(&mut self, path: &Path<'_>, name: &str) {
        if self.bytes <= MAX_PATH_BYTES {
            let path = path.member(name).to_string();
            self.bytes = self.bytes.saturating_add(path.len());
            self.unknown.push(path);
        }
    }
}

pub(super) fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
