//! Reads and writes `status.conditions` of objects whose status the server writes.

use serde_json::{Map, Value, json};

use super::metadata;

pub(crate) fn all(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
}

/// Returns whether a condition has the type `name`.
pub(crate) fn is(condition: &Value, name: &str) -> bool {
    condition.get("type").and_then(Value::as_str) == Some(name)
}

/// Returns the status of an object; creates an empty status if absent.
///
/// Returns `None` if the object or its status is not a JSON object.
pub(crate) fn status_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.as_object_mut()?.entry("status").or_insert_with(|| json!({})).as_object_mut()
}

/// Sets a condition, a JSON object with `type` and `status`. Replaces an existing condition with the same type.
///
/// `lastTransitionTime` becomes the current time, or stays the same if `status` does not change.
///
/// Source: kubernetes pkg/api/pod/util.go, `UpdatePodCondition`; apimachinery pkg/api/meta/conditions.go,
/// `SetStatusCondition`.
pub(crate) fn set(object: &mut Value, mut condition: Value) {
    let Some(conditions) = status_mut(object)
        .and_then(|status| status.entry("conditions").or_insert_with(|| json!([])).as_array_mut())
    else {
        return;
    };
    let name = condition.get("type").and_then(Value::as_str).unwrap_or_default();
    let found = conditions.iter_mut().find(|found| is(found, name));
    let since = match &found {
        Some(found) if found.get("status") == condition.get("status") => {
            found.get("lastTransitionTime").cloned()
        }
        Some(_) | None => None,
    };
    if let Some(members) = condition.as_object_mut() {
        members.insert("lastTransitionTime".to_owned(), since.unwrap_or_else(|| metadata::now().into()));
    }
    match found {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}
