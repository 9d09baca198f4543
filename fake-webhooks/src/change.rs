//! What `mutate` can be told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Pointer, Repeat};

/// Parameters of `mutate`: changes that are made one after another, each to what the ones before left.
///
/// In the texts of their values `{uid}`, `{call}`, `{timestamp}`, `{random}`, `{random:SEED}`, `{operation}`,
/// `{namespace}`, `{name}`, `{user}` and `{/a/pointer}` stand for facts of the call and the object. An object that is
/// null, as in a deletion, is not changed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Vec<Change>", into = "Vec<Change>")]
pub struct Mutate(Vec<Change>);

/// One change of `mutate`. What would change nothing is not sent.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Change {
    /// `set: {POINTER: VALUE}`: these stand there. Parents that are missing are made.
    Set(BTreeMap<Pointer, Value>),
    /// `append: {path, value, repeat}`: a list has one entry more.
    Append(ListAppend),
    /// `remove: [POINTER]`: nothing stands there.
    Remove(Vec<Pointer>),
    /// `each-container: {list, value}`: a list of every container and init container has one entry more.
    EachContainer(EachContainer),
    /// `remove-containers: {except: [NAME]}`: containers that others made are gone.
    RemoveContainers(RemoveContainers),
    /// `replace-containers: {keep, add}`: the whole list of containers is another one.
    ReplaceContainers(ReplaceContainers),
    /// `reorder-lists: {fields: [NAME], order}`: lists have another order.
    ReorderLists(ReorderLists),
    /// `drop-unknown-fields: {known}`: what an old schema does not know is gone, as when an object is read into old types
    /// and written again.
    DropUnknownFields(DropUnknownFields),
    /// `in-any-order: {seed, changes}`: changes in an order that is drawn anew for each call.
    InAnyOrder(InAnyOrder),
}

/// Parameters of `append`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListAppend {
    /// Where the list is. One that is missing is made.
    pub path: Pointer,
    /// The new entry.
    pub value: Value,
    /// `never`: not if an entry of the same name, or an equal one, is there. `every-call`: also then.
    #[serde(default)]
    pub repeat: Repeat,
}

/// Parameters of `each-container`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EachContainer {
    /// The field of the container, such as `env` or `volumeMounts`.
    pub list: String,
    /// The new entry; not where one of the same name, or an equal one, is there.
    pub value: Value,
}

/// Parameters of `remove-containers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RemoveContainers {
    /// Names of containers and init containers that stay. The first container always stays.
    pub except: Vec<String>,
}

/// Parameters of `replace-containers`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplaceContainers {
    /// Which containers are in the new list too.
    pub keep: Keep,
    /// What comes behind them, unless a container of the same name is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<Value>,
}

/// Which containers are in the new list too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// `all`
    #[default]
    All,
    /// `first`: only the first, for the webhook does not know of others.
    First,
    /// `none`
    None,
}

/// Parameters of `reorder-lists`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReorderLists {
    /// How the fields are called whose lists have another order, wherever they stand.
    pub fields: Vec<String>,
    /// Which order.
    pub order: Order,
}

/// An order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// `reversed`: the last comes first, and the first again on the next call.
    #[default]
    Reversed,
    /// `sorted`: by name, or else by their JSON.
    Sorted,
}

impl Default for ReorderLists {
    fn default() -> Self {
        let fields =
            ["containers", "initContainers", "volumes", "env", "volumeMounts", "tolerations", "finalizers"];
        Self { fields: fields.map(str::to_owned).to_vec(), order: Order::default() }
    }
}

/// Parameters of `drop-unknown-fields`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DropUnknownFields {
    /// The fields that are known: a map has the known fields and what is known of each, a list of one map says what is
    /// known of each entry, and of anything else all is known. Unless given: config maps, pods and what has a template of
    /// pods, as they were in Kubernetes 1.15; other kinds stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Value>,
}

/// Parameters of `in-any-order`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InAnyOrder {
    /// The seed of the order.
    #[serde(default)]
    pub seed: u64,
    /// The changes.
    pub changes: Vec<Change>,
}

impl Mutate {
    /// The changes, in their order.
    pub fn changes(&self) -> &[Change] {
        &self.0
    }
}

impl TryFrom<Vec<Change>> for Mutate {
    type Error = &'static str;

    fn try_from(changes: Vec<Change>) -> Result<Self, &'static str> {
        if changes.is_empty() { Err("`mutate` needs at least one change") } else { Ok(Self(changes)) }
    }
}

impl From<Mutate> for Vec<Change> {
    fn from(mutate: Mutate) -> Self {
        mutate.0
    }
}
