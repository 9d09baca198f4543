//! Completes and validates the conditions in the status of `CertificateSigningRequest`s.

use std::collections::{HashMap, HashSet};

use kubernetes_types::status::FieldError;
use serde_json::{Value, json};

use crate::apimachinery::metadata;

/// The path of the conditions in error messages.
const CONDITIONS: &str = "status.conditions";

const LAST_TRANSITION_TIME: &str = "lastTransitionTime";

/// Completes the conditions in a status update: keeps approvals and denials, and sets missing times.
///
/// Source: kubernetes pkg/registry/certificates/certificates/strategy.go, `csrStatusStrategy.PrepareForUpdate`.
/// Rule: KND-09.
pub(crate) fn complete_conditions(request: &mut Value, old: &Value) {
    let before = conditions(old);
    let Some(conditions) = request.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else {
        return;
    };
    for decision in ["Approved", "Denied"] {
        let is_of = |condition: &&Value| condition["type"] == decision;
        let stored: Vec<&Value> = before.iter().filter(is_of).collect();
        // Validation rejects added and removed conditions.
        if conditions.iter().filter(is_of).count() == stored.len() {
            let given = conditions.iter_mut().filter(|condition| condition["type"] == decision);
            given.zip(stored).for_each(|(given, stored)| given.clone_from(stored));
        }
    }
    set_times(conditions, before);
}

/// Discards all changes in an update of the approval except changes to the conditions.
///
/// Source: kubernetes pkg/registry/certificates/certificates/strategy.go, `csrApprovalStrategy.PrepareForUpdate`.
/// Rule: KND-08.
pub(crate) fn keep_all_but_conditions(request: &mut Value, old: &Value) {
    let mut given = conditions(request).to_vec();
    set_times(&mut given, conditions(old));
    let Some(members) = request.as_object_mut() else { return };
    let mut status = old.get("status").cloned().unwrap_or_else(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        status.remove("conditions");
        if !given.is_empty() {
            status.insert("conditions".to_owned(), given.into());
        }
    }
    members.insert("status".to_owned(), status);
    members.insert("spec".to_owned(), old.get("spec").cloned().unwrap_or_default());
}

fn conditions(request: &Value) -> &[Value] {
    request.pointer("/status/conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Sets the missing times of conditions. Unchanged conditions keep their transition times.
///
/// Source: kubernetes pkg/registry/certificates/certificates/strategy.go, `populateConditionTimestamps`.
fn set_times(conditions: &mut [Value], before: &[Value]) {
    // If several conditions have the same type and status, the first one wins.
    let mut times = HashMap::new();
    for condition in before {
        if let Some(since) = condition.get(LAST_TRANSITION_TIME).filter(|since| !since.is_null()) {
            times.entry(["type", "status"].map(|field| condition.get(field))).or_insert(since);
        }
    }
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let since = times.get(&["type", "status"].map(|field| condition.get(field))).copied().cloned();
        for (field, time) in [("lastUpdateTime", None), (LAST_TRANSITION_TIME, since)] {
            if condition.get(field).is_none_or(Value::is_null) {
                condition.insert(field.to_owned(), time.unwrap_or_else(|| metadata::now().into()));
            }
        }
    }
}

/// Validates the conditions after an update of the status or the approval.
///
/// Does not report an error if the stored conditions already contained it.
///
/// Source: kubernetes pkg/apis/certificates/validation/validation.go, `validateConditions` and
/// `validateCertificateSigningRequestUpdate`; `pkg/apis/certificates/v1/zz_generated.validations.go` (its errors come
/// last).
/// Rule: KND-09.
pub(crate) fn errors(object: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
    let (new, old) = (conditions(object), conditions(old));
    let mut errors = Vec::new();
    let was_untyped = old.iter().any(|condition| text(condition, "type").is_empty());
    let was_both = count(old, "Approved") > 0 && count(old, "Denied") > 0;
    let mut types = HashSet::new();
    let was_twice = !old.iter().all(|condition| types.insert(text(condition, "type")));
    types.clear();
    for (index, condition) in new.iter().enumerate() {
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        let field = |name: &str| format!("{CONDITIONS}[{index}].{name}");
        if kind.is_empty() && !was_untyped {
            errors.push(FieldError::required(field("type"), ""));
        }
        let allowed = match kind {
            "Approved" | "Denied" | "Failed" => &["True"][..],
            _ => &["False", "True", "Unknown"],
        };
        if status.is_empty() {
            errors.push(FieldError::required(field("status"), ""));
        } else if !allowed.contains(&status) {
            let allowed: Vec<String> = allowed.iter().map(|status| format!("\"{status}\"")).collect();
            errors.push(FieldError::not_supported(field("status"), Value::from(status), allowed.join(", ")));
        }
        if !types.insert(kind) && !was_twice {
            errors.push(FieldError::duplicate(field("type"), Value::from(kind)));
        }
    }
    for kind in ["Approved", "Denied", "Failed"] {
        if count(new, kind) < count(old, kind) {
            let why = format!("updates may not remove a condition of type \"{kind}\"");
            errors.push(FieldError::forbidden(CONDITIONS, why));
        }
    }
    for kind in ["Approved", "Denied"] {
        // Only an update of the approval may add these conditions.
        if subresource == "status" && count(new, kind) > count(old, kind) {
            let why = format!("updates may not add a condition of type \"{kind}\"");
            errors.push(FieldError::forbidden(CONDITIONS, why));
        }
    }
    if !was_both && count(new, "Approved") > 0 && count(new, "Denied") > 0 {
        let [approved, denied] =
            ["Approved", "Denied"].map(|kind| format!("conditions[{{\"type\": \"{kind}\"}}]"));
        let why = format!("must specify at most one of: `{approved}`, `{denied}`");
        errors.push(FieldError::invalid(CONDITIONS, Value::from(format!("{{{approved}, {denied}}}")), why));
    }
    errors
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn count(conditions: &[Value], kind: &str) -> usize {
    conditions.iter().filter(|condition| text(condition, "type") == kind).count()
}
