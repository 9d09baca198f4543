//! The table of the types of the API: what upstream's Go types say of themselves, the protobuf numbers of their fields
//! beside the JSON names.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use crate::group_version::GroupVersionKind;

/// The messages of the imitated version, as `tools/messages.sh` wrote them down.
const TABLE: &str = include_str!("messages.json");

/// All messages that an object of the server can have in it.
pub static MESSAGES: LazyLock<Messages> =
    LazyLock::new(|| match serde_json::from_str::<Table<'static>>(TABLE) {
        Ok(table) => Messages::new(table),
        Err(error) => unreachable!("messages.json is part of the program: {error}"),
    });

/// Which message is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId(usize);

/// Messages by number, and kinds by group, version and kind.
#[derive(Debug)]
pub struct Messages {
    all: Vec<Message>,
    kinds: HashMap<(&'static str, &'static str, &'static str), MessageId>,
    names: HashMap<&'static str, MessageId>,
}

/// One message: what its numbers mean.
#[derive(Debug)]
pub struct Message {
    /// The name of the Go type, without its package.
    pub name: &'static str,
    /// With its package, as in `v1.ObjectMeta`.
    pub(crate) go: &'static str,
    /// How its JSON looks.
    pub form: Form,
    /// Whether its objects say of which kind they are, in another object too.
    pub(crate) is_kind: bool,
    /// Whether server-side apply takes it for one value.
    pub(crate) is_atomic: bool,
    /// Its fields, in the order of the Go type.
    pub fields: Vec<Field>,
    /// The result of [`Self::members`], computed on first use.
    members: OnceLock<Box<[&'static Field]>>,
    /// The result of [`Self::zero`], computed on first use.
    zero: OnceLock<Value>,
}

impl Message {
    /// The fields that JSON may have as members, those of embedded structs among them, by name.
    pub fn members(&'static self) -> &'static [&'static Field] {
        self.members.get_or_init(|| {
            let mut members: Vec<&Field> =
                self.fields.iter().filter(|field| !field.name.is_empty()).collect();
            members.extend(self.embedded().flat_map(|(_, embedded)| embedded.members()));
            // The sort is stable: of two with one name the outer one is the first.
            members.sort_by_key(|field| field.name);
            members.dedup_by_key(|field| field.name);
            members.into()
        })
    }

    /// The field that Go reads a member into: one of its own, or of an embedded struct.
    pub fn member(&'static self, name: &str) -> Option<&'static Field> {
        let members = self.members();
        let place = members.binary_search_by_key(&name, |field| field.name).ok()?;
        members.get(place).copied()
    }

    /// What Go writes for a value of this type that was never set.
    pub(super) fn zero(&'static self) -> &'static Value {
        self.zero.get_or_init(|| super::zero_of(self))
    }
}

/// What a message is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An object with the fields as members.
    Object,
    /// The first field that is there: `RawExtension`, `JSONSchemaPropsOrBool`.
    Value,
}

/// One field of a [`Message`].
#[derive(Debug)]
pub struct Field {
    /// The number in protobuf.
    pub number: i32,
    /// The JSON name; empty if the members of the field's message are members of this one.
    pub name: &'static str,
    /// Whether it is a value, a list or a map.
    pub shape: Shape,
    /// JSON has it even if it is zero.
    pub always: bool,
    /// What its values, or the items of it, are.
    pub kind: Kind,
    /// What a strategic merge patch does with it.
    pub patch: PatchStrategy,
    /// What a list is to server-side apply.
    pub(crate) list: ListType,
    /// Whether server-side apply takes a map or a struct for one value, where that is not left to its type.
    pub(crate) is_atomic: Option<bool>,
    /// What is there if nobody gives it, where that is not zero.
    pub default: Option<Value>,
    /// The Go type, where neither shape nor kind tells it: `v1.ResourceList`.
    go: Option<&'static str>,
    /// The Go type of a scalar that has one of its own, such as `v1.Protocol`.
    go_scalar: Option<&'static str>,
}

impl Field {
    /// The Go type, pointers aside: `[]v1.Container`.
    pub(crate) fn go_type(&self) -> Cow<'static, str> {
        let item = self.go_item_type();
        match (self.go, self.shape) {
            (Some(name), _) => name.into(),
            (None, Shape::List) => format!("[]{item}").into(),
            (None, Shape::Map) => format!("map[string]{item}").into(),
            (None, Shape::Plain | Shape::Optional) => item.into(),
        }
    }

    /// The Go type of an item of a list or a map; of other fields that of the field.
    pub(crate) fn go_item_type(&self) -> &'static str {
        self.go_scalar.unwrap_or_else(|| match self.kind {
            Kind::String => "string",
            Kind::Bool => "bool",
            Kind::Int32 => "int32",
            Kind::Int64 => "int64",
            Kind::Double => "float64",
            Kind::Bytes => "[]uint8",
            Kind::Json => "interface {}",
            Kind::Quantity => "resource.Quantity",
            Kind::Time => "v1.Time",
            Kind::MicroTime => "v1.MicroTime",
            Kind::IntOrString => "intstr.IntOrString",
            Kind::Message(id) => MESSAGES.get(id).go,
        })
    }
}

/// What tells the items of a list apart to server-side apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    /// Nothing: the list is one value.
    Atomic,
    /// Their values.
    Set,
    /// Their members of these names.
    Map(Vec<&'static str>),
}

/// How a strategic merge patch changes a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Members of an object one by one, a list as a whole.
    Usual,
    /// Also the items of a list: objects by the member with this name, and others, for which it is empty, by their values.
    Merge(String),
    /// As a whole.
    Replace,
}

/// How often a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Once, or zero.
    Plain,
    /// Perhaps, zero or not: a pointer.
    Optional,
    /// A list.
    List,
    /// A map whose keys are strings.
    Map,
}

