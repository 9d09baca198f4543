//! Defines the conditions of `when`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Pointer;
use crate::admission_registration::Operation;

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
    /// `round: second`: the fake was called before for this object and operation; `first`: it was not.
    ///
    /// A reinvocation is such a second call. The fake remembers the objects because the review does not contain the
    /// round.
    Round(Round),
    /// `all: [CONDITION]`: all conditions are true.
    All(Vec<Condition>),
    /// `any: [CONDITION]`: at least one condition is true.
    Any(Vec<Condition>),
    /// `not: CONDITION`: the condition is false.
    Not(Box<Condition>),
}

/// A reference to an entry in a list of named entries.
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
