//! Removes duplicates, nulls, and directives from the values of strategic merge patches.
//!
//! Source: apimachinery pkg/util/strategicpatch/patch.go.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::strategic_order::DIRECTIVE;

/// Removes duplicates by moving the last item to the position of each duplicate.
///
/// Source: `deduplicateScalars`.
pub(super) fn distinct(mut items: Vec<Value>) -> Vec<Value> {
    // Index the positions of each value, to avoid comparing all pairs.
    let mut places: HashMap<Value, BTreeSet<usize>> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        places.entry(item.clone()).or_default().insert(place);
    }
    let mut place = 0;
    while let Some(item) = items.get(place).cloned() {
        let next = |places: &HashMap<Value, BTreeSet<usize>>| {
            places.get(&item).and_then(|same| same.range(place + 1..).next().copied())
        };
        while let Some(repetition) = next(&places) {
            places.entry(item.clone()).or_default().remove(&repetition);
            if let Some((last, others)) = items.split_last() {
                places.entry(last.clone()).or_default().remove(&others.len());
            }
            items.swap_remove(repetition);
            if let Some(moved) = items.get(repetition) {
                places.entry(moved.clone()).or_default().insert(repetition);
            }
        }
        place += 1;
    }
    items
}

/// Removes all members that are null.
///
/// Source: `discardNullValuesFromPatch`.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(present.map(|(key, member)| (key, without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Removes all objects that have directives; returns `None` if `value` itself has a directive.
///
/// Source: `removeDirectives`.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => {
            let kept =
                members.into_iter().filter_map(|(key, member)| Some((key, without_directives(member)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}