/// What one value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `string`.
    String,
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `float64`.
    Double,
    /// Base64 in JSON.
    Bytes,
    /// Bytes that are JSON themselves.
    Json,
    /// `resource.Quantity`.
    Quantity,
    /// `metav1.Time`, in whole seconds.
    Time,
    /// `metav1.MicroTime`.
    MicroTime,
    /// `intstr.IntOrString`.
    IntOrString,
    /// A struct.
    Message(MessageId),
}

impl Messages {
    /// The message of an object.
    ///
    /// `DeleteOptions` are registered for every version. Source: apimachinery pkg/apis/meta/v1/register.go,
    /// `AddToGroupVersion`.
    pub fn of_kind(&self, kind: &GroupVersionKind) -> Option<MessageId> {
        let full = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
        let of_all = ("", "", "DeleteOptions");
        self.kinds.get(if kind.kind == "DeleteOptions" { &of_all } else { &full }).copied()
    }

    /// The message with this name in the table.
    pub(crate) fn named(&self, name: &str) -> Option<MessageId> {
        self.names.get(name).copied()
    }

    /// The type with this id.
    pub fn get(&self, MessageId(number): MessageId) -> &Message {
        match self.all.get(number) {
            Some(message) => message,
            None => unreachable!("the messages have no number {number}, although only they give numbers"),
        }
    }

    fn new(table: Table<'static>) -> Self {
        let objects = table.messages.into_iter().map(|message| (Form::Object, message));
        let values = table.values.into_iter().map(|message| (Form::Value, message));
        let entries: Vec<(Form, (&'static str, Vec<Entry<'static>>))> = objects.chain(values).collect();
        let numbers: HashMap<&'static str, MessageId> =
            entries.iter().enumerate().map(|(number, (_, (name, _)))| (*name, MessageId(number))).collect();
        let kind_names: HashSet<&str> = table.kinds.values().copied().collect();
        let atomic: HashSet<&str> = table.atomic.into_iter().collect();
        let all = entries.into_iter().map(|(form, (name, fields))| Message {
            is_kind: kind_names.contains(name),
            is_atomic: atomic.contains(name),
            name: name.rsplit('.').next().unwrap_or_default(),
            go: name.rsplit('/').next().unwrap_or_default(),
            form,
            fields: fields.into_iter().map(|entry| field(entry, &numbers)).collect(),
            members: OnceLock::new(),
            zero: OnceLock::new(),
        });
        let all = all.collect();
        let kinds =
            table.kinds.into_iter().map(|(kind, message)| (in_parts(kind), number(message, &numbers)));
        Self { all, kinds: kinds.collect(), names: numbers.clone() }
    }

    /// The ids of all types.
    pub fn ids(&self) -> impl Iterator<Item = MessageId> {
        (0..self.all.len()).map(MessageId)
    }
}

#[derive(Deserialize)]
struct Table<'a> {
    #[serde(borrow)]
    kinds: BTreeMap<&'a str, &'a str>,
    #[serde(borrow)]
    atomic: Vec<&'a str>,
    #[serde(borrow)]
    messages: BTreeMap<&'a str, Vec<Entry<'a>>>,
    #[serde(borrow)]
    values: BTreeMap<&'a str, Vec<Entry<'a>>>,
}

/// Number, JSON name, type, and what most fields do not have.
#[derive(Deserialize)]
struct Entry<'a>(i32, &'a str, &'a str, #[serde(borrow, default)] Options<'a>);

/// As `tools/messages.go` describes them. Whether OpenAPI requires a field is there, too, and read by nobody yet.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Options<'a> {
    #[serde(borrow)]
    go: Option<&'a str>,
    patch: &'a str,
    list: &'a str,
    map: &'a str,
    default: Option<Value>,
}

/// Of `apps/v1 Deployment`, of `v1 Pod`, and of a kind without a version.
fn in_parts(text: &'static str) -> (&'static str, &'static str, &'static str) {
    let (api_version, kind) = text.split_once(' ').unwrap_or(("", text));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    (group, version, kind)
}

fn number(name: &str, numbers: &HashMap<&'static str, MessageId>) -> MessageId {
    match numbers.get(name) {
        Some(number) => *number,
        None => unreachable!("messages.json names {name} and does not have it"),
    }
}

fn field(
    Entry(place, name, text, options): Entry<'static>,
    numbers: &HashMap<&'static str, MessageId>,
) -> Field {
    let (always, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let shapes = [("[]", Shape::List), ("{}", Shape::Map), ("?", Shape::Optional), ("", Shape::Plain)];
    let found = shapes.into_iter().find_map(|(mark, shape)| Some((shape, text.strip_prefix(mark)?)));
    let (shape, base) = found.unwrap_or((Shape::Plain, text));
    let (base, go_scalar) = base.split_once('=').map_or((base, None), |(base, go)| (base, Some(go)));
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
    let (strategy, key) = options.patch.split_once(':').unwrap_or((options.patch, ""));
    let patch = match strategy {
        "merge" => PatchStrategy::Merge(key.to_owned()),
        "replace" => PatchStrategy::Replace,
        _ => PatchStrategy::Usual,
    };
    let list = match options.list.split_once(':') {
        Some((_, keys)) => ListType::Map(keys.split(',').collect()),
        None if options.list == "set" => ListType::Set,
        None => ListType::Atomic,
    };
    let is_atomic = (!options.map.is_empty()).then_some(options.map == "atomic");
    let Options { go, default, .. } = options;
    Field { number: place, name, shape, always, kind, patch, list, is_atomic, default, go, go_scalar }
}
