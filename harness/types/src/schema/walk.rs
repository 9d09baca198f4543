//! Navigates the Go type of an object step by step, for code that inspects the object's values.

use serde_json::Value;

use super::METADATA;
use super::table::{Field, Form, Kind, ListType, MESSAGES, Message, Shape};
use crate::group_version::GroupVersionKind;
use crate::path::{self, Segment};
use crate::quoting::encode;

/// The Go type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// Arbitrary JSON, or the value of an unknown field; unknown fields are dropped.
    Free,
    /// The field `apiVersion` or `kind`.
    ApiVersionOrKind,
    /// A whole object.
    Object(&'static Message),
    /// The whole value of a struct's field, such as its list or map.
    Field(&'static Field),
    /// An item of a field's list, or an entry of its map.
    Item(&'static Field),
}

impl Type {
    /// Returns the type for objects of `kind`; [`Self::Free`] if the kind does not have a Go type.
    pub fn for_kind(kind: &GroupVersionKind) -> Self {
        MESSAGES.of_kind(kind).map_or(Self::Free, |id| Self::Object(MESSAGES.get(id)))
    }

    /// Returns the type with this name, such as `resource/v1.DeviceClaim`; [`Self::Free`] if it does not exist.
    pub fn for_name(name: &str) -> Self {
        MESSAGES.named(name).map_or(Self::Free, |id| Self::Object(MESSAGES.get(id)))
    }

    /// Encodes a value as Go does, with the members of structs in the order in which their types declare them.
    ///
    /// [`super::normalize`] must have normalized the value.
    ///
    /// Source: Go encoding/json, `Marshal`.
    pub fn in_order(self, value: &Value) -> String {
        match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.item().in_order(item)).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(members) => {
                let known = self.names().into_iter().filter(|name| members.contains_key(*name));
                let mut names: Vec<&str> = known.collect();
                let further = members.keys().map(String::as_str);
                let further: Vec<&str> = further.filter(|name| !names.contains(name)).collect();
                names.extend(further);
                let members = names.into_iter().filter_map(|name| Some((name, members.get(name)?)));
                let members: Vec<String> = members
                    .map(|(name, found)| {
                        format!("{}:{}", encode(&Value::from(name)), self.member(name).in_order(found))
                    })
                    .collect();
                format!("{{{}}}", members.join(","))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => encode(value),
        }
    }

    /// Encodes a patched value as kube-apiserver quotes it in an error.
    ///
    /// The members of an object are sorted if the patch changes one of them; the members of every other struct are in
    /// the order in which its type declares them. `changes` is the merge patch or, for a JSON patch, an object with the
    /// same members that the patch changes.
    ///
    /// Source: gopkg.in/evanphx/json-patch.v4 patch.go, `partialDoc` and `lazyNode`.
    pub fn patched_in_order(self, value: &Value, changes: &Value) -> String {
        let Value::Object(changes) = changes else { return self.in_order(value) };
        let nested = |name: &str, value: &Value, of: Self| match changes.get(name) {
            Some(changes @ Value::Object(_)) => of.patched_in_order(value, changes),
            Some(_) => encode(value),
            None => of.in_order(value),
        };
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| nested(&index.to_string(), item, self.item()));
                format!("[{}]", items.collect::<Vec<_>>().join(","))
            }
            Value::Object(members) => {
                // The members are sorted by name, as Go sorts the keys of a map.
                let members = members.iter().map(|(name, value)| {
                    let name_text = encode(&Value::from(name.as_str()));
                    format!("{name_text}:{}", nested(name, value, self.member(name)))
                });
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => encode(value),
        }
    }

    /// Returns the type of an object's `metadata`.
    pub fn for_metadata() -> Self {
        MESSAGES.named(METADATA).map_or(Self::Free, |id| Self::Object(MESSAGES.get(id)))
    }

    /// Returns the message that describes a struct; `None` for other types.
    pub(crate) fn message(self) -> Option<&'static Message> {
        match self {
            Self::Object(message) => Some(message),
            Self::Field(Field { shape: Shape::Plain | Shape::Optional, kind: Kind::Message(id), .. })
            | Self::Item(Field { kind: Kind::Message(id), .. }) => Some(MESSAGES.get(*id)),
            Self::Free | Self::ApiVersionOrKind | Self::Field(_) | Self::Item(_) => None,
        }
    }

    /// Returns the type of the member `name` of a struct or map; [`Self::Free`] if the struct does not have the member.
    #[must_use]
    pub fn member(self, name: &str) -> Self {
        match (self.message(), self) {
            (Some(message), _) if message.form == Form::Object => for_member(message, name),
            (Some(message), _) => {
                let object = message.fields.iter().find(|field| field.shape != Shape::List);
                object.map_or(Self::Free, |field| Self::Field(field).member(name))
            }
            (None, Self::Field(field)) if field.shape == Shape::Map => Self::Item(field),
            (None, _) => Self::Free,
        }
    }

    /// Returns the type of the value at `path`, such as `spec.containers[0]`; [`Self::Free`] if there is no such field.
    #[must_use]
    pub fn at(self, path: &str) -> Self {
        path::segments(path).fold(self, |of, segment| match segment {
            Segment::Member(name) => of.member(name),
            Segment::Item => of.item(),
        })
    }

    /// Returns the names of the members of a struct; an empty list for other types.
    pub fn names(self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if let Some(message) = self.message().filter(|message| message.form == Form::Object) {
            message.collect_names(&mut names);
        }
        names
    }

    /// Returns whether server-side apply treats a value of this type as a single value.
    pub fn is_atomic(self) -> bool {
        let by_field = match self {
            Self::Field(field) => field.is_atomic,
            Self::Free | Self::ApiVersionOrKind | Self::Object(_) | Self::Item(_) => None,
        };
        by_field.unwrap_or_else(|| self.message().is_some_and(|message| message.is_atomic))
    }

    /// Returns the members that identify list items for server-side apply.
    ///
    /// The result is empty if the items are identified by their values, and `None` if the list is a single value.
    pub fn keys(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Field(Field { list: ListType::Map(keys), .. }) => Some(keys),
            Self::Field(Field { list: ListType::Set, .. }) => Some(&[]),
            Self::Free | Self::ApiVersionOrKind | Self::Object(_) | Self::Field(_) | Self::Item(_) => None,
        }
    }

    /// Returns the type of the items of a list.
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

