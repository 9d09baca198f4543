//! Formats values for each clause.

use std::fmt::Write as _;

use go_std::quote::quote;

use crate::types::Type;
use crate::value::{Map, Value, convert};

use super::{Clause, number};
use crate::library::strings::is_too_long;

/// The reason why a value cannot be formatted.
#[derive(Debug)]
pub(super) enum FormatError {
    /// The value does not match its clause.
    Message(String),
    /// The result would be too long.
    TooLong,
    /// Go panics with this message.
    Panic(&'static str),
}

impl From<String> for FormatError {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

/// Appends a value in the format of a clause.
pub(super) fn write(output: &mut String, clause: Clause, value: &Value<'_>) -> Result<(), FormatError> {
    // Writing into a String cannot fail.
    let _ = match (clause, value) {
        (Clause::Text, value) => return write_text(output, value),
        (Clause::Decimal, Value::Int(number)) => write!(output, "{number}"),
        (Clause::Decimal, Value::Uint(number)) => write!(output, "{number}"),
        (Clause::Fixed(precision), value) => {
            output.push_str(&number::fixed(double(clause, value)?, precision));
            Ok(())
        }
        (Clause::Scientific(width), value) => {
            output.push_str(&number::scientific(double(clause, value)?, width));
            Ok(())
        }
        (Clause::Binary, Value::Bool(value)) => write!(output, "{}", u8::from(*value)),
        (Clause::Binary, Value::Int(number)) => {
            write!(output, "{}{:b}", sign(*number), number.unsigned_abs())
        }
        (Clause::Binary, Value::Uint(number)) => write!(output, "{number:b}"),
        (Clause::Octal, Value::Int(number)) => write!(output, "{}{:o}", sign(*number), number.unsigned_abs()),
        (Clause::Octal, Value::Uint(number)) => write!(output, "{number:o}"),
        (Clause::Hex { upper }, Value::Int(number)) => {
            output.push_str(sign(*number));
            write_hex(output, number.unsigned_abs(), upper)
        }
        (Clause::Hex { upper }, Value::Uint(number)) => write_hex(output, *number, upper),
        (Clause::Hex { upper }, Value::String(text)) => write_bytes(output, text.as_str().as_bytes(), upper),
        (Clause::Hex { upper }, Value::Bytes(bytes)) => write_bytes(output, bytes, upper),
        (clause, value) => return Err(clause.refusal(value.type_name()).into()),
    };
    Ok(())
}

fn sign(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

fn write_hex(output: &mut String, number: u64, upper: bool) -> std::fmt::Result {
    if upper { write!(output, "{number:X}") } else { write!(output, "{number:x}") }
}

fn write_bytes(output: &mut String, bytes: &[u8], upper: bool) -> std::fmt::Result {
    bytes
        .iter()
        .try_for_each(|byte| if upper { write!(output, "{byte:02X}") } else { write!(output, "{byte:02x}") })
}

fn double(clause: Clause, value: &Value<'_>) -> Result<f64, String> {
    match (value, value.as_str()) {
        (Value::Double(value), _) => Ok(*value),
        (_, Some("NaN")) => Ok(f64::NAN),
        (_, Some("Infinity")) => Ok(f64::INFINITY),
        (_, Some("-Infinity")) => Ok(f64::NEG_INFINITY),
        _ => Err(clause.refusal(value.type_name())),
    }
}

/// Appends a value for `%s`, including values in lists and maps.
fn write_text(output: &mut String, value: &Value<'_>) -> Result<(), FormatError> {
    match value {
        Value::List(_) | Value::Map(_) => write_nested(output, value),
        Value::Null => {
            output.push_str("null");
            Ok(())
        }
        Value::Optional(_)
        | Value::Object(_)
        | Value::Opaque(_)
        | Value::Preserved(_)
        | Value::Invalid(_) => Err(Clause::Text.refusal(value.type_name()).into()),
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Type(_) => {
            output.push_str(&plain(value)?);
            Ok(())
        }
    }
}

/// Returns the result of `string(value)`.
fn plain(value: &Value<'_>) -> Result<String, FormatError> {
    match convert(value, &Type::String) {
        Ok(text) => Ok(text.as_str().unwrap_or_default().to_owned()),
        Err(error) => {
            Err(format!("could not convert argument {} to string", quote(error.to_string())).into())
        }
    }
}

/// Appends a list, a map, or a nested value, as a CEL literal.
fn write_nested(output: &mut String, value: &Value<'_>) -> Result<(), FormatError> {
    if is_too_long(output.len()) {
        return Err(FormatError::TooLong);
    }
    match value {
        Value::Double(value) if value.is_nan() => output.push_str("\"NaN\""),
        Value::Double(value) if value.is_infinite() => {
            output.push_str(if *value > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" });
        }
        // Writing into a String cannot fail.
        Value::Double(value) => drop(write!(output, "{value:.6}")),
        Value::String(_) => output.push_str(&quote(plain(value)?)),
        Value::Bytes(_) => drop(write!(output, "b{}", quote(plain(value)?))),
        Value::Timestamp(_) => drop(write!(output, "timestamp({})", quote(plain(value)?))),
        Value::Duration(_) => drop(write!(output, "duration({})", quote(plain(value)?))),
        Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Type(_) => output.push_str(&plain(value)?),
        Value::Null => output.push_str("null"),
        Value::List(list) => {
            output.push('[');
            for (index, element) in list.iter().enumerate() {
                output.push_str(if index == 0 { "" } else { ", " });
                write_nested(output, &element)?;
            }
            output.push(']');
        }
        Value::Map(map) => write_map(output, map)?,
        Value::Optional(_)
        | Value::Object(_)
        | Value::Opaque(_)
        | Value::Preserved(_)
        | Value::Invalid(_) => {
            return Err(format!("no formatting function for {}", value.type_name()).into());
        }
    }
    Ok(())
}

/// Appends a map with its entries sorted by the text of their keys.
fn write_map(output: &mut String, map: &Map<'_>) -> Result<(), FormatError> {
    let mut entries = Vec::with_capacity(map.len());
    let mut length = output.len();
    for (key, value) in map {
        if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
            let name = key.type_name();
            return Err(format!("no formatting function for map key of type {name}").into());
        }
        let mut entry = String::new();
        write_nested(&mut entry, &key)?;
        let key_length = entry.len();
        entry.push(':');
        write_nested(&mut entry, &value)?;
        length = length.saturating_add(entry.len());
        if is_too_long(length) {
            return Err(FormatError::TooLong);
        }
        entries.push((entry, key_length));
    }
    // Go's iterator also visits members that are not in the schema, and returns nil as their keys.
    if entries.len() < map.len() {
        return Err(FormatError::Panic("runtime error: invalid memory address or nil pointer dereference"));
    }
    entries
        .sort_by(|(left, left_key), (right, right_key)| left.get(..*left_key).cmp(&right.get(..*right_key)));
    output.push('{');
    for (index, (entry, _)) in entries.iter().enumerate() {
        output.push_str(if index == 0 { "" } else { ", " });
        output.push_str(entry);
    }
    output.push('}');
    Ok(())
}
