//! Generates custom resources from the structural schemas of their definition.

mod alternatives;
mod near_misses;
mod numbers;
mod pattern;
mod strings;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_types::status::FieldError;
use kubernetes_types::structural::{Compiled, Purpose};
use serde_json::{Value, json};

use self::values::{Amount, Variant};
use crate::shape;

/// The number of objects to generate for each version.
const COUNT: usize = 12;
/// The number of representative objects. They are generated first.
pub(super) const REPRESENTATIVES: usize = 4;
/// The maximum number of attempts to generate [`COUNT`] valid objects.
const ATTEMPTS: usize = 48;
/// The maximum number of parts to remove from an object to make it valid.
const REMOVALS: usize = 24;
/// The maximum number of near misses for each version.
const NEAR_MISSES: usize = 64;

/// A served version of a definition.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "the name of the API")]
pub(crate) struct Version {
    pub(crate) api_version: String,
    kind: String,
    schema: Value,
    /// The compiled schema, or a description of the part that admit does not support.
    compiled: Result<Arc<Compiled>, String>,
}

/// The objects that were generated from a schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made {
    /// The objects that the API server would store.
    pub(crate) valid: Vec<Value>,
    /// The number of generated objects that the API server would reject, by error.
    pub(crate) left_out: BTreeMap<String, u64>,
}

/// An object that violates one constraint of its schema.
#[derive(Clone, Debug)]
pub(crate) struct NearMiss {
    /// The path and the keyword of the violated constraint, such as `/spec/size maximum`.
    pub(crate) what: String,
    pub(crate) object: Value,
}

/// Returns the served versions of a definition.
pub(crate) fn versions(definition: &Value) -> Vec<Version> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions
        .filter(|version| version["served"] == true)
        .map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            let schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
            Version::new(
                format!("{}/{name}", text("/spec/group")),
                text("/spec/names/kind").to_owned(),
                schema,
            )
        })
        .collect()
}

impl Version {
    pub(super) fn new(api_version: String, kind: String, schema: Value) -> Self {
        let compiled = Compiled::new(&schema).map_err(|unsupported| unsupported.to_string());
        Self { api_version, kind, schema, compiled }
    }

    /// Generates objects that differ from each other, and keeps the valid objects.
    pub(crate) fn made(&self) -> Made {
        let mut made = Made::default();
        for object in (0..ATTEMPTS).map(|index| self.object(index)) {
            if made.valid.len() == COUNT {
                break;
            }
            match self.without_faults(object) {
                Ok(object) => made.valid.push(object),
                Err(reason) => made.leave_out(self, &reason),
            }
        }
        made
    }

    /// Returns the object without its invalid parts, such as a list that violates a rule.
    ///
    /// # Errors
    /// Returns an error if the object is still invalid without these parts.
    fn without_faults(&self, mut object: Value) -> Result<Value, String> {
        let mut errors = self.judged(object.clone())?.1;
        for _ in 0..REMOVALS {
            let Some(error) = errors.first() else { break };
            let mut smaller = object.clone();
            if remove_named(&mut smaller, error) {
                let left = self.judged(smaller.clone())?.1;
                if left.len() < errors.len() {
                    (object, errors) = (smaller, left);
                    continue;
                }
            }
            if !remove_field(&mut object, &error.field) {
                break;
            }
            errors = self.judged(object.clone())?.1;
        }
        errors.first().map_or(Ok(object), |error| Err(error.to_string()))
    }

    /// Returns invalid objects that differ from a valid object in one place.
    ///
    /// For example, an object has too many items, a number that is too large, or a missing field.
    pub(crate) fn near_misses(&self, valid: &[Value]) -> Vec<NearMiss> {
        let mut found: Vec<NearMiss> = Vec::new();
        for object in valid {
            for near_miss in near_misses::near_misses(&self.schema, object) {
                if found.len() == NEAR_MISSES {
                    return found;
                }
                let is_refused =
                    || self.judged(near_miss.object.clone()).is_ok_and(|(_, errors)| !errors.is_empty());
                if !found.iter().any(|known| known.what == near_miss.what) && is_refused() {
                    found.push(near_miss);
                }
            }
        }
        found
    }

    /// Returns the object without the fields that the schema does not describe.
    pub(crate) fn pruned(&self, mut object: Value) -> Value {
        if let Ok(schema) = &self.compiled {
            // Invalid metadata stays, because comparisons report it.
            let _ = schema.decode(&mut object, true);
        }
        object
    }

    /// Returns the object as the API server decodes it, and its validation errors.
    ///
    /// # Errors
    /// Returns the unsupported part of the schema if admit does not support the schema.
    pub(crate) fn judged(&self, mut object: Value) -> Result<(Value, Vec<FieldError>), String> {
        let schema = self.compiled.as_ref().map_err(Clone::clone)?;
        schema.decode(&mut object, true).map_err(|error| error.to_string())?;
        let judged = schema.set_defaults(&mut object).and_then(|()| {
            let errors = schema.schema_errors(&object, None, Purpose::Object)?;
            schema.validate_further(errors, &object, None, Purpose::Object)
        });
        judged.map(|judgment| (object, judgment.errors)).map_err(|unsupported| unsupported.to_string())
    }

    /// Returns the object with this index. Each field is valid against its own schema.
    pub(super) fn object(&self, index: usize) -> Value {
        let (amount, turn) = (Amount::for_object(index), index / Amount::COUNT);
        let mut object = values::value(&self.schema, Variant { amount, turn, depth: 0 });
        if !object.is_object() {
            object = json!({});
        }
        if let Some(members) = object.as_object_mut() {
            members.remove("status");
        }
        super::complete(&mut object, &self.api_version, &self.kind, index);
        object
    }
}

impl Made {
    fn leave_out(&mut self, version: &Version, reason: &str) {
        let Version { api_version, kind, .. } = version;
        let reason = format!(
            "an object generated from the schema of {api_version} {kind} is not valid: \
                              {reason}"
        );
        *self.left_out.entry(reason).or_default() += 1;
    }
}

fn segments(field: &str) -> Vec<&str> {
    field.split(['.', '[', ']']).filter(|segment| !segment.is_empty()).collect()
}

fn pointer(segments: &[&str]) -> String {
    segments.iter().fold(String::new(), |pointer, segment| pointer + "/" + &shape::escaped(segment))
}

/// Removes the members that the message of an error names, such as `namespace cannot be set`.
fn remove_named(object: &mut Value, error: &FieldError) -> bool {
    let words = error.detail.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    object.pointer_mut(&pointer(&segments(&error.field))).is_some_and(|field| remove_deepest(field, &words))
}

/// Removes the field of an error, or the parent of a missing field.
///
/// Returns `false` if that would remove the object's `spec` or change its metadata.
fn remove_field(object: &mut Value, field: &str) -> bool {
    let mut segments = segments(field);
    while segments.len() > 1 && segments.first() != Some(&"metadata") {
        if shape::remove(object, &pointer(&segments)) {
            return true;
        }
        segments.pop();
    }
    false
}

/// Removes each member whose lowercase name is in `names`, unless it contains such a member.
fn remove_deepest(value: &mut Value, names: &[String]) -> bool {
    match value {
        Value::Object(members) => {
            let before = members.len();
            let mut removed = false;
            members.retain(|name, member| {
                let below = remove_deepest(member, names);
                removed |= below;
                below || !names.contains(&name.to_ascii_lowercase())
            });
            removed || members.len() < before
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |removed, item| remove_deepest(item, names) | removed)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests;
