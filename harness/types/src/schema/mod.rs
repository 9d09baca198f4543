//! Normalizes objects of built-in kinds as the server's Go types do.
//!
//! The server decodes every built-in object into a struct and encodes it again: unknown fields are dropped, `null`
//! means absent, and fields without `omitempty` are always present.

mod apply;
mod decoding;
mod empty_fields;
pub mod strictness;
mod table;
mod unstructured;
mod walk;

use serde_json::{Map, Value};

pub use self::apply::applied;
pub use self::decoding::{is_metadata, metadata_type_error, type_error};
pub use self::empty_fields::EmptyFields;
pub use self::table::{Field, Form, Kind, MESSAGES, Message, MessageId, Messages, PatchStrategy, Shape};
pub use self::unstructured::from_unstructured;
pub use self::walk::Type;
use self::walk::is_type_meta;
use crate::go_base64;
use crate::go_time::{self, Layout};
use crate::group_version::GroupVersionKind;
use crate::path::Path;
use crate::quantity::Quantity;

/// Normalizes `object` as the Go type of `kind` does. Returns the paths of unknown fields.
///
/// An example of a path is `spec.containers[0].bogus`. Objects whose `kind` does not have a Go type, and values of the
/// wrong type, are unchanged.
///
/// Source: Go encoding/json, `Unmarshal` and `Marshal`; sigs.k8s.io/json, `UnmarshalStrict`.
/// Rule: MUT-11, REQ-11.
pub fn normalize(object: &mut Value, kind: &GroupVersionKind) -> Vec<String> {
    let Some(message) = MESSAGES.of_kind(kind) else { return Vec::new() };
    let mut normalizer = Normalizer::default();
    normalizer.message(MESSAGES.get(message), object, &Path::Root);
    normalizer.unknown
}

/// Returns whether a kind has a Go type.
pub fn is_known(kind: &GroupVersionKind) -> bool {
    MESSAGES.of_kind(kind).is_some()
}

/// Normalizes `object` by encoding its Go type to protobuf and decoding it, as storage in etcd does.
///
/// Empty lists and maps are dropped.
///
/// Source: `Marshal` and `Unmarshal` in api `*/*/generated.pb.go`.
/// Rule: KND-06.
pub fn normalize_stored(object: &mut Value) {
    let Some(message) = MESSAGES.of_kind(&GroupVersionKind::from_object(object)) else { return };
    let mut normalizer = Normalizer { encoding: Encoding::Protobuf, ..Normalizer::default() };
    normalizer.message(MESSAGES.get(message), object, &Path::Root);
}

/// Normalizes the metadata of an object as [`normalize`] does. For a custom resource, only the metadata has a Go type.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta, `Coerce`.
pub fn normalize_metadata(object: &mut Value) -> Vec<String> {
    let mut normalizer = Normalizer::default();
    if let (Some(message), Some(metadata)) = (MESSAGES.named(METADATA), object.get_mut("metadata")) {
        normalizer.message(MESSAGES.get(message), metadata, &Path::Root.member("metadata"));
    }
    normalizer.unknown
}

