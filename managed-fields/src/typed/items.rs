//! Determines the path elements of list items.

use go_std::quote::quote;
use serde_json::Value;

use crate::path::PathElement;
use crate::schema::{ListType, Relation, Schema, Type};

/// Determines the path elements of a list's items.
pub(super) struct Items<'a, T> {
    list: ListType<T>,
    keys: Vec<&'a str>,
}

impl<'a, T: Schema> Items<'a, T> {
    /// Creates `Items` for the items of a list; `of` is the type of the list.
    pub(super) fn new(of: &'a Type<T>, list: ListType<T>) -> Self {
        let keys = if list.relation == Relation::Keyed { of.keys() } else { Vec::new() };
        Self { list, keys }
    }

    /// Returns the path element of `item`.
    ///
    /// # Errors
    /// Returns an error if the item does not have a path element, for example because a key is missing.
    ///
    /// Source: structured-merge-diff typed/helpers.go, `listItemToPathElement`.
    pub(super) fn element(&self, item: &Value) -> Result<PathElement, String> {
        match self.list.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Relation::Keyed if !self.keys.is_empty() => self.keyed(item),
            Relation::Keyed | Relation::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(PathElement::value(item.clone())),
            },
        }
    }

    fn keyed(&self, item: &Value) -> Result<PathElement, String> {
        let members = match item {
            Value::Object(members) => members,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("associative list with keys may not have non-map elements".to_owned());
            }
        };
        let mut fields = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            // A missing key field without a default is not part of the key.
            let value = match members.get(*key) {
                Some(value) => Some(value.clone()),
                None => self
                    .default(key)
                    .map_err(|error| format!("couldn't find default value for {key}: {error}"))?,
            };
            fields.extend(value.map(|value| ((*key).to_owned(), value)));
        }
        if fields.is_empty() {
            let keys: Vec<_> = self.keys.iter().map(quote).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(PathElement::key(fields))
    }

    fn default(&self, key: &str) -> Result<Option<Value>, &'static str> {
        let element = self.list.element;
        if element.atom().map.is_none() {
            return Err("associative list may not have non-map types");
        }
        Ok(element.field_default(key))
    }
}
