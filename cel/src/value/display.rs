//! Formats values as Go does.

use std::fmt::{self, Display, Formatter, Write as _};

use go_std::duration;

use super::{List, Map, Text, Value, number};

/// Formats a CEL value as Go's `%v` does, for messages such as `no such key: 1`.
impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            // In Go, null is the number 0.
            Self::Null => f.write_char('0'),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Uint(value) => write!(f, "{value}"),
            Self::Double(value) => f.write_str(&number::format_double(*value)),
            Self::String(text) => f.write_str(text.as_str()),
            Self::Bytes(bytes) => sequence(f, bytes.iter(), ' '),
            Self::Duration(value) => f.write_str(&duration::format_duration(*value)),
            Self::Timestamp(time) => f.write_str(&time.debug_text()),
            Self::List(list) => write!(f, "{list}"),
            Self::Map(map) => write!(f, "{map}"),
            Self::Optional(Some(value)) => write!(f, "optional({value})"),
            Self::Optional(None) => f.write_str("optional.none()"),
            Self::Type(name) => f.write_str(match &**name {
                "list" => "list(dyn)",
                "map" => "map(dyn, dyn)",
                crate::types::OPTIONAL => "optional_type(dyn)",
                name => name,
            }),
            Self::Object(object) => write!(f, "{object}"),
            Self::Opaque(opaque) => write!(f, "{opaque}"),
            Self::Preserved(json) => {
                f.write_str("&{")?;
                json_text(f, &Value::from_json(json))?;
                f.write_char('}')
            }
            Self::Invalid(why) => f.write_str(why),
        }
    }
}

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (index, element) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            // Go formats the elements of a JSON list as Go values.
            if self.is_json() {
                write!(f, "{comma}")?;
                json_text(f, &element)?;
            } else {
                write!(f, "{comma}{element}")?;
            }
        }
        f.write_char(']')
    }
}

/// Formats a JSON value as Go's `%v` does.
fn json_text(f: &mut Formatter<'_>, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Null => f.write_str("<nil>"),
        Value::List(list) => {
            f.write_char('[')?;
            for (index, element) in list.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { " " })?;
                json_text(f, &element)?;
            }
            f.write_char(']')
        }
        Value::Map(map) => {
            f.write_str("map[")?;
            for (index, (key, value)) in map.iter().enumerate() {
                write!(f, "{}{key}:", if index == 0 { "" } else { " " })?;
                json_text(f, &value)?;
            }
            f.write_char(']')
        }
        other => write!(f, "{other}"),
    }
}

impl Display for Map<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (index, (key, value)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{key}: {value}")?;
        }
        f.write_char('}')
    }
}

fn sequence<T: Display>(
    f: &mut Formatter<'_>,
    elements: impl Iterator<Item = T>,
    separator: char,
) -> fmt::Result {
    f.write_char('[')?;
    for (index, element) in elements.enumerate() {
        if index > 0 {
            f.write_char(separator)?;
        }
        write!(f, "{element}")?;
    }
    f.write_char(']')
}

impl Value<'_> {
    /// Returns the name of the value's Go type, as `%T` writes it in messages.
    pub fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Duration(_) => "types.Duration",
            Self::Timestamp(_) => "types.Timestamp",
            Self::List(list) => list.go_type(),
            Self::Map(map) => map.go_type(),
            Self::Optional(_) => "*types.Optional",
            Self::Type(_) => "*types.Type",
            Self::Object(object) => object.go_type(),
            Self::Opaque(opaque) => opaque.go_type(),
            Self::Preserved(_) => "*common.unknownPreserved",
            Self::Invalid(_) => "*types.Err",
        }
    }

    /// Formats the underlying Go value as `%v` does, such as `[1 2]` for a list and `map[a:1]` for a map with sorted
    /// keys.
    pub fn native_text(&self) -> String {
        let mut text = String::new();
        let _ = native(&mut text, self);
        text
    }
}

fn native(f: &mut String, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::Null => f.write_str("NULL_VALUE"),
        Value::List(list) => {
            f.write_char('[')?;
            for (index, element) in list.iter().enumerate() {
                if index > 0 {
                    f.write_char(' ')?;
                }
                element_text(f, &element)?;
            }
            f.write_char(']')
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map {
                let mut text = String::new();
                element_text(&mut text, &value)?;
                entries.push((key, text));
            }
            entries.sort_by(|(left, _), (right, _)| {
                super::compare("_<_", left, right).unwrap_or(std::cmp::Ordering::Equal)
            });
            f.write_str("map[")?;
            for (index, (key, value)) in entries.iter().enumerate() {
                let space = if index == 0 { "" } else { " " };
                write!(f, "{space}{key}:{value}")?;
            }
            f.write_char(']')
        }
        Value::Type(name) => f.write_str(name),
        Value::Optional(None) => f.write_str("<nil>"),
        Value::Optional(Some(value)) => native(f, value),
        other => write!(f, "{other}"),
    }
}

fn element_text(f: &mut String, value: &Value<'_>) -> fmt::Result {
    match value {
        Value::List(_) | Value::Map(_) => native(f, value),
        other => write!(f, "{other}"),
    }
}
