//! Creates the protocol buffer messages that every environment declares; for example,
//! `google.protobuf.Int64Value{value: 1}` is 1.
//!
//! Source: cel-go common/types/provider.go, `NewValue`; the `ConvertToNative` of each type.

use std::fmt;
use std::sync::Arc;

use crate::function::Error;
use crate::types::Type;
use crate::value::{List, Map, Object, Opaque, Origin, Timestamp, Value, convert};

/// Creates a message whose fields have these values.
///
/// # Errors
///
/// Returns an error if the type cannot be created, or if a value does not match its field.
pub(super) fn message<'a>(name: &str, fields: &[(&str, Value<'a>)]) -> Result<Value<'a>, Error> {
    if Object::is_named(name) {
        return Object::create(name, fields).map(|object| Value::Object(Arc::new(object)));
    }
    let Some(kind) = name.strip_prefix("google.protobuf.") else {
        return Err(Error::new(format!("unknown type '{name}'")));
    };
    // If a field has several values, the last one is used.
    let field =
        |wanted: &str| fields.iter().rev().find(|(field, _)| *field == wanted).map(|(_, value)| value);
    let scalar = |wanted: &str, to: Native| match field(wanted) {
        Some(value) => native(value, to).map_err(|error| conversion(name, wanted, error)),
        None => Ok(to.zero()),
    };
    let integer = |wanted: &str, to: Native| scalar(wanted, to).map(|value| int(&value));
    match kind {
        "BoolValue" => scalar("value", Native::Bool),
        "BytesValue" => scalar("value", Native::Bytes),
        "DoubleValue" => scalar("value", Native::Double),
        "FloatValue" => scalar("value", Native::Float),
        "Int32Value" => scalar("value", Native::Int32),
        "Int64Value" => scalar("value", Native::Int64),
        "StringValue" => scalar("value", Native::String),
        "UInt32Value" => scalar("value", Native::Uint32),
        "UInt64Value" => scalar("value", Native::Uint64),
        "Duration" => {
            let seconds = integer("seconds", Native::Int64)?;
            let nanoseconds = integer("nanos", Native::Int32)?;
            Ok(Value::Duration(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)))
        }
        "Timestamp" => {
            let seconds = integer("seconds", Native::Int64)?;
            let nanoseconds = integer("nanos", Native::Int32)?;
            let seconds = seconds.saturating_add(nanoseconds.div_euclid(1_000_000_000));
            let nanoseconds = u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or_default();
            // kube-apiserver accepts and shows timestamps outside the valid range.
            Timestamp::new(seconds, nanoseconds)
                .map(Value::Timestamp)
                .map_err(|error| Error::Unsupported(format!("a google.protobuf.Timestamp: {error}")))
        }
        "Struct" => match field("fields") {
            Some(Value::Map(map)) => entries(map).map_err(|error| conversion(name, "fields", error)),
            Some(value) => Err(unsupported_field(name, "fields", value)),
            None => Ok(Value::Map(Map::default())),
        },
        "ListValue" => match field("values") {
            Some(Value::List(list)) => elements(list).map_err(|error| conversion(name, "values", error)),
            Some(value) => Err(unsupported_field(name, "values", value)),
            None => Ok(Value::list(Vec::new())),
        },
        "Value" => {
            // All fields are converted, and the last one is kept, as in a `oneof`.
            let mut kept = Value::Null;
            for (field, value) in fields {
                let to = match *field {
                    "null_value" => Native::Null,
                    "number_value" => Native::Double,
                    "string_value" => Native::String,
                    "bool_value" => Native::Bool,
                    "struct_value" => Native::Struct,
                    _ => Native::List,
                };
                kept = native(value, to).map_err(|error| conversion(name, field, error))?;
            }
            Ok(kept)
        }
        "Empty" => Ok(Value::Opaque(Arc::new(Empty))),
        "Any" => {
            let set = |wanted: &str, to: Native| scalar(wanted, to).map(|value| value.size() != Some(0));
            // The message continues with the fields in Go's text format, which differs between builds.
            if set("type_url", Native::String)? || set("value", Native::Bytes)? {
                return Err(Error::Unsupported("a google.protobuf.Any with fields".to_owned()));
            }
            Err(Error::new("unsupported conversion to ref.Val: (*dynamicpb.Message)".to_owned()))
        }
        _ => Err(Error::new(format!("unknown type '{name}'"))),
    }
}

/// Adds the name of the field to a conversion error. [`Error::Unsupported`] is returned unchanged.
fn conversion(message: &str, field: &str, error: Error) -> Error {
    if let Error::Unsupported(_) = error {
        return error;
    }
    Error::new(format!("field type conversion error for {message}.{field} value type: {error}"))
}