/// Normalizes the numbers of a custom resource as Go does.
///
/// Numbers that are not signed 64-bit integers are floats. A float with a zero fraction is written without it.
///
/// Source: sigs.k8s.io/json, `UnmarshalCaseSensitivePreserveInts`; Go encoding/json/encode.go, `floatEncoder`.
/// Rule: REQ-10.
pub fn normalize_numbers(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(normalize_numbers),
        Value::Array(items) => items.iter_mut().for_each(normalize_numbers),
        Value::Number(number) if !number.is_i64() => {
            // The shortest digits that represent this float, padded with zeros.
            let text = number.as_f64().map(|float| float.to_string()).unwrap_or_default();
            let integer = text.parse::<i64>().ok().map(Value::from);
            if let Some(integer) = integer.or_else(|| text.parse::<u64>().ok().map(Value::from)) {
                *value = integer;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Calls `change` with the members of every struct in `object`, inner structs first.
///
/// Returns whether `kind` has a Go type.
///
/// Maps, arbitrary JSON, metadata, and values of the wrong type are skipped.
pub fn for_each_struct(
    object: &mut Value,
    kind: &GroupVersionKind,
    change: &mut dyn FnMut(&mut Map<String, Value>),
) -> bool {
    let message = MESSAGES.of_kind(kind);
    if let Some(message) = message {
        structs(message, object, change);
    }
    message.is_some()
}

fn structs(id: MessageId, value: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    if MESSAGES.named(METADATA) == Some(id) {
        return;
    }
    let message = MESSAGES.get(id);
    if message.form == Form::Value {
        if let Some(field) = form_of(message, value) {
            structs_of(field, value, change);
        }
        return;
    }
    let Some(members) = value.as_object_mut() else { return };
    for (name, value) in members.iter_mut() {
        if let Some(field) = message.member(name) {
            structs_of(field, value, change);
        }
    }
    change(members);
}

fn structs_of(field: &Field, value: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Kind::Message(id) = field.kind else { return };
    match (field.shape, value) {
        (Shape::List, Value::Array(items)) => items.iter_mut().for_each(|item| structs(id, item, change)),
        (Shape::Map, Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| structs(id, entry, change));
        }
        (Shape::List | Shape::Map, _) => {}
        (Shape::Plain | Shape::Optional, value) => structs(id, value, change),
    }
}

/// Returns the field that represents `value`, an object or a list, in a message with several JSON forms.
fn form_of<'a>(message: &'a Message, value: &Value) -> Option<&'a Field> {
    let is_list = value.is_array();
    let fits = |field: &&Field| {
        (field.shape == Shape::List) == is_list && (is_list || matches!(field.kind, Kind::Message(_)))
    };
    message.fields.iter().find(fits).filter(|_| is_list || value.is_object())
}

/// The maximum number of unknown fields to report.
///
/// Source: sigs.k8s.io/json `internal/golang/encoding/json/kubernetes_patch.go`, `saveStrictError`.
const MAX_UNKNOWN: usize = 100;

const METADATA: &str = "meta/v1.ObjectMeta";

#[derive(Debug, Default)]
struct Normalizer {
    encoding: Encoding,
    unknown: Vec<String>,
}

/// The encoding that [`Normalizer`] encodes to and decodes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Encoding {
    #[default]
    Json,
    /// Protobuf drops empty lists and maps, and the `apiVersion` and `kind` of nested objects.
    Protobuf,
}

impl Normalizer {
    fn object(&mut self, message: &'static Message, members: &mut Map<String, Value>, path: &Path<'_>) {
        let is_root = path.is_empty();
        members.retain(|name, value| {
            if message.is_kind && is_type_meta(name) {
                let is_given = !value.is_null() && value != "";
                return is_root || (self.encoding == Encoding::Json && is_given);
            }
            let Some(field) = message.member(name) else {
                if self.unknown.len() < MAX_UNKNOWN {
                    self.unknown.push(path.member(name).to_string());
                }
                return false;
            };
            self.is_shown(field, value, &path.member(name))
        });
        for field in message.members().iter().filter(|field| field.always) {
            if !members.contains_key(field.name) {
                let zero = if field.shape == Shape::Plain { zero(field.kind) } else { Value::Null };
                members.insert(field.name.to_owned(), zero);
            }
        }
    }

