//! Converts values to other types, such as `int('1')`.
//!
//! Source: the `ConvertToType` of each type in cel-go common/types.

use std::sync::Arc;

use go_std::duration;

use crate::error::Error;
use crate::types::Type;

use super::{Text, Timestamp, Value, number};

/// Converts a value to another type.
///
/// # Errors
///
/// Returns an error if a number does not fit, a string is invalid, or the type cannot be converted.
pub fn convert<'a>(value: &Value<'a>, to: &Type) -> Result<Value<'a>, Error> {
    match to {
        Type::Int => to_int(value),
        Type::Uint => to_uint(value),
        Type::Double => to_double(value),
        Type::String => to_string(value),
        Type::Bool => to_bool(value),
        Type::Bytes => to_bytes(value),
        Type::Duration => to_duration(value),
        Type::Timestamp => to_timestamp(value),
        _ => Err(unconvertible(value, &to.to_string())),
    }
}

fn unconvertible(value: &Value<'_>, to: &str) -> Error {
    Error::new(format!("type conversion error from '{}' to '{to}'", value.type_name()))
}

fn overflow(text: &str) -> Error {
    Error::new(text.to_owned())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the range is checked before"
)]
fn to_int<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    let out_of_range = || overflow("integer overflow");
    Ok(Value::Int(match value {
        Value::Int(value) | Value::Duration(value) => *value,
        Value::Uint(value) => i64::try_from(*value).ok().ok_or_else(out_of_range)?,
        Value::Double(value) if *value > i64::MIN as f64 && *value < i64::MAX as f64 => *value as i64,
        Value::Double(_) => return Err(out_of_range()),
        Value::Timestamp(time) => time.instant().0,
        Value::String(text) => text.as_str().parse().ok().ok_or_else(|| unconvertible(value, "int"))?,
        _ => return Err(unconvertible(value, "int")),
    }))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the range is checked before"
)]
fn to_uint<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    let out_of_range = || overflow("unsigned integer overflow");
    Ok(Value::Uint(match value {
        Value::Uint(value) => *value,
        Value::Int(value) => u64::try_from(*value).ok().ok_or_else(out_of_range)?,
        Value::Double(value) if *value >= 0.0 && *value < u64::MAX as f64 => *value as u64,
        Value::Double(_) => return Err(out_of_range()),
        // Go's `ParseUint` rejects all signs, but Rust's parser accepts a plus sign.
        Value::String(text) if !text.as_str().starts_with('+') => {
            text.as_str().parse().ok().ok_or_else(|| unconvertible(value, "uint"))?
        }
        _ => return Err(unconvertible(value, "uint")),
    }))
}

#[expect(clippy::cast_precision_loss, reason = "Go rounds as well")]
fn to_double<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    Ok(Value::Double(match value {
        Value::Double(value) => *value,
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        Value::String(text) => {
            number::parse_double(text.as_str()).ok_or_else(|| unconvertible(value, "double"))?
        }
        _ => return Err(unconvertible(value, "double")),
    }))
}

fn to_string<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    Ok(match value {
        Value::String(text) => Value::String(text.clone()),
        Value::Bool(true) => Value::from("true"),
        Value::Bool(false) => Value::from("false"),
        Value::Int(value) => Value::text(value.to_string()),
        Value::Uint(value) => Value::text(value.to_string()),
        Value::Double(value) => Value::text(number::format_double(*value)),
        Value::Bytes(bytes) => Value::text(
            std::str::from_utf8(bytes)
                .ok()
                .ok_or_else(|| overflow("invalid UTF-8 in bytes, cannot convert to string"))?,
        ),
        Value::Duration(value) => Value::text(format!("{}s", duration::seconds(*value))),
        Value::Timestamp(time) => Value::text(time.rfc3339()),
        Value::Null => Value::from("null"),
        Value::Type(name) => Value::String(Text::Shared(name.clone())),
        _ => return Err(unconvertible(value, "string")),
    })
}

fn to_bool<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(match value {
        Value::Bool(value) => *value,
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            _ => return Err(unconvertible(value, "bool")),
        },
        _ => return Err(unconvertible(value, "bool")),
    }))
}

fn to_bytes<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    match value {
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
        Value::String(text) => Ok(Value::Bytes(Arc::from(text.as_str().as_bytes()))),
        _ => Err(unconvertible(value, "bytes")),
    }
}

fn to_duration<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    const NAME: &str = "google.protobuf.Duration";
    match value {
        Value::Duration(value) => Ok(Value::Duration(*value)),
        Value::String(text) => duration::parse_duration(text.as_str())
            .map(Value::Duration)
            .ok_or_else(|| unconvertible(value, NAME)),
        _ => Err(unconvertible(value, NAME)),
    }
}

fn to_timestamp<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    const NAME: &str = "google.protobuf.Timestamp";
    match value {
        Value::Timestamp(time) => Ok(Value::Timestamp(*time)),
        Value::Int(seconds) => Timestamp::new(*seconds, 0).map(Value::Timestamp),
        Value::String(text) => {
            Timestamp::parse(text.as_str()).ok_or_else(|| unconvertible(value, NAME))?.map(Value::Timestamp)
        }
        _ => Err(unconvertible(value, NAME)),
    }
}