fn unsupported_field(message: &str, field: &str, value: &Value<'_>) -> Error {
    let of = match value {
        Value::List(_) => "list(dyn)",
        Value::Map(_) => "map(dyn, dyn)",
        Value::Optional(_) => "optional_type(dyn)",
        other => other.type_name(),
    };
    Error::new(format!("unsupported field type for {message}.{field}: {of}"))
}

fn int(value: &Value<'_>) -> i64 {
    if let Value::Int(value) = value { *value } else { 0 }
}

/// A Go type of a field, an element, or a key of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Native {
    Bool,
    /// An element of `Bytes`.
    Byte,
    Bytes,
    Double,
    Float,
    Int32,
    Int64,
    String,
    Uint32,
    Uint64,
    /// `google.protobuf.NullValue`.
    Null,
    /// `google.protobuf.Value`.
    Json,
    /// `google.protobuf.ListValue`.
    List,
    /// `google.protobuf.Struct`.
    Struct,
}

impl Native {
    /// Returns the name of the type in Go.
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Byte => "uint8",
            Self::Bytes => "[]uint8",
            Self::Double => "float64",
            Self::Float => "float32",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::String => "string",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Null => "protoreflect.EnumNumber",
            Self::Json => "*structpb.Value",
            Self::List => "*structpb.ListValue",
            Self::Struct => "*structpb.Struct",
        }
    }

    fn zero<'a>(self) -> Value<'a> {
        match self {
            Self::Bool => Value::Bool(false),
            Self::Bytes => Value::Bytes(Arc::from([])),
            Self::Double | Self::Float => Value::Double(0.0),
            Self::Byte | Self::Int32 | Self::Int64 => Value::Int(0),
            Self::String => Value::from(""),
            Self::Uint32 | Self::Uint64 => Value::Uint(0),
            Self::Null | Self::Json => Value::Null,
            Self::List => Value::list(Vec::new()),
            Self::Struct => Value::Map(Map::default()),
        }
    }
}

/// Converts a value to a Go type. In `google.protobuf.Value`, numbers are doubles, and values of types that JSON does
/// not support are strings.
///
/// # Errors
///
/// Returns an error if the value cannot be converted.
fn native<'a>(value: &Value<'a>, to: Native) -> Result<Value<'a>, Error> {
    const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;
    let error = |text: &str| Err(Error::new(text.to_owned()));
    let from = |from: &str| Err(Error::new(format!("type conversion error from {from} to '{}'", to.name())));
    match value {
        Value::Bool(_) if matches!(to, Native::Bool | Native::Json) => Ok(value.clone()),
        Value::Bool(_) => from("bool"),
        Value::Int(number) => match to {
            Native::Int32 | Native::Null if i32::try_from(*number).is_err() => error("integer overflow"),
            Native::Int32 | Native::Int64 => Ok(value.clone()),
            Native::Null => Ok(Value::Null),
            Native::Json if (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(number) => {
                convert(value, &Type::Double)
            }
            Native::Json => convert(value, &Type::String),
            _ => unsupported_number(value, to),
        },
        Value::Uint(number) => match to {
            Native::Uint32 if u32::try_from(*number).is_err() => error("unsigned integer overflow"),
            Native::Uint32 | Native::Uint64 => Ok(value.clone()),
            Native::Json if *number <= MAX_SAFE_INTEGER.unsigned_abs() => convert(value, &Type::Double),
            Native::Json => convert(value, &Type::String),
            _ => unsupported_number(value, to),
        },
        Value::Double(number) => match to {
            Native::Double | Native::Json => Ok(value.clone()),
            #[expect(clippy::cast_possible_truncation, reason = "that is what a float keeps")]
            Native::Float => Ok(Value::Double(f64::from(*number as f32))),
            _ => from("Double"),
        },
        Value::String(_) if matches!(to, Native::String | Native::Json) => Ok(value.clone()),
        Value::String(_) => {
            Err(Error::new(format!("unsupported native conversion from string to '{}'", to.name())))
        }
        Value::Bytes(bytes) => match to {
            Native::Bytes => Ok(value.clone()),
            Native::Json => Ok(Value::text(base64(bytes))),
            _ => from("Bytes"),
        },
        Value::Duration(_) | Value::Timestamp(_) if to == Native::Json => convert(value, &Type::String),
        Value::Duration(_) => from("'Duration'"),
        Value::Timestamp(_) => from("'Timestamp'"),
        Value::Null if to == Native::Json => Ok(Value::Null),
        Value::Null => from("'null_type'"),
        Value::List(list) if list.origin().is_typed() || list.is_structured() => match to {
            // The message of kube-apiserver's panic contains the Go type of the elements.
            Native::Bytes => Err(Error::Unsupported(
                "a list of built-in types, or of a custom resource, becomes bytes".to_owned(),
            )),
            _ => from("'list(dyn)'"),
        },
        Value::List(list) => match to {
            Native::Json | Native::List => elements(list),
            Native::Bytes => {
                for element in list {
                    native(&element, Native::Byte)?;
                }
                Ok(to.zero())
            }
            _ => from("list"),
        },
        Value::Map(map) if matches!(map.origin(), Origin::Typed | Origin::Request) => {
            // kube-apiserver's message contains the Go type, such as `v1.UserInfo`.
            Err(Error::Unsupported(format!("an object of a built-in type becomes a {}", to.name())))
        }
        Value::Map(map) if map.origin().is_typed() || map.is_structured() => from("'map(dyn, dyn)'"),
        Value::Map(map) => match to {
            Native::Json | Native::Struct => entries(map),
            Native::List => fields_of_list(map),
            _ => from("map"),
        },
        Value::Optional(Some(value)) => native(value, to),
        Value::Optional(None) => error("optional.none() dereference"),
        Value::Type(_) => error("type conversion not supported for 'type'"),
        Value::Object(object) => {
            Err(Error::Unsupported(format!("a {} becomes a {}", object.name(), to.name())))
        }
        Value::Opaque(opaque) if opaque.type_name() == EMPTY => match to {
            Native::Json => Ok(Value::Map(Map::default())),
            Native::List | Native::Struct => Err(Error::new(format!(
                "type conversion error: pb.Merge() arguments must be the same type. got: google.protobuf.{}, {EMPTY}",
                if to == Native::List { "ListValue" } else { "Struct" },
            ))),
            _ => from("'*dynamicpb.Message'"),
        },
        Value::Opaque(opaque) if opaque.is_text() && to == Native::String => {
            Ok(Value::text(opaque.to_string()))
        }
        Value::Opaque(opaque) => from(&format!("'{}'", opaque.native_name())),
        Value::Preserved(_) => Err(Error::new(format!(
            "type conversion to '{}' not supported for values preserved by x-kubernetes-preserve-unknown-fields",
            to.name()
        ))),
        Value::Invalid(why) => Err(Error::new(&**why)),
    }
}