/// Returns the type of the member `name`. The member may belong to an embedded struct.
fn for_member(message: &'static Message, name: &str) -> Type {
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
    /// Collects the names of all members, including those of embedded structs, in the order in which the Go type
    /// declares them.
    fn collect_names(&'static self, names: &mut Vec<&'static str>) {
        for field in &self.fields {
            if let Kind::Message(id) = field.kind
                && field.name.is_empty()
            {
                MESSAGES.get(id).collect_names(names);
            } else {
                names.push(field.name);
            }
        }
    }

    /// Returns the embedded structs, each with its field.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_encoded_in_the_order_of_the_type() {
        let of = Type::for_name("resource/v1.DeviceRequest");
        let value = json!({"exactly": {"count": 1, "deviceClassName": "<c>"}, "name": "a"});
        let written = r#"{"name":"a","exactly":{"deviceClassName":"\u003cc\u003e","count":1}}"#;
        assert_eq!(of.in_order(&value), written);
        let embedded = Type::for_name("resource/v1.DeviceClaimConfiguration");
        let value = json!({"opaque": {"parameters": {"b": 1, "a": 2}, "driver": "d"}, "requests": ["x"]});
        let written = r#"{"requests":["x"],"opaque":{"driver":"d","parameters":{"a":2,"b":1}}}"#;
        assert_eq!(embedded.in_order(&value), written);
    }

    #[test]
    fn members_of_patched_objects_are_sorted() {
        let of = Type::for_name("resource/v1.DeviceRequest");
        let value = json!({"exactly": {"count": 1, "deviceClassName": "c"}, "name": "a"});
        let changed = |changes| of.patched_in_order(&value, &changes);
        let untouched = r#"{"exactly":{"deviceClassName":"c","count":1},"name":"a"}"#;
        assert_eq!(changed(json!({"name": "a"})), untouched);
        let opened = r#"{"exactly":{"count":1,"deviceClassName":"c"},"name":"a"}"#;
        assert_eq!(changed(json!({"exactly": {"count": 1}})), opened);
    }
}
