//! Defines the parameters of `mutate`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Pointer, Repeat};

/// The parameters of `mutate`: changes that are made in order, each to the result of the previous changes.
///
/// Strings can contain the placeholders `{uid}`, `{call}`, `{timestamp}`, `{random}`, `{random:SEED}`, `{operation}`,
/// `{namespace}`, `{name}`, `{user}`, and `{/a/pointer}`. A null object, as in a deletion, is not changed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "ChangeList", into = "Vec<Change>")]
pub struct Mutate(Vec<Change>);

/// One change of `mutate`; changes without an effect are not sent.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Change {
    /// `set: {POINTER: VALUE}`: sets values and creates missing parents.
    Set(BTreeMap<Pointer, Value>),
    /// `append: {path, value, repeat}`: appends an entry to a list.
    Append(ListAppend),
    /// `remove: [POINTER]`: removes values.
    Remove(Vec<Pointer>),
    /// `each-container: {list, value}`: appends an entry to a list of every container and init container.
    EachContainer(EachContainer),
    /// `remove-containers: {except: [NAME]}`: removes the containers of other webhooks.
    RemoveContainers(RemoveContainers),
    /// `replace-containers: {keep, add}`: replaces the list of containers.
    ReplaceContainers(ReplaceContainers),
    /// `reorder-lists: {fields: [NAME], order}`: changes the order of lists.
    ReorderLists(ReorderLists),
    /// `drop-unknown-fields: {known}`: removes fields that an old schema does not have.
    ///
    /// A webhook that decodes and encodes the object with old types removes the same fields.
    DropUnknownFields(DropUnknownFields),
    /// `in-any-order: {seed, changes}`: makes changes in a random order on each call.
    InAnyOrder(InAnyOrder),
}

/// The parameters of `append`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListAppend {
    /// The list to append to. A missing list is created.
    pub path: Pointer,
    /// The entry to append.
    pub value: Value,
    /// Whether to append the entry even if the list contains an equal entry, or an entry with the same name.
    #[serde(default)]
    pub repeat: Repeat,
}

/// The parameters of `each-container`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EachContainer {
    /// The list field of the container, such as `env` or `volumeMounts`.
    pub list: String,
    /// The entry to append, unless the list contains an equal entry, or an entry with the same name.
    pub value: Value,
}

/// The parameters of `remove-containers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RemoveContainers {
    /// The names of the containers and init containers to keep; the first container is always kept.
    pub except: Vec<String>,
}

/// The parameters of `replace-containers`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplaceContainers {
    /// Which existing containers are kept.
    pub keep: Keep,
    /// The container to append, unless a container with the same name exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<Value>,
}

/// Which existing containers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// `all`: all containers are kept.
    #[default]
    All,
    /// `first`: only the first container is kept.
    First,
    /// `none`: no containers are kept.
    None,
}

/// The parameters of `reorder-lists`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReorderLists {
    /// The names of the list fields to reorder, at any depth.
    pub fields: Vec<String>,
    /// The order to apply to the lists.
    pub order: Order,
}

/// The new order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// `reversed`: reverses the list on each call.
    #[default]
    Reversed,
    /// `sorted`: sorts the entries by name, or by their JSON if they do not have a name.
    Sorted,
}

impl Default for ReorderLists {
    fn default() -> Self {
        let fields =
            ["containers", "initContainers", "volumes", "env", "volumeMounts", "tolerations", "finalizers"];
        Self { fields: fields.map(str::to_owned).to_vec(), order: Order::default() }
    }
}

/// The parameters of `drop-unknown-fields`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DropUnknownFields {
    /// The known fields, as a tree.
    ///
    /// A map lists the known fields, a list of one map applies to each entry, and any other value means that all fields
    /// are known. The default is the schema of Kubernetes 1.15 for `ConfigMap`s, Pods, and objects with a Pod template;
    /// objects of other kinds are not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Value>,
}

/// The parameters of `in-any-order`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InAnyOrder {
    /// The seed for the random order.
    #[serde(default)]
    pub seed: u64,
    /// The changes to make in random order.
    pub changes: Vec<Change>,
}

impl Mutate {
    /// Returns the changes, in the order in which the fakes file lists them.
    pub fn changes(&self) -> &[Change] {
        &self.0
    }
}

/// A list of changes. If the value has a different type, the error shows the expected form.
struct ChangeList(Vec<Change>);

impl<'de> Deserialize<'de> for ChangeList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Changes;

        impl<'de> Visitor<'de> for Changes {
            type Value = ChangeList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of changes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ChangeList, A::Error> {
                let mut changes = Vec::new();
                while let Some(change) = items.next_element()? {
                    changes.push(change);
                }
                Ok(ChangeList(changes))
            }

            fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<ChangeList, A::Error> {
                let message =
                    "`mutate` must be a list of changes, such as `[{set: {/metadata/labels/a: b}}]`";
                Err(A::Error::custom(message))
            }
        }

        deserializer.deserialize_any(Changes)
    }
}

impl TryFrom<ChangeList> for Mutate {
    type Error = &'static str;

    fn try_from(ChangeList(changes): ChangeList) -> Result<Self, &'static str> {
        if changes.is_empty() { Err("`mutate` needs at least one change") } else { Ok(Self(changes)) }
    }
}

impl From<Mutate> for Vec<Change> {
    fn from(mutate: Mutate) -> Self {
        mutate.0
    }
}