fn unsupported_number<'a>(value: &Value<'a>, to: Native) -> Result<Value<'a>, Error> {
    Err(Error::new(format!("unsupported type conversion from '{}' to {}", value.type_name(), to.name())))
}

fn elements<'a>(list: &List<'a>) -> Result<Value<'a>, Error> {
    Ok(Value::list(list.iter().map(|element| native(&element, Native::Json)).collect::<Result<_, _>>()?))
}

fn entries<'a>(map: &Map<'a>) -> Result<Value<'a>, Error> {
    let entries =
        map.iter().map(|(key, value)| Ok((native(&key, Native::String)?, native(&value, Native::Json)?)));
    Ok(Value::Map(entries.collect::<Result<Vec<_>, Error>>()?.into_iter().collect()))
}

/// Converts a map to the Go struct of `google.protobuf.ListValue`. The keys of the map are the field names.
///
/// Source: cel-go common/types/map.go, `ConvertToNative`, `upperCamelCase`.
fn fields_of_list<'a>(map: &Map<'a>) -> Result<Value<'a>, Error> {
    let mut values = Value::list(Vec::new());
    for (key, value) in map {
        let name = convert(&key, &Type::String)?;
        let name = upper_camel_case(name.as_str().unwrap_or_default());
        if name != "Values" {
            return Err(Error::new(format!(
                "type conversion error, no such field '{name}' in type 'structpb.ListValue'"
            )));
        }
        let Value::List(list) = value else {
            return Err(Error::Unsupported("a map becomes a google.protobuf.ListValue".to_owned()));
        };
        values = elements(&list)?;
    }
    Ok(values)
}

fn upper_camel_case(text: &str) -> String {
    let is_delimiter = |letter| matches!(letter, '_' | '-');
    let (mut name, mut before) = (String::new(), None);
    for letter in text.trim().chars() {
        match before {
            _ if is_delimiter(letter) => {}
            Some(before) if !is_delimiter(before) && before.is_ascii_lowercase() => name.push(letter),
            Some(before) if !is_delimiter(before) => name.extend(letter.to_lowercase()),
            _ => name.extend(letter.to_uppercase()),
        }
        before = Some(letter);
    }
    name
}

/// Encodes bytes in base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS.get((bits >> (18 - 6 * place) & 63) as usize).copied().unwrap_or_default();
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

const EMPTY: &str = "google.protobuf.Empty";

/// The value of `google.protobuf.Empty{}`.
#[derive(Debug)]
struct Empty;

impl fmt::Display for Empty {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Opaque for Empty {
    fn type_name(&self) -> &'static str {
        EMPTY
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        Some(other.type_name() == self.type_name())
    }
}
