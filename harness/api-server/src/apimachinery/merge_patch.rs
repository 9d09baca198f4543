//! Applies JSON merge patches (RFC 7386).

use serde_json::Value;

/// Applies a merge `patch` to `target`.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            members.remove(key);
        } else if let Some(member) = members.get_mut(key).filter(|member| !member.is_null()) {
            apply(member, value);
        } else {
            members.insert(key.clone(), without_nulls(value));
        }
    }
}

/// Returns a copy of an added value without null members, including null members of objects in lists.
///
/// Source: evanphx json-patch merge.go, `pruneNils`.
/// Rule: REQ-10.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(present.map(|(key, member)| (key.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
