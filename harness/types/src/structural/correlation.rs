//! Which part of the stored object a part of the new one was: what did not change is not refused.
//!
//! Source: apiserver pkg/cel/common/{equality,maplist}.go; apiextensions-apiserver pkg/apiserver/validation/ratcheting.go.

use std::collections::HashMap;

use serde_json::Value;

use super::node::{ListType, Schema};

/// A value, what it was, and their schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correlation<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    pub(super) schema: &'a Schema,
}

/// The items of the old list by their keys.
#[derive(Debug, Default)]
pub(super) struct ItemsByKey<'a> {
    keys: &'a [String],
    items: HashMap<String, &'a Value>,
}

impl<'a> ItemsByKey<'a> {
    /// Empty unless the schema is one of a list of type `map`.
    pub(super) fn new(old: &'a Value, schema: &'a Schema) -> Self {
        let Value::Array(old) = old else { return Self::default() };
        if schema.kind != "array" || schema.list_type != ListType::Map || schema.list_map_keys.is_empty() {
            return Self::default();
        }
        let keys = schema.list_map_keys.as_slice();
        let mut items = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(key) = key(item, keys) {
                items.entry(key).or_insert(item);
            }
        }
        Self { keys, items }
    }

    /// The old item with the key of `item`.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&key(item, self.keys)?).copied()
    }
}

/// None where a key is missing or not a scalar.
fn key(item: &Value, names: &[String]) -> Option<String> {
    let members = item.as_object()?;
    let mut text = String::new();
    for name in names {
        let value = members.get(name)?;
        if !matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_)) {
            return None;
        }
        text.push('\0');
        text.push_str(&value.to_string());
    }
    Some(text)
}

impl<'a> Correlation<'a> {
    /// The same of a member; none where one of the objects does not have it, or the schema does not describe it.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        let (old, new) = (self.old.as_object()?.get(name)?, self.new.as_object()?.get(name)?);
        Some(Self { old, new, schema: self.schema.member(name)? })
    }

    /// The same of an item of a list; none where there was none with its key.
    pub(super) fn item(self, items: &ItemsByKey<'a>, new: &'a Value) -> Option<Self> {
        Some(Self { old: items.get(new)?, new, schema: self.schema.items.as_deref()? })
    }

    /// Whether nothing changed, as far as the schema describes it: an object with other members is another one.
    ///
    /// Source: apiserver pkg/cel/common/equality.go, `CachedDeepEqual`.
    /// Rule: SCH-06.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.old, self.new) {
            (Value::Array(old), Value::Array(new)) => {
                if old.len() != new.len() {
                    return false;
                }
                if self.schema.list_type != ListType::Map {
                    return old == new;
                }
                let items = ItemsByKey::new(self.old, self.schema);
                new.iter().all(|item| self.item(&items, item).is_some_and(Self::is_unchanged))
            }
            (Value::Object(old), Value::Object(new)) => {
                old.len() == new.len()
                    && new.keys().all(|name| self.member(name).is_some_and(Self::is_unchanged))
            }
            (old, new) => old == new,
        }
    }
}
