//! V17: a patch touches what it is about, and nothing else.

use std::sync::Arc;

use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_admission::patch::Patch;
use serde_json::Value;

use super::overwritten::{Overwritten, overwritten};
use super::said::Said;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::{Difference, Order};
use crate::object_probe::ObjectProbe;
use crate::shape;

pub(super) const CHECK: Check = Check {
    id: "V17",
    title: "sparing: it takes nothing away, overwrites nothing, and changes a part of a list or map without writing all of it",
    severity: Severity::Warning,
    why: "What the user wrote and the webhook did not add is not the webhook's to remove. An operation that writes a \
          whole list or map back says nothing about what it is meant to change: it hides the change from whoever reads \
          the audit log, writes down what the webhook's own types know of each item, and takes away what its author \
          did not think of. An operation for each field or item does neither. To write over a value that the user has \
          set may be its purpose, and is a note; a value that the server would have filled in is nobody's wish.",
    source: "Admission Webhook Good Practices, Patch only required fields, Don't overwrite array values",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let said = Said::of(object_probe).await?;
    let patch = said.patch()?;
    let patched = said.patched()?;
    let lost: Vec<Difference> = object_probe
        .differences(said.object(), &patched, Order::Free)
        .into_iter()
        .filter(|difference| difference.found.is_none())
        .collect();
    let mut violations = Vec::new();
    for (what, path) in rewritten(patch.operations(), said.object())? {
        let kind = format!("writes a whole {what}");
        if violations.iter().any(|violation: &Violation| violation.kind == kind) {
            continue;
        }
        let message = format!("its patch writes the whole {what} at {path}, which was there already");
        // Whole and complete is bad style; what is lost by it is told beside.
        violations.push(Violation::new(kind, message).with_severity(Severity::Note));
    }
    violations.extend(replaced(object_probe, said.object(), &patched));
    if !lost.is_empty() {
        let message = format!("its patch takes away what it did not add: {}", super::fields(&lost));
        violations.push(Violation::new("takes away", message).with_differences(lost));
    }
    Ok(violations.into_iter().map(|violation| violation.with_steps([Arc::clone(&said.outcome)])).collect())
}

/// What it writes over the user's values, if anything.
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
    // What the server takes for the same, such as 500m and 0.5, is no other value.
    let replaced = object_probe.differences(&kept, after, Order::Counts);
    if replaced.is_empty() {
        return None;
    }
    let fields = super::fields(&replaced);
    let message =
        format!("its patch writes over what the user has set: {fields}; right only if it is there for that");
    let violation = Violation::new("overwrites", message).with_severity(Severity::Note);
    Some(violation.with_differences(replaced))
}

/// Whether the server would have filled in the same value: then nobody knows that the user meant it.
fn is_default(object_probe: &ObjectProbe<'_>, before: &Value, value: &Overwritten) -> bool {
    let mut filled = before.clone();
    if !value.is_member || !shape::remove(&mut filled, &value.before) {
        return false;
    }
    object_probe.environment.cluster_fixture.set_defaults(&mut filled);
    filled.pointer(&value.before) == before.pointer(&value.before)
}

/// The lists and maps of more than nothing that `operations` write although they are there: what, and where.
fn rewritten(operations: &[Value], object: &Value) -> Result<Vec<(&'static str, String)>, Obstacle> {
    // Each operation is done on a document of its own.
    let written: usize = operations.iter().map(values).sum();
    if operations.len().saturating_mul(values(object) + written) > MAX_WORK {
        return Err(Obstacle::not_checked("its patch has too many operations and values for that"));
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
        document = applied.ok_or_else(|| Obstacle::not_checked("its patch does not apply"))?;
    }
    Ok(found)
}

/// How many values may be copied to look at the operations of one patch.
const MAX_WORK: usize = 10_000_000;

/// How many values this is, itself among them.
fn values(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// Whether an `add` goes between the items of a list: then what stands at its path moves.
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
    fn only_what_was_there_is_rewritten() {
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
