//! Messages of protocol buffers that every environment declares: `google.protobuf.Int64Value{value: 1}` is 1.
//!
//! Source: cel-go common/types/provider.go, `NewValue`; the `ConvertToNative` of each type.

use std::fmt;
use std::sync::Arc;

use crate::function::Error;
use crate::types::Type;
use crate::value::{Map, Opaque, Timestamp, Value, convert};

/// A message whose fields have these values.
///
/// # Errors
///
/// The type cannot be made, or a value does not fit its field.
pub(super) fn message<'a>(name: &str, fields: &[(&str, Value<'a>)]) -> Result<Value<'a>, Error> {
    let Some(kind) = name.strip_prefix("google.protobuf.") else {
        return Err(Error::new(format!("unknown type '{name}'")));
    };
    // The last of several values of a field counts.
    let field =
        |wanted: &str| fields.iter().rev().find(|(field, _)| *field == wanted).map(|(_, value)| value);
    let scalar = |wanted: &str, scalar: Scalar| match field(wanted) {
        Some(value) => scalar.of(value).map_err(|error| conversion(name, wanted, &error)),
        None => Ok(scalar.zero()),
    };
    let integer = |wanted: &str, kind: Scalar| scalar(wanted, kind).map(|value| int(&value));
    match kind {
        "BoolValue" => scalar("value", Scalar::Bool),
        "BytesValue" => scalar("value", Scalar::Bytes),
        "DoubleValue" => scalar("value", Scalar::Double),
        "FloatValue" => scalar("value", Scalar::Float),
        "Int32Value" => scalar("value", Scalar::Int32),
        "Int64Value" => scalar("value", Scalar::Int64),
        "StringValue" => scalar("value", Scalar::String),
        "UInt32Value" => scalar("value", Scalar::Uint32),
        "UInt64Value" => scalar("value", Scalar::Uint64),
        "Duration" => {
            let seconds = integer("seconds", Scalar::Int64)?;
            let nanoseconds = integer("nanos", Scalar::Int32)?;
            Ok(Value::Duration(seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)))
        }
        "Timestamp" => {
            let seconds = integer("seconds", Scalar::Int64)?;
            let nanoseconds = integer("nanos", Scalar::Int32)?;
            let seconds = seconds.saturating_add(nanoseconds.div_euclid(1_000_000_000));
            let nanoseconds = u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or_default();
            Timestamp::new(seconds, nanoseconds).map(Value::Timestamp)
        }
        "Struct" => match field("fields") {
            Some(value) => structure(value).map_err(|error| conversion(name, "fields", &error)),
            None => Ok(Value::Map(Map::default())),
        },
        "ListValue" => match field("values") {
            Some(value) => sequence(value).map_err(|error| conversion(name, "values", &error)),
            None => Ok(Value::list(Vec::new())),
        },
        "Value" => match fields.last() {
            None | Some(("null_value", _)) => Ok(Value::Null),
            Some((field, value)) => {
                let to = match *field {
                    "struct_value" => "Struct",
                    "list_value" => "ListValue",
                    _ => "Value",
                };
                json(value, to).map_err(|error| conversion(name, field, &error))
            }
        },
        "Empty" => Ok(Value::Opaque(Arc::new(Empty))),
        "Any" => Err(Error::new("unsupported conversion to ref.Val: (*dynamicpb.Message)".to_owned())),
        _ => Err(Error::new(format!("unknown type '{name}'"))),
    }
}

fn conversion(message: &str, field: &str, error: &Error) -> Error {
    Error::new(format!("field type conversion error for {message}.{field} value type: {error}"))
}

fn int(value: &Value<'_>) -> i64 {
    if let Value::Int(value) = value { *value } else { 0 }
}

/// The type of a field.
#[derive(Clone, Copy)]
enum Scalar {
    Bool,
    Bytes,
    Double,
    Float,
    Int32,
    Int64,
    String,
    Uint32,
    Uint64,
}

impl Scalar {
    fn zero<'a>(self) -> Value<'a> {
        match self {
            Self::Bool => Value::Bool(false),
            Self::Bytes => Value::Bytes(Arc::from([])),
            Self::Double | Self::Float => Value::Double(0.0),
            Self::Int32 | Self::Int64 => Value::Int(0),
            Self::String => Value::from(""),
            Self::Uint32 | Self::Uint64 => Value::Uint(0),
        }
    }