    /// Normalizes the value of a field and returns whether Go encodes that field.
    fn is_shown(&mut self, field: &Field, value: &mut Value, path: &Path<'_>) -> bool {
        let is_list = matches!(field.shape, Shape::List | Shape::Map);
        if is_list && self.encoding == Encoding::Protobuf && is_empty(value) {
            *value = Value::Null;
        }
        match (field.shape, &mut *value) {
            (Shape::Optional | Shape::List | Shape::Map, Value::Null) => field.always,
            (Shape::List, Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(field.kind, item, &Path::Item(path, index));
                }
                field.always || !items.is_empty()
            }
            (Shape::Map, Value::Object(entries)) => {
                for (key, entry) in entries.iter_mut() {
                    // A map entry with empty bytes is kept.
                    if self.encoding == Encoding::Protobuf && field.kind == Kind::Bytes && entry.is_null() {
                        *entry = "".into();
                    }
                    self.value(field.kind, entry, &path.member(key));
                }
                field.always || !entries.is_empty()
            }
            (Shape::List | Shape::Map, _) => true,
            (Shape::Optional, _) => {
                self.value(field.kind, value, path);
                true
            }
            (Shape::Plain, _) => {
                self.value(field.kind, value, path);
                field.always || !is_zero(field.kind, value)
            }
        }
    }

    /// Normalizes a value that is not a pointer. Null becomes the zero value.
    fn value(&mut self, kind: Kind, value: &mut Value, path: &Path<'_>) {
        if value.is_null() {
            *value = zero(kind);
            return;
        }
        match kind {
            Kind::Message(id) => self.message(MESSAGES.get(id), value, path),
            Kind::Quantity => canonical(value),
            Kind::Bytes => {
                if let Some(text) = go_base64::canonical(value) {
                    *value = Value::String(text);
                }
            }
            Kind::Time => in_utc(value, Layout::Seconds),
            Kind::MicroTime => in_utc(value, Layout::Micros),
            Kind::String
            | Kind::Bool
            | Kind::Int32
            | Kind::Int64
            | Kind::Double
            | Kind::Json
            | Kind::IntOrString => {}
        }
    }

    fn message(&mut self, message: &'static Message, value: &mut Value, path: &Path<'_>) {
        match (message.form, &mut *value) {
            (Form::Object, Value::Object(members)) => self.object(message, members, path),
            (Form::Value, value) => {
                let known = self.unknown.len();
                if let Some(field) = form_of(message, value) {
                    self.is_shown(field, value, path);
                }
                // A type with an `UnmarshalJSON` method does not report unknown fields.
                self.unknown.truncate(known);
            }
            (Form::Object, _) => {}
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the JSON that Go writes for a zero value.
fn zero(kind: Kind) -> Value {
    match kind {
        Kind::String => "".into(),
        Kind::Bool => false.into(),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString | Kind::Double => 0.into(),
        Kind::Bytes | Kind::Json | Kind::Time | Kind::MicroTime => Value::Null,
        Kind::Quantity => "0".into(),
        Kind::Message(id) => MESSAGES.get(id).zero().clone(),
    }
}

fn zero_of(message: &'static Message) -> Value {
    if message.form == Form::Value {
        return Value::Null;
    }
    let mut members = Map::new();
    Normalizer::default().object(message, &mut members, &Path::Root);
    Value::Object(members)
}

/// Returns whether `value` is the result of [`zero`], or empty bytes.
fn is_zero(kind: Kind, value: &Value) -> bool {
    match kind {
        Kind::String => value == "",
        Kind::Bool => *value == false,
        Kind::Int32 | Kind::Int64 | Kind::IntOrString | Kind::Double => *value == 0,
        Kind::Bytes => value.is_null() || value == "",
        Kind::Json | Kind::Time | Kind::MicroTime => value.is_null(),
        Kind::Quantity => value == "0",
        Kind::Message(id) => value == MESSAGES.get(id).zero(),
    }
}

/// Formats a quantity as the server does. Invalid quantities are unchanged; validation rejects them.
///
/// Source: apimachinery pkg/api/resource/quantity.go, `UnmarshalJSON` (a number is read as its text) and `MarshalJSON`.
fn canonical(value: &mut Value) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return,
    };
    if let Ok(quantity) = Quantity::parse(text.trim()) {
        *value = Value::String(quantity.to_string());
    }
}

/// Formats a time as the server does. Invalid times are unchanged.
///
/// Source: apimachinery `pkg/apis/meta/v1/{time,micro_time}.go`, `UnmarshalJSON` and `MarshalJSON`.
fn in_utc(value: &mut Value, layout: Layout) {
    let time = value.as_str().and_then(|text| go_time::parse(text, layout).ok());
    if let Some(time) = time {
        *value = go_time::written(time, layout).map_or(Value::Null, Value::String);
    }
}

#[cfg(test)]
mod tests;
