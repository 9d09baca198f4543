//! Validates lists with unique items or keys: `x-kubernetes-list-type`.
//!
//! Source: apiextensions-apiserver pkg/apiserver/schema/listtype/validation.go.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::coerce::displayed;
use super::node::{ListType, Schema};
use super::pruning::is_container;
use crate::path::Path;
use crate::status::FieldError;

/// Returns the errors for duplicate items or keys in the lists of an object.
pub(super) fn errors(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    judge(object, schema, &Path::Root, &mut errors);
    errors
}

fn judge(value: &Value, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.within.unique_lists {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(_, value)| is_container(value)) {
                if let Some(property) = schema.properties.get(name) {
                    judge(value, property, &path.member(name), errors);
                } else if let Some(values) = schema.member(name) {
                    judge(value, values, &Path::Entry(path, name), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                ListType::Atomic => {}
                ListType::Set => errors.extend(
                    second_appearances(items.iter().map(Key::new))
                        .into_iter()
                        .filter_map(|index| Some((index, items.get(index)?)))
                        .map(|(index, item)| duplicate(path, index, &displayed(item))),
                ),
                ListType::Map => check_map(items, schema, path, errors),
            }
            let Some(of_items) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                if is_container(item) {
                    judge(item, of_items, &Path::Item(path, index), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_map(items: &[Value], schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((index, other)) = wrong {
        let why = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(Path::Item(path, index).to_string(), displayed(other), why));
        return;
    }
    let names = &schema.list_map_keys;
    let keys = items.iter().map(|item| match (names.as_slice(), item) {
        ([name], Value::Object(members)) if let Some(Value::String(text)) = members.get(name) => {
            Key::Text(text)
        }
        _ => Key::Encoded(key(item, names)),
    });
    for index in second_appearances(keys) {
        if let Some(item) = items.get(index) {
            errors.push(duplicate(path, index, &key(item, names)));
        }
    }
}

/// The part of an item that is compared. Most items are strings or have one string key; such keys are not copied.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Text(&'a str),
    Encoded(String),
}

impl<'a> Key<'a> {
    fn new(value: &'a Value) -> Self {
        value.as_str().map_or_else(|| Self::Encoded(value.to_string()), Self::Text)
    }
}

/// Returns the key fields of an item as JSON.
fn key(item: &Value, names: &[String]) -> String {
    let fields = names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
    displayed(&Value::Object(fields.collect::<Map<_, _>>()))
}

fn duplicate(path: &Path<'_>, index: usize, value: &str) -> FieldError {
    FieldError::duplicate(Path::Item(path, index).to_string(), value)
}

/// Returns the positions at which a value occurs for the second time. Later occurrences are ignored.
fn second_appearances<K: Eq + std::hash::Hash>(keys: impl Iterator<Item = K>) -> Vec<usize> {
    let keys: Vec<K> = keys.collect();
    // For so few keys, comparing is faster than hashing.
    if keys.len() <= 8 {
        let times_before =
            |index: usize, key: &K| keys.iter().take(index).filter(|other| *other == key).count();
        return keys
            .iter()
            .enumerate()
            .filter(|(index, key)| times_before(*index, key) == 1)
            .map(|(index, _)| index)
            .collect();
    }
    let mut seen: HashMap<&K, usize> = HashMap::with_capacity(keys.len());
    let mut found = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            found.push(index);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::second_appearances;

    #[test]
    fn a_duplicate_is_reported_at_its_second_occurrence() {
        let few = [1, 2, 1, 1, 2];
        assert_eq!(second_appearances(few.into_iter()), [2, 4]);
        let many = few.into_iter().chain(10..20).chain([1, 10]);
        assert_eq!(second_appearances(many), [2, 4, 16]);
    }
}
