//! The table of the types of the API: what upstream's Go types say of themselves, the protobuf numbers of their fields
//! beside the JSON names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::attributes::GroupVersionKind;

/// The messages of the imitated version, as `tools/messages.sh` wrote them down.
const TABLE: &str = include_str!("messages.json");

/// All messages that an object of the server can have in it.
pub(crate) static MESSAGES: LazyLock<Messages> =
    LazyLock::new(|| match serde_json::from_str::<Table>(TABLE) {
        Ok(table) => Messages::new(table),
        Err(error) => unreachable!("messages.json is part of the program: {error}"),
    });

/// Which message is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageId(usize);

/// Messages by number, and kinds by `apiVersion kind`.
#[derive(Debug)]
pub(crate) struct Messages {
    all: Vec<Message>,
    kinds: HashMap<String, MessageId>,
    names: HashMap<String, MessageId>,
}

/// One message: what its numbers mean.
#[derive(Debug)]
pub(crate) struct Message {
    /// The name of the Go type.
    pub(crate) name: String,
    pub(crate) form: Form,
    /// Whether its objects say of which kind they are, in another object too.
    pub(crate) is_kind: bool,
    pub(crate) fields: Vec<Field>,
}

/// What a message is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An object with the fields as members.
    Object,
    /// The first field that is there: `RawExtension`, `JSONSchemaPropsOrBool`.
    Value,
}

/// One field of a [`Message`].
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: i32,
    /// The JSON name; empty if the members of the field's message are members of this one.
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// JSON has it even if it is zero.
    pub(crate) always: bool,
    pub(crate) kind: Kind,
    pub(crate) patch: PatchStrategy,
}

/// How a strategic merge patch changes a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatchStrategy {
    /// Members of an object one by one, a list as a whole.
    Usual,
    /// Also the items of a list: objects by the member with this name, and others, for which it is empty, by their values.
    Merge(String),
    /// As a whole.
    Replace,
}

/// How often a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Once, or zero.
    Plain,
    /// Perhaps, zero or not: a pointer.
    Optional,
    List,
    Map,
}

/// What one value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    /// Base64 in JSON.
    Bytes,
    /// Bytes that are JSON themselves.
    Json,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    Message(MessageId),
}

impl Messages {
    /// The message of an object.
    ///
    /// `DeleteOptions` are registered for every version. Source: apimachinery pkg/apis/meta/v1/register.go,
    /// `AddToGroupVersion`.
    pub(crate) fn of_kind(&self, kind: &GroupVersionKind) -> Option<MessageId> {
        let full = format!("{} {}", kind.api_version(), kind.kind);
        self.kinds.get(if kind.kind == "DeleteOptions" { &kind.kind } else { &full }).copied()
    }

    /// The message with this name in the table.
    pub(crate) fn named(&self, name: &str) -> Option<MessageId> {
        self.names.get(name).copied()
    }

    pub(crate) fn get(&self, MessageId(number): MessageId) -> &Message {
        match self.all.get(number) {
            Some(message) => message,
            None => unreachable!("the messages have no number {number}, although only they give numbers"),
        }
    }

    fn new(table: Table) -> Self {
        let objects = table.messages.into_iter().map(|message| (Form::Object, message));
        let values = table.values.into_iter().map(|message| (Form::Value, message));
        let entries: Vec<(Form, (String, Vec<Entry>))> = objects.chain(values).collect();
        let numbers: HashMap<String, MessageId> = entries
            .iter()
            .enumerate()
            .map(|(number, (_, (name, _)))| (name.clone(), MessageId(number)))
            .collect();
        let kind_names: HashSet<&String> = table.kinds.values().collect();
        let all = entries.into_iter().map(|(form, (name, fields))| Message {
            is_kind: kind_names.contains(&name),
            name: name.rsplit('.').next().unwrap_or_default().to_owned(),
            form,
            fields: fields.into_iter().map(|entry| field(entry, &numbers)).collect(),
        });
        let all = all.collect();
        let kinds = table.kinds.into_iter().map(|(kind, message)| (kind, number(&message, &numbers)));
        Self { all, kinds: kinds.collect(), names: numbers.clone() }
    }

    #[cfg(test)]
    pub(crate) fn ids(&self) -> impl Iterator<Item = MessageId> {
        (0..self.all.len()).map(MessageId)
    }
}

#[derive(Deserialize)]
struct Table {
    kinds: BTreeMap<String, String>,
    messages: BTreeMap<String, Vec<Entry>>,
    values: BTreeMap<String, Vec<Entry>>,
}

/// Number, JSON name, type, strategy of patches.
#[derive(Deserialize)]
struct Entry(i32, String, String, #[serde(default)] String);

fn number(name: &str, numbers: &HashMap<String, MessageId>) -> MessageId {
    match numbers.get(name) {
        Some(number) => *number,
        None => unreachable!("messages.json names {name} and does not have it"),
    }
}

fn field(Entry(place, name, text, patch): Entry, numbers: &HashMap<String, MessageId>) -> Field {
    let (always, text) = text.strip_prefix('!').map_or((false, text.as_str()), |rest| (true, rest));
    let shapes = [("[]", Shape::List), ("{}", Shape::Map), ("?", Shape::Optional), ("", Shape::Plain)];
    let found = shapes.into_iter().find_map(|(mark, shape)| Some((shape, text.strip_prefix(mark)?)));
    let (shape, base) = found.unwrap_or((Shape::Plain, text));
    let kind = match base {
        "string" => Kind::String,
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "json" => Kind::Json,
        "quantity" => Kind::Quantity,
        "time" => Kind::Time,
        "micro-time" => Kind::MicroTime,
        "int-or-string" => Kind::IntOrString,
        message => Kind::Message(number(message, numbers)),
    };
    let (strategy, key) = patch.split_once(':').unwrap_or((&patch, ""));
    let patch = match strategy {
        "merge" => PatchStrategy::Merge(key.to_owned()),
        "replace" => PatchStrategy::Replace,
        _ => PatchStrategy::Usual,
    };
    Field { number: place, name, shape, always, kind, patch }
}
