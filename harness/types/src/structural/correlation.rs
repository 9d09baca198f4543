//! Matches parts of an object with the stored object. Ratcheting accepts invalid values that did not change.
//!
//! Source: apiserver pkg/cel/common/{equality,maplist}.go; apiextensions-apiserver
//! pkg/apiserver/validation/ratcheting.go.

use std::collections::HashMap;

use serde_json::Value;

use super::node::{ListType, Schema};

/// A value, its old value, and their schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correlation<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    pub(super) schema: &'a Schema,
}

/// The items of an old list, indexed by their keys.
#[derive(Debug, Default)]
pub(super) struct ItemsByKey<'a> {
    keys: &'a [String],
    items: HashMap<String, &'a Value>,
}

impl<'a> ItemsByKey<'a> {
    /// Indexes the items of `old`. The index is empty unless the schema is a list of type `map`.
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

    /// Returns the old item that has the same key as `item`.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&key(item, self.keys)?).copied()
    }
}

/// Returns the key of an item; `None` if a field of the key is missing or not a scalar.
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
    /// Returns the correlation of a member; `None` if one of the objects or the schema does not have it.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        let (old, new) = (self.old.as_object()?.get(name)?, self.new.as_object()?.get(name)?);
        Some(Self { old, new, schema: self.schema.member(name)? })
    }

    /// Returns the correlation of a list item; `None` if no item of the old list has the same key.
    pub(super) fn item(self, items: &ItemsByKey<'a>, new: &'a Value) -> Option<Self> {
        Some(Self { old: items.get(new)?, new, schema: self.schema.items.as_deref()? })
    }

    /// Returns whether the parts of the value that the schema describes are unchanged.
    ///
    /// An object with different members has changed.
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
