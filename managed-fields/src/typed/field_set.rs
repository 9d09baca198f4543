//! Collects the fields of a value.

use std::collections::BTreeMap;

use serde_json::Value;

use super::deduced;
use super::items::Items;
use crate::path::PathElement;
use crate::schema::{ListType, MapType, Relation, Schema, Type};
use crate::set::{Node, Set};

/// Returns the set of all leaves and list items of `value`. `value` must be of type `of`.
///
/// Source: structured-merge-diff typed/tofieldset.go.
pub fn field_set<T: Schema>(value: &Value, of: Type<T>) -> Set {
    visit(value, of).below.finish()
}

fn visit<T: Schema>(value: &Value, of: Type<T>) -> Node {
    let atom = deduced(of.atom(), Some(value));
    if let Some(map) = atom.map {
        visit_map(value, of, map)
    } else if atom.scalar.is_some() {
        Node { is_member: true, ..Node::default() }
    } else if let Some(list) = atom.list {
        visit_list(value, of, list)
    } else {
        Node::default()
    }
}

fn visit_map<T: Schema>(value: &Value, of: Type<T>, map: MapType<T>) -> Node {
    let mut node = Node { is_member: map.is_atomic, ..Node::default() };
    let Some(members) = value.as_object().filter(|_| !map.is_atomic) else { return node };
    for (name, value) in members {
        let declared = of.field(name);
        let mut member = declared.or(map.element).map_or_else(Node::default, |of| visit(value, of));
        member.is_member |=
            declared.is_none() || value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        node.below.attach(&PathElement::field(name), member);
    }
    node
}

fn visit_list<T: Schema>(value: &Value, of: Type<T>, list: ListType<T>) -> Node {
    let is_atomic = list.relation == Relation::Atomic;
    let mut node = Node { is_member: is_atomic, ..Node::default() };
    let Some(items) = value.as_array().filter(|_| !is_atomic) else { return node };
    let path = Items::new(&of, list);
    let elements: Vec<_> =
        items.iter().map(|item| path.element(item).unwrap_or(PathElement::Unknown)).collect();
    let mut counts: BTreeMap<&PathElement, u32> = BTreeMap::new();
    for element in &elements {
        *counts.entry(element).or_default() += 1;
    }
    for (item, element) in items.iter().zip(&elements) {
        // Parts of duplicate items cannot be owned.
        let is_single = counts.get(element) == Some(&1);
        let mut below = if is_single { visit(item, list.element) } else { Node::default() };
        below.is_member = true;
        node.below.attach(element, below);
    }
    node
}
