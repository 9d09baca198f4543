//! Converts values to JSON for patches of objects.
//!
//! Source: cel-go common/types, `ConvertToNative`; apiserver pkg/cel/mutation/dynamic/objects.go.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use go_std::quote::quote;
use serde_json::{Map as Members, Number, Value as Json};

use super::{List, Map, Object, Origin, Value, convert};
use crate::error::Error;
use crate::types::Type;

/// The largest integer that a JSON number can represent exactly.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Converts a value to JSON as `google.protobuf.Value` represents it.
///
/// Integers with more than 53 bits, times, and durations become strings; bytes become base64.
///
/// # Errors
/// Returns kube-apiserver's error if the value does not have a JSON representation.
pub fn to_json(value: &Value<'_>) -> Result<Json, Error> {
    let as_text = || Ok(convert(value, &Type::String)?.as_str().map_or(Json::Null, Json::from));
    match value {
        Value::Null => Ok(Json::Null),
        Value::Bool(value) => Ok(Json::Bool(*value)),
        Value::Int(value) if value.unsigned_abs() <= MAX_SAFE_INTEGER.unsigned_abs() => {
            Ok(Json::from(*value))
        }
        Value::Uint(value) if *value <= MAX_SAFE_INTEGER.unsigned_abs() => Ok(Json::from(*value)),
        Value::Int(value) => Ok(Json::from(value.to_string())),
        Value::Uint(value) => Ok(Json::from(value.to_string())),
        Value::Double(value) => {
            number(*value).ok_or_else(|| Error::Unsupported(format!("the number {value} in a patch")))
        }
        Value::String(text) => Ok(Json::from(text.as_str())),
        Value::Bytes(bytes) => Ok(Json::from(BASE64_STANDARD.encode(bytes))),
        Value::Duration(_) | Value::Timestamp(_) => as_text(),
        Value::List(list) if list.is_wrapped() => Err(not_converted("list(dyn)")),
        Value::List(list) => list.iter().map(|element| to_json(&element)).collect(),
        Value::Map(map) => map_to_json(map),
        Value::Optional(None) => Err(Error::new("optional.none() dereference")),
        Value::Optional(Some(value)) => to_json(value),
        Value::Type(_) => Err(Error::new("type conversion not supported for 'type'")),
        Value::Object(object) if object.is_operation() => {
            Err(Error::new("cannot convert to native type: *structpb.Value"))
        }
        Value::Object(object) => {
            let ObjectJson { members, foreign } = convert_object(object, Target::Protobuf);
            match foreign {
                Some(Foreign::Go(name)) => Err(Error::new(format!("proto: invalid type: {name}"))),
                Some(Foreign::Unknown(what)) => Err(Error::Unsupported(format!("{what} in a patch"))),
                None => Ok(Json::Object(members)),
            }
        }
        Value::Opaque(opaque) => Err(not_converted(opaque.native_name())),
        Value::Preserved(json) => Ok((*json).clone()),
        Value::Invalid(why) => Err(Error::new(&**why)),
    }
}

fn map_to_json(map: &Map<'_>) -> Result<Json, Error> {
    match map.origin() {
        Origin::Unstructured => {}
        Origin::TypedMap => return Err(not_converted("map(dyn, dyn)")),
        Origin::Typed | Origin::Request => {
            return Err(Error::Unsupported("structs of built-in types in a patch".to_owned()));
        }
    }
    let entries = map.iter().map(|(key, value)| {
        let name = key.as_str().ok_or_else(|| {
            Error::new(format!("unsupported type conversion from '{}' to string", key.type_name()))
        })?;
        Ok((name.to_owned(), to_json(&value)?))
    });
    entries.collect()
}

fn not_converted(from: &str) -> Error {
    Error::new(format!("type conversion error from '{from}' to '*structpb.Value'"))
}

/// Returns a floating-point number as JSON; `None` if it is not finite.
///
/// A whole number does not have a decimal point, as in Go.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the range is checked")]
fn number(value: f64) -> Option<Json> {
    if value.fract() == 0.0 && value.abs() < i64::MAX as f64 {
        return Some(Json::from(value as i64));
    }
    Number::from_f64(value).map(Json::Number)
}

/// The JSON of an [`Object`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ObjectJson {
    /// The fields. Each value of a type that Go's JSON does not have is replaced by a description of the type.
    pub members: Members<String, Json>,
    /// The type of the first such value.
    pub foreign: Option<Foreign>,
}

