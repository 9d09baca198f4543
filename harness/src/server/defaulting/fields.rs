//! Fills fields of JSON objects, treating an absent field, `null` and an empty string alike, as typed objects do.

use serde_json::Value;

/// Members that are maps of texts in every type that has them.
const MAPS_OF_TEXTS: [&str; 6] =
    ["annotations", "data", "labels", "matchLabels", "nodeSelector", "stringData"];

/// Members that are not written when they are empty, in every type that has them.
const OMITTED_WHEN_EMPTY: [&str; 24] = [
    "annotations",
    "args",
    "binaryData",
    "command",
    "data",
    "env",
    "envFrom",
    "ephemeralContainers",
    "finalizers",
    "hostAliases",
    "imagePullSecrets",
    "initContainers",
    "labels",
    "matchExpressions",
    "matchLabels",
    "nodeSelector",
    "ownerReferences",
    "ports",
    "requests",
    "tolerations",
    "topologySpreadConstraints",
    "volumeDevices",
    "volumeMounts",
    "volumes",
];

/// Leaves out what a typed object does not write: each member that is `null`, and certain empty lists and maps, where a
/// patch must not find anything. In a map of texts `null` is an empty text.
///
/// Source: Go's encoding/json, `Unmarshal` and `omitempty`.
pub(super) fn as_typed(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| !member.is_null() && !is_omitted(name, member));
            for (name, member) in members {
                if MAPS_OF_TEXTS.contains(&name.as_str()) {
                    let texts = member.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut);
                    texts.filter(|text| text.is_null()).for_each(|text| *text = Value::String(String::new()));
                }
                as_typed(member);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(as_typed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `limits` is a map in a container, and a list that is always written in a `LimitRange`.
fn is_omitted(name: &str, member: &Value) -> bool {
    match member {
        Value::Array(entries) => entries.is_empty() && OMITTED_WHEN_EMPTY.contains(&name),
        Value::Object(members) => {
            members.is_empty() && (name == "limits" || OMITTED_WHEN_EMPTY.contains(&name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Sets `object[field]` unless it has a value. Anything but an object is left alone.
pub(super) fn fill(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut()
        && members.get(field).is_none_or(|present| present.is_null() || present.as_str() == Some(""))
    {
        members.insert(field.to_owned(), value.into());
    }
}

/// Sets `object[field]` unless it has a value other than zero.
pub(super) fn fill_zero(object: &mut Value, field: &str, value: i64) {
    if object.get(field).is_some_and(|present| present.as_i64() == Some(0)) {
        remove(object, field);
    }
    fill(object, field, value);
}

/// Removes `object[field]`.
pub(super) fn remove(object: &mut Value, field: &str) -> Option<Value> {
    object.as_object_mut()?.remove(field)
}

/// The object at `object[field]`, which is made if there is none. None where something else stands there.
pub(super) fn ensure<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    let child = object.as_object_mut()?.entry(field).or_insert(Value::Null);
    if child.is_null() {
        *child = Value::Object(serde_json::Map::new());
    }
    child.is_object().then_some(child)
}

/// Does `action` with the object at `object[field]`, if there is one.
pub(super) fn with(object: &mut Value, field: &str, action: impl FnOnce(&mut Value)) {
    if let Some(child) = object.get_mut(field).filter(|child| child.is_object()) {
        action(child);
    }
}

/// Does `action` with each entry of the list at `object[field]`.
pub(super) fn each(object: &mut Value, field: &str, action: impl FnMut(&mut Value)) {
    if let Some(entries) = object.get_mut(field).and_then(Value::as_array_mut) {
        entries.iter_mut().for_each(action);
    }
}

/// The text at `object[field]`; empty where there is none.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether `object[field]` has a value.
pub(super) fn has(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

/// Whether `object[field]` is absent, `null` or empty.
pub(super) fn is_empty(object: &Value, field: &str) -> bool {
    match object.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::Array(entries)) => entries.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}
