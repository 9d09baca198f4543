//! Lists whose items, or the keys of them, must be unique: `x-kubernetes-list-type`.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/listtype/validation.go.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::coerce::displayed;
use super::member;
use super::node::{ListType, Schema};
use crate::status::FieldError;

/// What is wrong with the lists of an object.
pub(super) fn errors(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    judge(object, schema, "", &mut errors);
    errors
}

fn judge(value: &Value, schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(_, value)| value.is_array() || value.is_object()) {
                if let Some(property) = schema.properties.get(name) {
                    judge(value, property, &member(path, name), errors);
                } else if let Some(values) = schema.member(name) {
                    judge(value, values, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                ListType::Atomic => {}
                ListType::Set => errors.extend(
                    second_appearances(items.iter().map(Value::to_string))
                        .into_iter()
                        .filter_map(|index| Some((index, items.get(index)?)))
                        .map(|(index, item)| duplicate(path, index, &displayed(item))),
                ),
                ListType::Map => judge_map(items, schema, path, errors),
            }
            let Some(of_items) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                if item.is_array() || item.is_object() {
                    judge(item, of_items, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn judge_map(items: &[Value], schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    let wrong = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((index, other)) = wrong {
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(format!("{path}[{index}]"), displayed(other), why));
        return;
    }
    let keys: Vec<String> = items.iter().map(|item| key(item, &schema.list_map_keys)).collect();
    let duplicates = second_appearances(keys.iter());
    for index in duplicates {
        if let Some(key) = keys.get(index) {
            errors.push(duplicate(path, index, key));
        }
    }
}

/// The fields of an item that are its key, as JSON.
fn key(item: &Value, names: &[String]) -> String {
    let fields = names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
    displayed(&Value::Object(fields.collect::<Map<_, _>>()))
}

fn duplicate(path: &str, index: usize, value: &str) -> FieldError {
    FieldError::duplicate(format!("{path}[{index}]"), value)
}

/// Where a value appears that was there once before; later appearances do not count.
fn second_appearances<K: Eq + std::hash::Hash>(keys: impl Iterator<Item = K>) -> Vec<usize> {
    let mut seen: HashMap<K, usize> = HashMap::new();
    let mut found = Vec::new();
    for (index, key) in keys.enumerate() {
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}