/// The type of a value that Go's JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum Foreign {
    /// A Go type whose name kube-apiserver's error contains.
    Go(&'static str),
    /// A description of values for which admit does not know kube-apiserver's error.
    Unknown(&'static str),
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Go(name) => write!(f, "values of the type {name}"),
            Self::Unknown(what) => f.write_str(what),
        }
    }
}

impl Object<'_> {
    /// Converts the object to the JSON of an unstructured object.
    ///
    /// Source: apiserver pkg/cel/mutation/dynamic/objects.go, `Value` and `convertField`.
    pub fn to_unstructured(&self) -> ObjectJson {
        convert_object(self, Target::Unstructured)
    }

    /// Checks that the type of each nested object is the type of this object and the path of the field.
    ///
    /// # Errors
    /// Returns kube-apiserver's error, one line for each wrong type.
    ///
    /// Source: apiserver pkg/cel/mutation/dynamic/objects.go, `CheckTypeNamesMatchFieldPathNames`.
    pub fn check_type_names(&self) -> Result<(), String> {
        let mut errors = Vec::new();
        check_names(self, self.name(), &mut errors);
        if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
    }
}

fn check_names(object: &Object<'_>, expected: &str, errors: &mut Vec<String>) {
    if object.name() != expected {
        let (found, expected) = (quote(object.name()), quote(expected));
        errors.push(format!(
            "unexpected type name {found}, expected {expected}, which matches field name path from root Object type"
        ));
    }
    for (name, value) in object.fields() {
        check_names_in(value, &format!("{expected}.{name}"), errors);
    }
}

/// Checks the objects in a value. The elements of a list have the path of the list.
fn check_names_in(value: &Value<'_>, expected: &str, errors: &mut Vec<String>) {
    match value {
        Value::Object(object) => check_names(object, expected, errors),
        // Go does not see the elements of other lists and maps.
        Value::List(list) if is_literal(list) => {
            list.iter().for_each(|element| check_names_in(&element, expected, errors));
        }
        Value::Map(map) if is_literal_map(map) => {
            map.iter().for_each(|(_, value)| check_names_in(&value, expected, errors));
        }
        _ => {}
    }
}

/// Returns whether Go holds the list as values of CEL.
fn is_literal(list: &List<'_>) -> bool {
    !list.is_concat() && !list.is_json() && !list.is_wrapped()
}

/// Returns whether Go holds the map as values of CEL.
fn is_literal_map(map: &Map<'_>) -> bool {
    map.json().is_none() && !map.is_wrapped()
}

/// The size of the JSON that a value is converted to.
///
/// Lists and strings are shared, so the JSON of a small value can be very large.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a limit has two parts")]
pub struct JsonLimit {
    /// The maximum number of values.
    pub values: usize,
    /// The maximum number of bytes in strings and names of fields.
    pub bytes: usize,
}

impl JsonLimit {
    /// Returns whether the JSON of `value` is within the limit. Stops at the first part that is not.
    pub fn allows(mut self, value: &Value<'_>) -> bool {
        self.take(value)
    }

    fn take(&mut self, value: &Value<'_>) -> bool {
        self.take_one(0)
            && match value {
                Value::String(text) => self.take_bytes(text.as_str().len()),
                Value::Bytes(bytes) => self.take_bytes(bytes.len().saturating_mul(2)),
                Value::List(list) => list.iter().all(|element| self.take(&element)),
                Value::Map(map) => map.iter().all(|(key, value)| self.take(&key) && self.take(&value)),
                Value::Optional(Some(value)) => self.take(value),
                Value::Object(object) => {
                    object.fields().all(|(name, value)| self.take_bytes(name.len()) && self.take(value))
                }
                Value::Preserved(json) => self.take_json(json),
                Value::Null
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::Duration(_)
                | Value::Timestamp(_)
                | Value::Optional(None)
                | Value::Type(_)
                | Value::Opaque(_)
                | Value::Invalid(_) => true,
            }
    }

