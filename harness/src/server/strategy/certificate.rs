//! `CertificateSigningRequests`: the conditions of their status.

use serde_json::Value;

use super::super::metadata;

const SINCE: &str = "lastTransitionTime";

/// Nobody approves or denies by writing the status; conditions get the times that they lack.
///
/// Source: kubernetes pkg/registry/certificates/certificates/strategy.go, `csrStatusStrategy.PrepareForUpdate`.
pub(super) fn complete_conditions(request: &mut Value, old: &Value) {
    let before = old.pointer("/status/conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(conditions) = request.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else {
        return;
    };
    for decision in ["Approved", "Denied"] {
        let is_of = |condition: &&Value| condition["type"] == decision;
        let stored: Vec<&Value> = before.iter().filter(is_of).collect();
        // What was added or taken away is left to validation.
        if conditions.iter().filter(is_of).count() == stored.len() {
            let given = conditions.iter_mut().filter(|condition| condition["type"] == decision);
            given.zip(stored).for_each(|(given, stored)| given.clone_from(stored));
        }
    }
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let same = before.iter().find(|before| {
            ["type", "status"].iter().all(|field| before.get(field) == condition.get(*field))
                && before.get(SINCE).is_some_and(|since| !since.is_null())
        });
        let since = same.and_then(|same| same.get(SINCE)).cloned();
        for (field, time) in [("lastUpdateTime", None), (SINCE, since)] {
            if condition.get(field).is_none_or(Value::is_null) {
                condition.insert(field.to_owned(), time.unwrap_or_else(|| metadata::now().into()));
            }
        }
    }
}
