//! Removes fields from a value, or extracts them.

use serde_json::{Map, Value};

use super::deduced;
use super::items::Items;
use crate::path::PathElement;
use crate::schema::{ListType, MapType, Relation, Schema, Type};
use crate::set::Set;

/// Returns `value` without `fields`; `value` must be of type `of`. A struct, list, or map that becomes empty is
/// replaced with null.
///
/// Source: structured-merge-diff typed/remove.go.
pub fn remove_items<T: Schema>(value: Value, fields: &Set, of: Type<T>) -> Value {
    visit(value, fields, of, Mode::Remove)
}

/// Returns only those fields of `value` that are in `fields`; `value` must be of type `of`.
///
/// Source: structured-merge-diff typed/remove.go.
pub fn extract_items<T: Schema>(value: Value, fields: &Set, of: Type<T>) -> Value {
    visit(value, fields, of, Mode::Extract)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Remove,
    Extract,
}

fn visit<T: Schema>(value: Value, fields: &Set, of: Type<T>, mode: Mode) -> Value {
    let atom = deduced(of.atom(), Some(&value));
    if let Some(map) = atom.map {
        if let Value::Object(members) = value {
            visit_map(members, fields, of, map, mode)
        } else {
            Value::Null
        }
    } else if atom.scalar.is_some() {
        value
    } else if let Some(list) = atom.list {
        if let Value::Array(items) = value { visit_list(items, fields, of, list, mode) } else { Value::Null }
    } else {
        Value::Null
    }
}

fn visit_map<T: Schema>(
    members: Map<String, Value>,
    fields: &Set,
    of: Type<T>,
    map: MapType<T>,
    mode: Mode,
) -> Value {
    if members.is_empty() || map.is_atomic {
        return if mode == Mode::Extract { members.into() } else { Value::Null };
    }
    let mut rest = Map::new();
    for (name, value) in members {
        let element = PathElement::field(&name);
        let of = of.field(&name).or(map.element);
        let visit = |value: Value, fields: &Set| of.map_or(Value::Null, |of| visit(value, fields, of, mode));
        if fields.has_member(&element) {
            if mode == Mode::Extract {
                // Upstream continues with the whole set instead of the fields below this one.
                rest.insert(name, visit(value, fields));
            }
        } else if let Some(below) = fields.child(&element) {
            rest.insert(name, visit(value, below));
        } else if mode == Mode::Remove {
            rest.insert(name, value);
        }
    }
    if rest.is_empty() { Value::Null } else { rest.into() }
}

fn visit_list<T: Schema>(
    items: Vec<Value>,
    fields: &Set,
    of: Type<T>,
    list: ListType<T>,
    mode: Mode,
) -> Value {
    if items.is_empty() || list.relation == Relation::Atomic {
        return if mode == Mode::Extract { items.into() } else { Value::Null };
    }
    let path = Items::new(&of, list);
    let mut rest = Vec::with_capacity(items.len());
    for item in items {
        let element = path.element(&item).unwrap_or(PathElement::Unknown);
        let is_member = fields.has_member(&element);
        let below = fields.child(&element);
        match mode {
            Mode::Remove if is_member => {}
            Mode::Extract if !is_member && below.is_none() => {}
            Mode::Remove | Mode::Extract => rest.push(match below {
                Some(below) => visit(item, below, list.element, mode),
                None => item,
            }),
        }
    }
    if rest.is_empty() { Value::Null } else { rest.into() }
}