    fn of<'a>(self, value: &Value<'a>) -> Result<Value<'a>, Error> {
        let overflow = |text: &str| Error::new(text.to_owned());
        Ok(match (self, value) {
            (Self::Int32, Value::Int(value)) if i32::try_from(*value).is_err() => {
                return Err(overflow("integer overflow"));
            }
            (Self::Uint32, Value::Uint(value)) if u32::try_from(*value).is_err() => {
                return Err(overflow("unsigned integer overflow"));
            }
            #[expect(clippy::cast_possible_truncation, reason = "that is what a float keeps")]
            (Self::Float, Value::Double(value)) => Value::Double(f64::from(*value as f32)),
            (Self::Bool, Value::Bool(_))
            | (Self::Bytes, Value::Bytes(_))
            | (Self::Double, Value::Double(_))
            | (Self::Int32 | Self::Int64, Value::Int(_))
            | (Self::String, Value::String(_))
            | (Self::Uint32 | Self::Uint64, Value::Uint(_)) => value.clone(),
            _ => return Err(self.unsupported(value)),
        })
    }

    fn unsupported(self, value: &Value<'_>) -> Error {
        let to = match self {
            Self::Bool => "bool",
            Self::Bytes => "[]uint8",
            Self::Double => "float64",
            Self::Float => "float32",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::String => "string",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        };
        Error::new(match value {
            Value::Int(_) | Value::Uint(_) => {
                format!("unsupported type conversion from '{}' to {to}", value.type_name())
            }
            Value::Double(_) => format!("type conversion error from Double to '{to}'"),
            Value::String(_) => format!("unsupported native conversion from string to '{to}'"),
            Value::Bytes(_) => format!("type conversion error from Bytes to '{to}'"),
            Value::Duration(_) => format!("type conversion error from 'Duration' to '{to}'"),
            Value::Timestamp(_) => format!("type conversion error from 'Timestamp' to '{to}'"),
            Value::Null => format!("type conversion error from 'null_type' to '{to}'"),
            other => format!("type conversion error from {} to '{to}'", other.type_name()),
        })
    }
}

/// A value as `google.protobuf.Value` keeps it: numbers are doubles, and what JSON does not have is text. `to` is the
/// message that it becomes a part of.
fn json<'a>(value: &Value<'a>, to: &str) -> Result<Value<'a>, Error> {
    const LARGEST: i64 = (1 << 53) - 1;
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Double(_) | Value::String(_) => value.clone(),
        Value::Int(number) if (-LARGEST..=LARGEST).contains(number) => convert(value, &Type::Double)?,
        Value::Uint(number) if *number <= LARGEST.unsigned_abs() => convert(value, &Type::Double)?,
        Value::Int(_) | Value::Uint(_) | Value::Duration(_) | Value::Timestamp(_) => {
            convert(value, &Type::String)?
        }
        Value::Bytes(bytes) => Value::text(base64(bytes)),
        Value::List(list) if list.is_structured() => return Err(unconvertible("list(dyn)", to)),
        Value::Map(map) if map.is_structured() => return Err(unconvertible("map(dyn, dyn)", to)),
        Value::List(_) => sequence(value)?,
        Value::Map(_) => structure(value)?,
        Value::Optional(Some(value)) => json(value, to)?,
        Value::Optional(None) => return Err(Error::new("optional.none() dereference".to_owned())),
        Value::Type(_) => return Err(Error::new("type conversion not supported for 'type'".to_owned())),
        Value::Opaque(opaque) => return Err(unconvertible(opaque.type_name(), to)),
        Value::Preserved(_) => {
            return Err(Error::new(format!(
                "type conversion to '*structpb.{to}' not supported for values preserved by \
                 x-kubernetes-preserve-unknown-fields"
            )));
        }
        Value::Invalid(why) => return Err(Error::new(&**why)),
    })
}

fn unconvertible(from: &str, to: &str) -> Error {
    Error::new(format!("type conversion error from '{from}' to '*structpb.{to}'"))
}

fn sequence<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    let Value::List(list) = value else { return Err(Error::no_such_overload()) };
    Ok(Value::list(list.iter().map(|element| json(&element, "Value")).collect::<Result<_, _>>()?))
}

fn structure<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    let Value::Map(map) = value else { return Err(Error::no_such_overload()) };
    let entries = map.iter().map(|(key, value)| match key {
        Value::String(_) => Ok((key, json(&value, "Value")?)),
        other => Err(Scalar::String.unsupported(&other)),
    });
    Ok(Value::Map(entries.collect::<Result<Vec<_>, _>>()?.into_iter().collect()))
}

/// Bytes in base64 with padding.
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

/// `google.protobuf.Empty{}`.
#[derive(Debug)]
struct Empty;

impl fmt::Display for Empty {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Opaque for Empty {
    fn type_name(&self) -> &'static str {
        "google.protobuf.Empty"
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        Some(other.type_name() == self.type_name())
    }
}
