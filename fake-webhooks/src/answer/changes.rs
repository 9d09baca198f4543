//! Creates the JSON Patch operations for the changes of `mutate`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::circumstances::Circumstances;
use super::condition::has_name;
use super::mutation::{POD_SPECS, add, append_to_list, containers, escape};
use super::placeholders::filled_value;
use crate::{
    Change, DropUnknownFields, EachContainer, Keep, ListAppend, Order, Pointer, RemoveContainers,
    ReorderLists, Repeat, ReplaceContainers, random,
};

/// Returns the JSON Patch operations that make `changes` to the object in the review.
pub(super) fn operations(changes: &[Change], at: &Circumstances, review: &Value) -> Vec<Value> {
    let mut object = review.pointer("/request/object").cloned().unwrap_or_default();
    let mut operations = Vec::new();
    if object.is_object() {
        make(changes, at, review, &mut object, &mut operations);
    }
    operations
}

/// Makes changes to the object, and appends the operations for them to `all`.
fn make(changes: &[Change], at: &Circumstances, review: &Value, object: &mut Value, all: &mut Vec<Value>) {
    for change in changes {
        let operations = match change {
            Change::Set(values) => {
                // In order, because the second change may need parents that the first creates.
                for (path, value) in values {
                    note(set(path, &filled_value(value, at, review), object), object, all);
                }
                continue;
            }
            Change::InAnyOrder(any) => {
                for change in random::shuffled(any.changes.iter().collect(), any.seed, at.nth) {
                    make(std::slice::from_ref(change), at, review, object, all);
                }
                continue;
            }
            Change::Append(append) => {
                let value = filled_value(&append.value, at, review);
                list_append(append, &value, object)
            }
            Change::Remove(paths) => {
                let there = paths.iter().filter(|path| object.pointer(path.as_str()).is_some());
                there.map(|path| remove(path.as_str())).collect()
            }
            Change::EachContainer(each) => {
                each_container(each, &filled_value(&each.value, at, review), object)
            }
            Change::RemoveContainers(except) => remove_containers(except, object),
            Change::ReplaceContainers(replace) => replace_containers(replace, at, review, object),
            Change::ReorderLists(reorder) => {
                let mut operations = Vec::new();
                reorder_lists(reorder, object, "", &mut operations);
                operations
            }
            Change::DropUnknownFields(drop) => drop_unknown_fields(drop, object),
        };
        note(operations, object, all);
    }
}

/// Records and applies operations.
///
/// An operation that fails is sent nevertheless, and the API server reports the failure.
fn note(operations: Vec<Value>, object: &mut Value, all: &mut Vec<Value>) {
    for operation in operations {
        if let Ok(done) = serde_json::from_value::<json_patch::PatchOperation>(operation.clone()) {
            // The object does not change if this fails.
            let _ = json_patch::patch(object, &[done]);
        }
        all.push(operation);
    }
}

fn remove(path: &str) -> Value {
    json!({"op": "remove", "path": path})
}

fn replace(path: &str, value: impl Into<Value>) -> Value {
    json!({"op": "replace", "path": path, "value": value.into()})
}

fn set(path: &Pointer, value: &Value, object: &Value) -> Vec<Value> {
    let path = path.as_str();
    if object.pointer(path) == Some(value) {
        return Vec::new();
    }
    if object.pointer(path).is_some() {
        return vec![replace(path, value.clone())];
    }
    let mut operations = Vec::new();
    let parents = path.match_indices('/').skip(1).filter_map(|(end, _)| path.get(..end));
    for parent in parents.filter(|parent| object.pointer(parent).is_none_or(Value::is_null)) {
        operations.push(add(parent, json!({})));
    }
    operations.push(add(path, value.clone()));
    operations
}

fn list_append(append: &ListAppend, value: &Value, object: &Value) -> Vec<Value> {
    let there = object.pointer(append.path.as_str()).and_then(Value::as_array);
    match append.repeat {
        Repeat::Never if there.is_some_and(|entries| has_like(entries, value)) => Vec::new(),
        Repeat::Never | Repeat::EveryCall => append_to_list(append.path.as_str(), value, object),
    }
}

/// Returns whether an entry is equal to `value` or has the same name.
fn has_like(entries: &[Value], value: &Value) -> bool {
    entries.contains(value) || value["name"].as_str().is_some_and(|name| has_name(entries, name))
}

