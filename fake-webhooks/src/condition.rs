//! What `when` asks of a call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mutation::containers;
use crate::{Circumstances, Operation, Pointer};

/// What is asked of a call.
///
/// `present`, `absent`, `equals`, `container` and `entry` look at `request.object`; `label` and `annotation` at that or,
/// where it is null as in a deletion, at `request.oldObject`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Condition {
    /// `present: POINTER`: something stands there.
    Present(String),
    /// `absent: POINTER`: nothing stands there.
    Absent(String),
    /// `equals: {POINTER: VALUE}`: exactly these stand there.
    Equals(BTreeMap<Pointer, Value>),
    /// `container: NAME`: it has a container of this name.
    Container(String),
    /// `entry: {list: POINTER, name: NAME}`: the list has an entry of this name.
    Entry(ListEntry),
    /// `label: {KEY: VALUE}`: it has these labels.
    Label(BTreeMap<String, String>),
    /// `annotation: {KEY: VALUE}`: it has these annotations.
    Annotation(BTreeMap<String, String>),
    /// `operations: [CREATE]`: it is one of these.
    Operations(Vec<Operation>),
    /// `namespaces: [NAME]`: it is in one of these.
    Namespaces(Vec<String>),
    /// `resources: [pods, pods/exec]`: it is one of these.
    Resources(Vec<String>),
    /// `api-versions: [apps/v1]`: `request.kind` is of one of these.
    ApiVersions(Vec<String>),
    /// `in-review: /request/options/dryRun`: something stands there in the review, whatever the object is.
    InReview(String),
    /// `review-version: v1beta1`: the review is of this version.
    ReviewVersion(String),
    /// `users: [NAME]`: one of these asks.
    Users(Vec<String>),
    /// `dry-run: true`: it is a dry run, or with `false` it is none.
    DryRun(bool),
    /// `call: 3`: it is the third call.
    Call(u64),
    /// `every: 5`: it is the fifth call, the tenth and so on.
    Every(std::num::NonZeroU64),
    /// `round: second`: the fake was called before for this object and this operation, as in the round in which webhooks
    /// are called again; or with `first` it was not. A review does not tell: the fake remembers the objects.
    Round(Round),
    /// `all: [CONDITION]`: all of them hold.
    All(Vec<Condition>),
    /// `any: [CONDITION]`: one of them holds.
    Any(Vec<Condition>),
    /// `not: CONDITION`: it does not hold.
    Not(Box<Condition>),
}

/// An entry of a list that has names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListEntry {
    /// Where the list is.
    pub list: Pointer,
    /// What the entry's `name` is.
    pub name: String,
}

/// Whether the fake was called before for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Round {
    /// It was not.
    First,
    /// It was.
    Second,
}

/// Whether the call is as the condition wants it.
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