    fn take_json(&mut self, json: &Json) -> bool {
        match json {
            Json::String(text) => self.take_one(text.len()),
            Json::Array(elements) => {
                self.take_one(0) && elements.iter().all(|element| self.take_json(element))
            }
            Json::Object(members) => {
                self.take_one(0)
                    && members
                        .iter()
                        .all(|(name, value)| self.take_bytes(name.len()) && self.take_json(value))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => self.take_one(0),
        }
    }

    fn take_one(&mut self, bytes: usize) -> bool {
        let left = self.values.checked_sub(1);
        self.values = left.unwrap_or_default();
        left.is_some() && self.take_bytes(bytes)
    }

    fn take_bytes(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or_default();
        left.is_some()
    }
}

/// The values that an object is converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The JSON of an unstructured object, which does not have unsigned integers and bytes.
    Unstructured,
    /// The JSON of `google.protobuf.Value`, whose numbers are floating-point numbers.
    Protobuf,
}

fn convert_object(object: &Object<'_>, target: Target) -> ObjectJson {
    let mut conversion = Conversion { target, foreign: None };
    let members = conversion.object(object);
    ObjectJson { members, foreign: conversion.foreign }
}

/// A conversion of an object.
struct Conversion {
    target: Target,
    foreign: Option<Foreign>,
}

impl Conversion {
    fn object(&mut self, object: &Object<'_>) -> Members<String, Json> {
        object.fields().map(|(name, value)| (name.to_owned(), self.field(value))).collect()
    }

    /// Converts the value of a field, and the elements of its lists and maps.
    ///
    /// Go does not convert a list or map that the expression creates if it is nested in another such list or map.
    fn field(&mut self, value: &Value<'_>) -> Json {
        match value {
            Value::List(list) if is_literal(list) => {
                list.iter().map(|element| self.plain(&element)).collect()
            }
            Value::List(list) => list.iter().map(|element| self.field(&element)).collect(),
            Value::Map(map) => {
                let is_literal = is_literal_map(map);
                let mut members = Members::new();
                for (key, value) in map {
                    let Some(name) = key.as_str() else {
                        return self.unknown("maps whose keys are not strings");
                    };
                    let json = if is_literal { self.plain(&value) } else { self.field(&value) };
                    members.insert(name.to_owned(), json);
                }
                Json::Object(members)
            }
            other => self.plain(other),
        }
    }

    /// Converts a value to the Go value that it holds.
    fn plain(&mut self, value: &Value<'_>) -> Json {
        match (value, self.target) {
            (Value::Bool(value), _) => Json::Bool(*value),
            (Value::Int(value), Target::Unstructured) => Json::from(*value),
            #[expect(clippy::cast_precision_loss, reason = "Go converts the number, too")]
            (Value::Int(value), Target::Protobuf) => self.double(*value as f64),
            #[expect(clippy::cast_precision_loss, reason = "Go converts the number, too")]
            (Value::Uint(value), Target::Protobuf) => self.double(*value as f64),
            (Value::Uint(_), Target::Unstructured) => self.foreign("uint64"),
            (Value::Double(value), _) => self.double(*value),
            (Value::String(text), _) => Json::from(text.as_str()),
            (Value::Bytes(bytes), Target::Protobuf) => Json::from(BASE64_STANDARD.encode(bytes)),
            (Value::Bytes(_), Target::Unstructured) => self.foreign("[]uint8"),
            (Value::Null, _) => self.foreign("structpb.NullValue"),
            (Value::Duration(_), _) => self.foreign("time.Duration"),
            (Value::Timestamp(_), _) => self.foreign("time.Time"),
            (Value::List(list), _) if is_literal(list) => self.foreign("[]ref.Val"),
            (Value::List(list), _) if list.is_wrapped() => self.unknown("lists of built-in types"),
            (Value::List(list), _) => match list.json() {
                Some(elements) => elements.iter().map(|element| self.raw(element)).collect(),
                None => list.iter().map(|element| self.plain(&element)).collect(),
            },
            (Value::Map(map), _) => match map.json() {
                Some(members) => {
                    members.iter().map(|(name, value)| (name.clone(), self.raw(value))).collect()
                }
                None if map.is_wrapped() => self.unknown("structs of built-in types"),
                None => self.foreign("map[ref.Val]ref.Val"),
            },
            (Value::Optional(None), _) => Json::Null,
            (Value::Optional(Some(value)), _) => self.plain(value),
            (Value::Type(name), _) => Json::from(&**name),
            (Value::Object(object), _) if object.is_operation() => self.foreign("*mutation.JSONPatchVal"),
            (Value::Object(object), _) => Json::Object(self.object(object)),
            (Value::Opaque(opaque), _) => self.foreign(opaque.go_type()),
            (Value::Preserved(json), _) => self.raw(json),
            (Value::Invalid(_), _) => self.foreign("error"),
        }
    }

