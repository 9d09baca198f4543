//! Evaluates the conditions of `when`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::circumstances::Circumstances;
use super::mutation::containers;
use crate::{Condition, Operation, Round};

/// Returns whether the condition is true.
pub(super) fn holds(condition: &Condition, at: &Circumstances, review: &Value) -> bool {
    let request = &review["request"];
    let object = &request["object"];
    let among = |names: &[String], value: &Value| names.iter().any(|name| value == name);
    match condition {
        Condition::Present(path) => object.pointer(path).is_some(),
        Condition::Absent(path) => object.pointer(path).is_none(),
        Condition::Equals(values) => {
            values.iter().all(|(path, value)| object.pointer(path.as_str()) == Some(value))
        }
        Condition::Container(name) => {
            containers(object).is_some_and(|(_, containers)| has_name(containers, name))
        }
        Condition::Entry(entry) => object
            .pointer(entry.list.as_str())
            .and_then(Value::as_array)
            .is_some_and(|entries| has_name(entries, &entry.name)),
        Condition::Label(entries) => has_metadata(request, "labels", entries),
        Condition::Annotation(entries) => has_metadata(request, "annotations", entries),
        Condition::Operations(operations) => operations.iter().any(|operation| {
            *operation == Operation::All
                || serde_json::to_value(operation).ok().as_ref() == Some(&request["operation"])
        }),
        Condition::Namespaces(names) => among(names, &request["namespace"]),
        Condition::Resources(names) => {
            let resource = request.pointer("/resource/resource").and_then(Value::as_str).unwrap_or_default();
            let subresource = request["subResource"].as_str().filter(|subresource| !subresource.is_empty());
            let full = subresource.map_or_else(|| resource.to_owned(), |sub| format!("{resource}/{sub}"));
            names.contains(&full)
        }
        Condition::ApiVersions(versions) => {
            let kind = &request["kind"];
            let part = |name: &str| kind[name].as_str().unwrap_or_default();
            let group = Some(part("group")).filter(|group| !group.is_empty());
            let version = part("version");
            versions.contains(&group.map_or_else(|| version.to_owned(), |group| format!("{group}/{version}")))
        }
        Condition::InReview(path) => review.pointer(path).is_some(),
        Condition::ReviewVersion(version) => {
            review["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()) == Some(version)
        }
        Condition::Users(names) => {
            request.pointer("/userInfo/username").is_some_and(|user| among(names, user))
        }
        Condition::DryRun(expected) => (request["dryRun"] == true) == *expected,
        Condition::Call(number) => at.nth + 1 == *number,
        Condition::Every(number) => (at.nth + 1).is_multiple_of(number.get()),
        Condition::Round(Round::First) => at.seen == 0,
        Condition::Round(Round::Second) => at.seen > 0,
        Condition::All(conditions) => conditions.iter().all(|condition| holds(condition, at, review)),
        Condition::Any(conditions) => conditions.iter().any(|condition| holds(condition, at, review)),
        Condition::Not(condition) => !holds(condition, at, review),
    }
}

pub(super) fn has_name(entries: &[Value], name: &str) -> bool {
    entries.iter().any(|entry| entry["name"] == name)
}

fn has_metadata(request: &Value, field: &str, expected: &BTreeMap<String, String>) -> bool {
    let object = Some(&request["object"]).filter(|object| !object.is_null()).unwrap_or(&request["oldObject"]);
    let entries = object.get("metadata").and_then(|metadata| metadata.get(field));
    expected
        .iter()
        .all(|(key, value)| entries.and_then(|entries| entries.get(key)).is_some_and(|it| it == value))
}
