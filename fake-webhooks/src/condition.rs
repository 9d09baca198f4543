//! The conditions of `when`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mutation::containers;
use crate::{Circumstances, Operation, Pointer};

/// A condition on a call.
///
/// `present`, `absent`, `equals`, `container`, and `entry` use `request.object`. `label` and `annotation` use
/// `request.object` or, if it is null as in a deletion, `request.oldObject`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Condition {
    /// `present: POINTER`: the field exists.
    Present(String),
    /// `absent: POINTER`: the field does not exist.
    Absent(String),
    /// `equals: {POINTER: VALUE}`: the fields have exactly these values.
    Equals(BTreeMap<Pointer, Value>),
    /// `container: NAME`: the object has a container with this name.
    Container(String),
    /// `entry: {list: POINTER, name: NAME}`: the list has an entry with this name.
    Entry(ListEntry),
    /// `label: {KEY: VALUE}`: the object has these labels.
    Label(BTreeMap<String, String>),
    /// `annotation: {KEY: VALUE}`: the object has these annotations.
    Annotation(BTreeMap<String, String>),
    /// `operations: [CREATE]`: the operation is one of these.
    Operations(Vec<Operation>),
    /// `namespaces: [NAME]`: the namespace of the object is one of these.
    Namespaces(Vec<String>),
    /// `resources: [pods, pods/exec]`: the resource of the request is one of these.
    Resources(Vec<String>),
    /// `api-versions: [apps/v1]`: `request.kind` has one of these versions.
    ApiVersions(Vec<String>),
    /// `in-review: /request/options/dryRun`: the field exists in the review.
    InReview(String),
    /// `review-version: v1beta1`: the review has this version.
    ReviewVersion(String),
    /// `users: [NAME]`: the request is from one of these users.
    Users(Vec<String>),
    /// `dry-run: true`: the request is a dry run; `false`: it is not.
    DryRun(bool),
    /// `call: 3`: this is the third call.
    Call(u64),
    /// `every: 5`: this is the fifth call, the tenth call, and so on.
    Every(std::num::NonZeroU64),
    /// `round: second`: the fake was called before for this object and operation, as in a reinvocation; `first`: it was
    /// not. The fake remembers the objects because the review does not contain the round.
    Round(Round),
    /// `all: [CONDITION]`: all conditions are true.
    All(Vec<Condition>),
    /// `any: [CONDITION]`: at least one condition is true.
    Any(Vec<Condition>),
    /// `not: CONDITION`: the condition is false.
    Not(Box<Condition>),
}

/// An entry in a list of named entries.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListEntry {
    /// A JSON pointer to the list.
    pub list: Pointer,
    /// The `name` of the entry.
    pub name: String,
}

/// Whether the fake was called before for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Round {
    /// The first call for the object.
    First,
    /// A later call for the object.
    Second,
}

/// Returns whether the condition is true.
pub(crate) fn holds(condition: &Condition, at: &Circumstances, review: &Value) -> bool {
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

pub(crate) fn has_name(entries: &[Value], name: &str) -> bool {
    entries.iter().any(|entry| entry["name"] == name)
}

fn has_metadata(request: &Value, field: &str, expected: &BTreeMap<String, String>) -> bool {
    let object = Some(&request["object"]).filter(|object| !object.is_null()).unwrap_or(&request["oldObject"]);
    let entries = object.get("metadata").and_then(|metadata| metadata.get(field));
    expected
        .iter()
        .all(|(key, value)| entries.and_then(|entries| entries.get(key)).is_some_and(|it| it == value))
}