    /// Converts JSON that Go holds as such.
    fn raw(&mut self, json: &Json) -> Json {
        match (json, self.target) {
            (Json::Number(value), Target::Protobuf) => self.double(value.as_f64().unwrap_or_default()),
            (Json::Array(elements), _) => elements.iter().map(|element| self.raw(element)).collect(),
            (Json::Object(members), _) => {
                members.iter().map(|(name, value)| (name.clone(), self.raw(value))).collect()
            }
            (other, _) => other.clone(),
        }
    }

    fn double(&mut self, value: f64) -> Json {
        number(value).unwrap_or_else(|| self.foreign("float64"))
    }

    fn foreign(&mut self, name: &'static str) -> Json {
        self.foreign.get_or_insert(Foreign::Go(name));
        Json::from(name)
    }

    fn unknown(&mut self, what: &'static str) -> Json {
        self.foreign.get_or_insert(Foreign::Unknown(what));
        Json::from(what)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object<'a>(name: &str, fields: &[(&str, Value<'a>)]) -> Value<'a> {
        Value::Object(Object::create(name, fields).unwrap().into())
    }

    #[test]
    fn json_of_repeated_values_is_limited() {
        let limit = JsonLimit { values: 1000, bytes: 1000 };
        let mut list = Value::list(vec![Value::Int(1); 10]);
        assert!(limit.allows(&list));
        for _ in 0..30 {
            list = Value::list(vec![list; 10]);
        }
        assert!(!limit.allows(&list));
        let long = "a".repeat(600);
        let text = Value::from(long.as_str());
        assert!(limit.allows(&text));
        assert!(!limit.allows(&object("Object", &[("a", text.clone()), ("b", text)])));
        let kept = json!({"a": ["b".repeat(600), "c".repeat(600)]});
        assert!(!limit.allows(&Value::Preserved(&kept)));
    }

    #[test]
    fn values_become_the_json_of_protobuf() {
        let text = |value: &Value<'_>| {
            to_json(value).map(|json| json.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(text(&Value::Int(MAX_SAFE_INTEGER)).as_deref(), Ok("9007199254740991"));
        assert_eq!(text(&Value::Int(MAX_SAFE_INTEGER + 1)).as_deref(), Ok("\"9007199254740992\""));
        assert_eq!(text(&Value::Double(2.0)).as_deref(), Ok("2"));
        assert_eq!(text(&Value::Duration(5_400_000_000_000)).as_deref(), Ok("\"5400s\""));
        assert_eq!(text(&Value::Optional(None)), Err("optional.none() dereference".to_owned()));
        let labels = json!({"a": "b"});
        let typed = Value::from_json_of(&labels, Origin::TypedMap);
        let message = "type conversion error from 'map(dyn, dyn)' to '*structpb.Value'";
        assert_eq!(text(&typed), Err(message.to_owned()));
        let nested = object("Object.a", &[("b", Value::list(vec![Value::Null]))]);
        assert_eq!(text(&nested), Err("proto: invalid type: structpb.NullValue".to_owned()));
    }

    #[test]
    fn maps_in_a_list_of_an_object_are_foreign() {
        let map = || Value::Map([(Value::from("k"), Value::Int(1))].into_iter().collect());
        let Value::Object(list) = object("Object", &[("a", Value::list(vec![map()]))]) else {
            unreachable!()
        };
        assert_eq!(list.to_unstructured().foreign, Some(Foreign::Go("map[ref.Val]ref.Val")));
        let Value::Object(field) = object("Object", &[("a", map())]) else { unreachable!() };
        let converted = field.to_unstructured();
        assert_eq!((Json::Object(converted.members), converted.foreign), (json!({"a": {"k": 1}}), None));
    }

    #[test]
    fn the_types_of_nested_objects_are_their_paths() {
        let wrong = object("Object.b", &[]);
        let Value::Object(outer) = object("Object", &[("a", Value::list(vec![wrong]))]) else {
            unreachable!()
        };
        let message = "unexpected type name \"Object.b\", expected \"Object.a\", which matches field name path from \
                       root Object type";
        assert_eq!(outer.check_type_names(), Err(message.to_owned()));
    }
}
