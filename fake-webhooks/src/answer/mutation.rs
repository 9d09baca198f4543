//! Creates the JSON Patch operations of behaviors that depend on the object.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{AlwaysMutate, Append, ContainerEnv, Repeat, Sidecar};

/// The JSON pointers to the places where an object can contain a Pod spec.
pub(super) const POD_SPECS: [&str; 3] =
    ["/spec/jobTemplate/spec/template/spec", "/spec/template/spec", "/spec"];

/// Returns operations that set labels and annotations, even if the object already has the same values.
///
/// An object without `metadata`, such as the options of a CONNECT request, is not changed.
pub(super) fn always_mutate(parameters: &AlwaysMutate, object: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    if object["metadata"].is_object() {
        set(&mut operations, object, "labels", &parameters.labels);
        set(&mut operations, object, "annotations", &parameters.annotations);
    }
    operations
}

fn set(operations: &mut Vec<Value>, object: &Value, field: &str, entries: &BTreeMap<String, String>) {
    if entries.is_empty() {
        return;
    }
    if !object.get("metadata").and_then(|metadata| metadata.get(field)).is_some_and(Value::is_object) {
        operations.push(add(&format!("/metadata/{field}"), json!({})));
    }
    for (key, value) in entries {
        operations.push(add(&format!("/metadata/{field}/{}", escape(key)), value.as_str()));
    }
}

/// Returns operations that append to an annotation or a list.
pub(super) fn append(parameters: &Append, object: &Value) -> Vec<Value> {
    match parameters {
        Append::Annotation(key) => {
            let before = object.pointer("/metadata/annotations").and_then(|annotations| annotations.get(key));
            let before = before.and_then(Value::as_str).unwrap_or_default();
            let annotations = BTreeMap::from([(key.clone(), format!("{before}x"))]);
            always_mutate(&AlwaysMutate { annotations, ..AlwaysMutate::default() }, object)
        }
        Append::List { path, value } => append_to_list(path, value, object),
    }
}

pub(super) fn append_to_list(path: &str, value: &Value, object: &Value) -> Vec<Value> {
    if !object.is_object() {
        return Vec::new();
    }
    let mut operations = Vec::new();
    let parents = path.match_indices('/').skip(1).filter_map(|(end, _)| path.get(..end));
    for parent in parents.filter(|parent| object.pointer(parent).is_none_or(Value::is_null)) {
        operations.push(add(parent, json!({})));
    }
    if object.pointer(path).is_none_or(Value::is_null) {
        operations.push(add(path, json!([])));
    }
    operations.push(add(&format!("{path}/-"), value.clone()));
    operations
}

/// Returns operations that add a container to an object that contains a Pod spec.
pub(super) fn sidecar(parameters: &Sidecar, object: &Value) -> Vec<Value> {
    let Some((path, containers)) = containers(object) else {
        return Vec::new();
    };
    let taken = |name: &str| containers.iter().any(|container| container["name"] == name);
    let name = match parameters.repeat {
        Repeat::Never if taken(&parameters.name) => return Vec::new(),
        Repeat::EveryCall if taken(&parameters.name) => numbered(&parameters.name, taken),
        Repeat::Never | Repeat::EveryCall => parameters.name.clone(),
    };
    vec![add(&format!("{path}/-"), json!({"name": name, "image": parameters.image}))]
}

fn numbered(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut number = 2_usize;
    loop {
        let candidate = format!("{name}-{number}");
        if !taken(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

/// Returns operations that add an environment variable to each container that does not have it.
pub(super) fn container_env(parameters: &ContainerEnv, object: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    let Some((path, containers)) = containers(object) else {
        return operations;
    };
    for (index, container) in containers.iter().enumerate() {
        let variables = container["env"].as_array();
        if variables
            .is_some_and(|variables| variables.iter().any(|variable| variable["name"] == parameters.name))
        {
            continue;
        }
        if variables.is_none() {
            operations.push(add(&format!("{path}/{index}/env"), json!([])));
        }
        let variable = json!({"name": parameters.name, "value": parameters.value});
        operations.push(add(&format!("{path}/{index}/env/-"), variable));
    }
    operations
}

/// Returns the container list of a Pod or Pod template, with its JSON pointer.
pub(super) fn containers(object: &Value) -> Option<(String, &Vec<Value>)> {
    POD_SPECS.into_iter().find_map(|spec| {
        let path = format!("{spec}/containers");
        object.pointer(&path).and_then(Value::as_array).map(|containers| (path.clone(), containers))
    })
}

pub(super) fn add(path: &str, value: impl Into<Value>) -> Value {
    let value = value.into();
    json!({"op": "add", "path": path, "value": value})
}

pub(super) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