/// Returns the lists of containers and init containers in a Pod or Pod template, with their JSON pointers.
fn lists_of_containers(object: &Value) -> Vec<(String, &Vec<Value>)> {
    let spec = POD_SPECS.into_iter().find(|spec| object.pointer(&format!("{spec}/containers")).is_some());
    let lists = ["initContainers", "containers"].map(|list| spec.map(|spec| format!("{spec}/{list}")));
    let lists = lists.into_iter().flatten();
    lists.filter_map(|path| Some((path.clone(), object.pointer(&path)?.as_array()?))).collect()
}

fn each_container(each: &EachContainer, value: &Value, object: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    for (path, containers) in lists_of_containers(object) {
        for (index, container) in containers.iter().enumerate() {
            let list = format!("{path}/{index}/{}", escape(&each.list));
            match container[&each.list].as_array() {
                Some(entries) if has_like(entries, value) => {}
                Some(_) => operations.push(add(&format!("{list}/-"), value.clone())),
                None => operations.push(add(&list, json!([value]))),
            }
        }
    }
    operations
}

fn remove_containers(parameters: &RemoveContainers, object: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    for (path, containers) in lists_of_containers(object) {
        let first_stays = usize::from(path.ends_with("/containers"));
        // From the end, so that earlier indexes remain valid.
        for (index, container) in containers.iter().enumerate().skip(first_stays).rev() {
            if !parameters.except.iter().any(|name| container["name"] == *name) {
                operations.push(remove(&format!("{path}/{index}")));
            }
        }
    }
    operations
}

fn replace_containers(
    parameters: &ReplaceContainers,
    at: &Circumstances,
    review: &Value,
    object: &Value,
) -> Vec<Value> {
    let Some((path, before)) = containers(object) else {
        return Vec::new();
    };
    let kept = match parameters.keep {
        Keep::All => before.len(),
        Keep::First => 1,
        Keep::None => 0,
    };
    let mut after: Vec<_> = before.iter().take(kept).cloned().collect();
    let added = parameters.add.iter().map(|container| filled_value(container, at, review));
    for container in added {
        if !has_like(&after, &container) {
            after.push(container);
        }
    }
    if after == *before { Vec::new() } else { vec![replace(&path, after)] }
}

fn reorder_lists(parameters: &ReorderLists, value: &Value, path: &str, operations: &mut Vec<Value>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let path = format!("{path}/{}", escape(key));
                match field.as_array() {
                    Some(entries) if parameters.fields.contains(key) => {
                        // Nested lists are reordered at their new position.
                        let entries = reordered(entries, parameters.order);
                        if field.as_array() != Some(&entries) {
                            operations.push(replace(&path, entries.clone()));
                        }
                        reorder_lists(parameters, &Value::from(entries), &path, operations);
                    }
                    _ => reorder_lists(parameters, field, &path, operations),
                }
            }
        }
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                reorder_lists(parameters, entry, &format!("{path}/{index}"), operations);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn reordered(entries: &[Value], order: Order) -> Vec<Value> {
    let mut entries = entries.to_vec();
    match order {
        Order::Reversed => entries.reverse(),
        Order::Sorted => entries.sort_by_cached_key(|entry| match entry["name"].as_str() {
            Some(name) => name.to_owned(),
            None => entry.to_string(),
        }),
    }
    entries
}

/// The fields that Kubernetes 1.15 supports, by kind.
static OLD_SCHEMA: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let text = include_str!("old_schema.yaml");
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("old_schema.yaml: {error}"))
});

fn drop_unknown_fields(parameters: &DropUnknownFields, object: &Value) -> Vec<Value> {
    let of_kind = || object["kind"].as_str().and_then(|kind| OLD_SCHEMA.get(kind));
    let mut operations = Vec::new();
    if let Some(known) = parameters.known.as_ref().or_else(of_kind) {
        drop_unknown(object, known, "", &mut operations);
    }
    operations
}

fn drop_unknown(value: &Value, known: &Value, path: &str, operations: &mut Vec<Value>) {
    match (value, known) {
        (Value::Object(fields), Value::Object(known)) => {
            for (key, field) in fields {
                let path = format!("{path}/{}", escape(key));
                match known.get(key) {
                    Some(known) => drop_unknown(field, known, &path, operations),
                    None => operations.push(remove(&path)),
                }
            }
        }
        (Value::Array(entries), Value::Array(known)) => {
            if let [known] = known.as_slice() {
                for (index, entry) in entries.iter().enumerate() {
                    drop_unknown(entry, known, &format!("{path}/{index}"), operations);
                }
            }
        }
        _ => {}
    }
}
