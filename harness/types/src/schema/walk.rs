//! A step by step way down the Go type of an object, for whoever looks at the values in it.

use super::METADATA;
use super::table::{Field, Form, Kind, ListType, MESSAGES, Message, Shape};
use crate::group_version::GroupVersionKind;

/// What Go reads a value into.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// JSON that the server does not look into, or what is dropped.
    Free,
    /// `apiVersion` or `kind`.
    ApiVersionOrKind,
    /// An object as a whole.
    Object(&'static Message),
    /// The field of a struct: all of its list or map, or what its pointer points to.
    Field(&'static Field),
    /// An item of the field's list, or an entry of its map.
    Item(&'static Field),
}

impl Type {
    /// That of the objects of a kind. Of a custom resource nothing but the metadata has a Go type.
    pub fn of_kind(kind: &GroupVersionKind) -> Self {
        MESSAGES.of_kind(kind).map_or(Self::Free, |id| Self::Object(MESSAGES.get(id)))
    }

    /// That of the metadata of every object.
    pub fn of_metadata() -> Self {
        MESSAGES.named(METADATA).map_or(Self::Free, |id| Self::Object(MESSAGES.get(id)))
    }

    /// The message of a struct.
    pub(crate) fn message(self) -> Option<&'static Message> {
        match self {
            Self::Object(message) => Some(message),
            Self::Field(Field { shape: Shape::Plain | Shape::Optional, kind: Kind::Message(id), .. })
            | Self::Item(Field { kind: Kind::Message(id), .. }) => Some(MESSAGES.get(*id)),
            Self::Free | Self::ApiVersionOrKind | Self::Field(_) | Self::Item(_) => None,
        }
    }

    /// The member `name` of a struct, or the entry of a map; [`Self::Free`] if there is none.
    #[must_use]
    pub fn member(self, name: &str) -> Self {
        match (self.message(), self) {
            (Some(message), _) if message.form == Form::Object => of_member(message, name),
            (Some(message), _) => {
                let object = message.fields.iter().find(|field| field.shape != Shape::List);
                object.map_or(Self::Free, |field| Self::Field(field).member(name))
            }
            (None, Self::Field(field)) if field.shape == Shape::Map => Self::Item(field),
            (None, _) => Self::Free,
        }
    }

    /// Whether server-side apply takes an object for one value.
    pub fn is_atomic(self) -> bool {
        let by_field = match self {
            Self::Field(field) => field.is_atomic,
            Self::Free | Self::ApiVersionOrKind | Self::Object(_) | Self::Item(_) => None,
        };
        by_field.unwrap_or_else(|| self.message().is_some_and(|message| message.is_atomic))
    }

    /// What tells the items of a list apart to server-side apply: the members with these names, without any their values;
    /// none if the list is one value.
    pub fn keys(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Field(Field { list: ListType::Map(keys), .. }) => Some(keys),
            Self::Field(Field { list: ListType::Set, .. }) => Some(&[]),
            Self::Free | Self::ApiVersionOrKind | Self::Object(_) | Self::Field(_) | Self::Item(_) => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn item(self) -> Self {
        match (self.message(), self) {
            (Some(message), _) if message.form == Form::Value => {
                let list = message.fields.iter().find(|field| field.shape == Shape::List);
                list.map_or(Self::Free, Self::Item)
            }
            (None, Self::Field(field)) if field.shape == Shape::List => Self::Item(field),
            (_, _) => Self::Free,
        }
    }
}

/// Of a struct the fields of embedded ones are members, too.
fn of_member(message: &'static Message, name: &str) -> Type {
    match message.member(name) {
        Some(field) => Type::Field(field),
        None if message.is_kind && is_type_meta(name) => Type::ApiVersionOrKind,
        None => Type::Free,
    }
}

pub(super) fn is_type_meta(name: &str) -> bool {
    ["apiVersion", "kind"].contains(&name)
}

impl Message {
    /// The field that Go reads a member into: one of its own, or of an embedded struct.
    pub(crate) fn member(&'static self, name: &str) -> Option<&'static Field> {
        let own = self.fields.iter().find(|field| field.name == name && !name.is_empty());
        own.or_else(|| self.embedded().find_map(|(_, embedded)| embedded.member(name)))
    }

    /// The embedded structs, with the fields that they are.
    pub(super) fn embedded(&self) -> impl Iterator<Item = (&Field, &'static Self)> {
        self.fields.iter().filter(|field| field.name.is_empty()).filter_map(|field| match field.kind {
            Kind::Message(id) => Some((field, MESSAGES.get(id))),
            Kind::String
            | Kind::Bool
            | Kind::Int32
            | Kind::Int64
            | Kind::Double
            | Kind::Bytes
            | Kind::Json
            | Kind::Quantity
            | Kind::Time
            | Kind::MicroTime
            | Kind::IntOrString => None,
        })
    }
}
