//! V17: a patch changes only the fields that the webhook intends to change.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::patch::Patch;
use serde_json::Value;

use super::overwritten::{Overwritten, overwritten};
use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::{Difference, Order};
use crate::object_probe::ObjectProbe;
use crate::shape;

pub(super) const CHECK: Check = Check {
    id: "V17",
    title: "minimal patch: the patch removes and overwrites nothing and does not rewrite whole lists or maps",
    severity: Severity::Warning,
    why: "A webhook must not remove what the user wrote. An operation that writes a whole list or map hides \
          the actual change from readers of the audit log, writes only what the webhook's own types know of \
          each item, and removes everything else. One operation for each field or item avoids both. \
          Overwriting a value that the user set may be the webhook's purpose and is reported as a note. \
          Overwriting a value that equals the API server's default is not reported.",
    help: "Write one operation for each field or item that changes.",
    source: "Admission Webhook Good Practices, Patch only required fields, Don't overwrite array values",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::to_creation(object_probe).await?;
    let patch = webhook_response.patch()?;
    let patched = webhook_response.patched()?;
    let lost: Vec<Difference> = object_probe
        .differences(webhook_response.object(), &patched, Order::Free)
        .into_iter()
        .filter(|difference| difference.found.is_none())
        .collect();
    let mut violations = Vec::new();
    let rewritten = rewritten(patch.operations(), webhook_response.object());
    for what in ["list", "map"] {
        let places = rewritten.iter().flatten().filter(|(found, _)| *found == what);
        let places: BTreeSet<&str> = places.map(|(_, path)| path.as_str()).collect();
        if places.is_empty() {
            continue;
        }
        let listed = super::listed(places.iter().copied());
        let message = match places.len() {
            1 => format!("the patch writes the whole {what} at {listed}, which already exists"),
            _ => format!("the patch writes whole {what}s that already exist: {listed}"),
        };
        // Rewriting a complete list is only bad style; lost items are reported separately.
        let mut violation = Violation::new(format!("writes a whole {what}"), message);
        violation.fields =
            places.iter().map(|path| shape::field(path)).filter(|field| !field.is_empty()).collect();
        violations.push(violation.with_severity(Severity::Note).showing_all_fields());
    }
    violations.extend(replaced(object_probe, webhook_response.object(), &patched));
    if !lost.is_empty() {
        let message = format!("the patch removes what the webhook did not add: {}", super::all_fields(&lost));
        violations
            .push(Violation::new("removes fields", message).with_differences(lost).showing_all_fields());
    }
    if violations.is_empty() {
        rewritten?;
    }
    Ok(violations
        .into_iter()
        .map(|violation| violation.with_steps([Arc::clone(&webhook_response.outcome)]))
        .collect())
}

/// Reports values of the user that the patch overwrites.
fn replaced(object_probe: &ObjectProbe<'_>, before: &Value, after: &Value) -> Option<Violation> {
    let mut kept = after.clone();
    for value in overwritten(before, after) {
        if is_default(object_probe, before, &value) {
            continue;
        }
        if let (Some(place), Some(old)) = (kept.pointer_mut(&value.after), before.pointer(&value.before)) {
            *place = old.clone();
        }
    }
    // Values that the server treats as equal, such as 500m and 0.5, do not count.
    let replaced = object_probe.differences(&kept, after, Order::Counts);
    if replaced.is_empty() {
        return None;
    }
    let fields = super::all_fields(&replaced);
    let message = format!(
        "the patch overwrites values that the user set: {fields}; correct only if that is the \
                 webhook's purpose"
    );
    let violation = Violation::new("overwrites", message).with_severity(Severity::Note);
    Some(violation.with_differences(replaced).showing_all_fields())
}

/// Returns whether the former value is the server's default, so that the user may not have set it.
fn is_default(object_probe: &ObjectProbe<'_>, before: &Value, value: &Overwritten) -> bool {
    let mut filled = before.clone();
    if !value.is_member || !shape::remove(&mut filled, &value.before) {
        return false;
    }
    object_probe.environment.cluster_fixture.set_defaults(&mut filled);
    filled.pointer(&value.before) == before.pointer(&value.before)
}

/// Returns the non-empty lists and maps that `operations` overwrite completely, each as a kind and a path.
fn rewritten(operations: &[Value], object: &Value) -> Result<Vec<(&'static str, String)>, Skipped> {
    // Each operation is applied to its own copy of the document.
    let written: usize = operations.iter().map(values).sum();
    if operations.len().saturating_mul(values(object) + written) > MAX_WORK {
        return Err(Skipped::not_checked("the patch has too many operations and values to check"));
    }
    let mut found = Vec::new();
    let mut document = object.clone();
    for operation in operations {
        let path = operation["path"].as_str().unwrap_or_default();
        if matches!(operation["op"].as_str(), Some("add" | "replace")) && !is_insertion(operation, &document)
        {
            match (document.pointer(path), &operation["value"]) {
                (Some(Value::Array(before)), Value::Array(_)) if !before.is_empty() => {
                    found.push(("list", path.to_owned()));
                }
                (Some(Value::Object(before)), Value::Object(_)) if !before.is_empty() => {
                    found
                        .push(("map", if path.is_empty() { "the root".to_owned() } else { path.to_owned() }));
                }
                _ => {}
            }
        }
        let one = Value::from(vec![operation.clone()]).to_string();
        let applied = Patch::decode(one.as_bytes()).ok().and_then(|patch| patch.apply(&document).ok());
        document = applied.ok_or_else(|| Skipped::not_checked("the patch does not apply"))?;
    }
    Ok(found)
}

/// The maximum number of values to copy for one patch.
const MAX_WORK: usize = 10_000_000;

/// Returns the number of values in `value`, including `value` itself.
fn values(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// Returns whether an `add` operation inserts a list item. Such an operation does not replace an existing item.
fn is_insertion(operation: &Value, document: &Value) -> bool {
    let parent = operation["path"].as_str().and_then(|path| path.rsplit_once('/')).map(|(parent, _)| parent);
    operation["op"] == "add"
        && parent.and_then(|parent| document.pointer(parent)).is_some_and(Value::is_array)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(operations: &Value, expected: &[(&str, &str)]) {
        let object = json!({"m": {"a": 1}, "l": [{"a": 1}], "e": [], "t": "text"});
        let found = rewritten(operations.as_array().unwrap(), &object).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(what, path)| (*what, path.as_str())).collect();
        assert_eq!(found, expected, "{operations}");
    }

    #[test]
    fn only_existing_lists_and_maps_are_rewritten() {
        check(&json!([{"op": "replace", "path": "/l", "value": []}]), &[("list", "/l")]);
        check(&json!([{"op": "add", "path": "/m", "value": {}}]), &[("map", "/m")]);
        check(&json!([{"op": "replace", "path": "/l/0", "value": {}}]), &[("map", "/l/0")]);
        check(&json!([{"op": "add", "path": "/l/0", "value": {}}]), &[]);
        check(&json!([{"op": "add", "path": "/l/-", "value": {}}]), &[]);
        check(&json!([{"op": "add", "path": "/e", "value": [1]}]), &[]);
        check(
            &json!([{"op": "add", "path": "/n", "value": {}}, {"op": "add", "path": "/n/a", "value": 1}]),
            &[],
        );
        check(&json!([{"op": "replace", "path": "/t", "value": "other"}]), &[]);
    }
}
