//! Documents that are read through a schema.
//!
//! Source: apiserver pkg/cel/common/valuesunstructured.go.

mod keyed;
mod texts;

use std::borrow::Cow;

use serde_json::{Map as Members, Value as Json};

use super::{List, Map, Text, Value, equality};
use crate::error::Error;
use crate::schema::{Kind, ListType, Schema, escape, unescape};

pub(super) use keyed::{equal, merged};

impl<'a> Value<'a> {
    /// Converts JSON according to its schema; parts that do not match the schema become [`Value::Invalid`].
    ///
    /// Source: apiserver pkg/cel/common/valuesunstructured.go, `UnstructuredToVal`.
    pub fn from_structured(json: &'a Json, schema: &'a Schema) -> Self {
        if json.is_null() {
            return if schema.nullable {
                Self::Null
            } else {
                invalid("got null for schema with nullable=false")
            };
        }
        match (&schema.kind, json) {
            (Kind::Object, Json::Object(members)) => Self::Map(Map::from_structured(members, schema)),
            (Kind::Object, _) => invalid("expected a map for the provided schema with type=object"),
            (Kind::Array, Json::Array(elements)) => list(elements, schema),
            (Kind::Array, _) => invalid("expected an array for the provided schema with type=array"),
            (Kind::String, Json::String(text)) => texts::read(text, &schema.format),
            (Kind::String, _) => unexpected("string", json),
            (Kind::Number, Json::Number(number)) => Self::Double(number.as_f64().unwrap_or_default()),
            (Kind::Number, _) => unexpected("float", json),
            (Kind::Integer, Json::Number(number)) if number.is_i64() => Self::from_json(json),
            (Kind::Integer, _) => unexpected("int", json),
            (Kind::Boolean, Json::Bool(value)) => Self::Bool(*value),
            (Kind::Boolean, _) => unexpected("bool", json),
            (Kind::IntOrString, Json::String(text)) => Self::String(Text::Borrowed(text)),
            (Kind::IntOrString, Json::Number(number)) if number.is_i64() => Self::from_json(json),
            (Kind::IntOrString, _) => invalid("expected XIntOrString value to be either a string or integer"),
            (Kind::Preserved, _) => Self::Preserved(json),
            (Kind::Other(name), _) => Self::Invalid(
                format!(
                    "invalid type, expected object, array, number, integer, boolean or string, or no type with \
                     x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {name}"
                )
                .into(),
            ),
        }
    }
}

fn invalid<'a>(what: &str) -> Value<'a> {
    Value::Invalid(format!("invalid data, {what}").into())
}

fn unexpected<'a>(expected: &str, found: &Json) -> Value<'a> {
    invalid(&format!("expected {expected}, got {}", go_type(found)))
}

/// Returns the name of the Go type that represents a JSON value.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

fn list<'a>(elements: &'a [Json], schema: &'a Schema) -> Value<'a> {
    match (&schema.items, &schema.list_type) {
        (None, _) => Value::Invalid("invalid array type, expected Items with a non-empty Schema".into()),
        (_, ListType::Other(name)) => Value::Invalid(
            format!("invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got {name}")
                .into(),
        ),
        (Some(_), ListType::Atomic | ListType::Set | ListType::Map(_)) => {
            Value::List(List::from_structured(elements, schema))
        }
    }
}

/// Returns an element of a list, read through the list's schema.
pub(super) fn element<'a>(json: &'a Json, list: &'a Schema) -> Value<'a> {
    list.items.as_ref().map_or(Value::Null, |items| Value::from_structured(json, items))
}

/// Returns the member of an object by its escaped name, or the value of a map by its key. Null fields are treated as
/// absent.
///
/// Source: apiserver pkg/cel/common/valuesunstructured.go, `unstructuredMap.Find`.
pub(super) fn find<'a>(
    members: &'a Members<String, Json>,
    schema: &'a Schema,
    key: &str,
) -> Option<Value<'a>> {
    let name = if schema.has_properties() { unescape(key)? } else { Cow::Borrowed(key) };
    let value = members.get(name.as_ref())?;
    if schema.has_properties() && value.is_null() {
        return None;
    }
    Some(Value::from_structured(value, schema.member(&name)?))
}

/// Returns an entry of a map, or a member of an object under its escaped name, or `None` for members that are not in
/// the schema.
///
/// Source: apiserver pkg/cel/common/valuesunstructured.go, `unstructuredMap.Iterator`.
pub(super) fn entry<'a>(
    members: &'a Members<String, Json>,
    schema: &'a Schema,
    name: &'a str,
) -> Option<(Value<'a>, Value<'a>)> {
    schema.member(name)?;
    let escaped = if schema.has_properties() { escape(name) } else { None };
    let key = escaped.unwrap_or(Cow::Borrowed(name));
    let value =
        find(members, schema, &key).unwrap_or_else(|| Value::Invalid(format!("no such key: {key}").into()));
    let key = match key {
        Cow::Borrowed(key) => Value::from(key),
        Cow::Owned(key) => Value::text(key),
    };
    Some((key, value))
}

/// Returns whether an object or a map of a document equals another map.
///
/// # Errors
///
/// Returns an error if two members cannot be compared, or if `map` has a member that is not in the schema and `other`
/// is not part of a document.
///
/// Source: apiserver pkg/cel/common/valuesunstructured.go, `unstructuredMap.Equal`.
pub(super) fn objects(
    map: &Map<'_>,
    members: &Members<String, Json>,
    schema: &Schema,
    other: &Map<'_>,
) -> Result<bool, Error> {
    for (name, json) in members {
        if schema.member(name).is_some() {
            let key = Value::from(name.as_str());
            match (map.get(&key), other.get(&key)) {
                (Some(value), Some(other)) if equality::equals(&value, &other)? => {}
                (None, None) => {}
                _ => return Ok(false),
            }
        } else {
            let (others, _) = other.structured().ok_or_else(Error::no_such_overload)?;
            if others.get(name).is_some_and(|other| other != json) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns whether `json`, a field that the schema preserves without a type, equals `value`.
///
/// Source: apiserver pkg/cel/common/valuesunstructured.go, `unknownPreserved.Equal`.
pub(super) fn preserves(json: &Json, value: &Value<'_>) -> bool {
    match (json, value) {
        (_, Value::Preserved(other)) => json == *other,
        (Json::Bool(one), Value::Bool(other)) => one == other,
        (Json::Number(one), Value::Int(other)) => one.as_i64() == Some(*other),
        (Json::Number(one), Value::Double(other)) => !one.is_i64() && one.as_f64() == Some(*other),
        (Json::String(one), Value::String(other)) => one == other.as_str(),
        (Json::Array(one), Value::List(other)) => other.json() == Some(one),
        (Json::Object(one), Value::Map(other)) => other.json() == Some(one),
        _ => false,
    }
}
