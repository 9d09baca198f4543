//! Formats values as Go does: in errors, in keys of managedFields, and in JSON.

use std::fmt::Write as _;

use go_std::quote::quote;
use serde_json::{Number, Value};

/// A JSON number as Go decodes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numeric {
    /// A signed 64-bit integer.
    Int(i64),
    /// Any number that is not a signed 64-bit integer.
    Float(f64),
}

impl Numeric {
    pub(crate) fn from_number(number: &Number) -> Self {
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or_default()), Self::Int)
    }

    #[expect(clippy::cast_precision_loss, reason = "Go compares an integer and a float as floats, too")]
    pub(crate) fn as_float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }
}

/// The range of floats that Go formats with an exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exponents {
    /// The range of `%v`: below 1e-4 and from 1e6 on.
    Verb,
    /// The range of json-iterator: below 1e-6 and from 1e21 on, with at least two exponent digits.
    JsonIterator,
    /// The range of encoding/json: below 1e-6 and from 1e21 on, with the minimum number of exponent digits.
    Json,
}

/// Formats a float with the fewest digits that identify it.
///
/// Source: Go strconv/ftoa.go, `%e is used if`; encoding/json/encode.go, `floatEncoder`;
/// json-iterator `stream_float.go`, `WriteFloat64`.
pub(crate) fn float(float: f64, exponents: Exponents) -> String {
    let text = format!("{float:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    let plain = if exponents == Exponents::Verb { -4..6 } else { -6..21 };
    if float == 0.0 || plain.contains(&power) {
        return format!("{float}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    let power = power.unsigned_abs();
    if exponents == Exponents::Json && sign == '-' {
        return format!("{mantissa}e{sign}{power}");
    }
    format!("{mantissa}e{sign}{power:02}")
}

/// Formats a value as Go's `%v` formats a pointer to structured-merge-diff's `valueUnstructured`.
pub(crate) fn pointer(value: &Value) -> String {
    format!("&{{{}}}", plain(value))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(_) => value.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{name}:{}", plain(value));
            format!("map[{}]", members.iter().map(member).collect::<Vec<_>>().join(" "))
        }
    }
}

/// Formats a value as Go's `%#v` formats a pointer to structured-merge-diff's `valueUnstructured`.
pub(crate) fn syntax_of_pointer(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{}}}", syntax(value))
}

fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) => value.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| format!("{}:{}", quote(name), syntax(value));
            let members = members.iter().map(member).collect::<Vec<_>>().join(", ");
            format!("map[string]interface {{}}{{{members}}}")
        }
    }
}

/// Returns the name of the Go type of a JSON value, as `%T` formats it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) => match Numeric::from_number(number) {
            Numeric::Int(_) => "int64",
            Numeric::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

pub(crate) fn number_text(number: &Number) -> String {
    match Numeric::from_number(number) {
        Numeric::Int(int) => int.to_string(),
        Numeric::Float(value) => float(value, Exponents::Verb),
    }
}

/// The characters that are escaped in JSON in addition to those that JSON requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// Escapes only the characters that JSON requires.
    Needed,
    /// Escapes the characters that are special in HTML.
    Html,
}

/// Appends `text` as a JSON string in double quotes.
///
/// Source: json-iterator `stream_str.go`, `WriteString` and `WriteStringWithHTMLEscaped`; encoding/json/encode.go,
/// `appendString`, which has short escapes for `\b` and `\f`.
pub(crate) fn write_json_text(out: &mut String, text: &str, escapes: Escapes, exponents: Exponents) {
    out.push('"');
    for letter in text.chars() {
        let html = escapes == Escapes::Html;
        // Writing to a string cannot fail.
        let _ = match letter {
            '"' => out.write_str("\\\""),
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            '\u{8}' if exponents == Exponents::Json => out.write_str("\\b"),
            '\u{c}' if exponents == Exponents::Json => out.write_str("\\f"),
            '\0'..='\u{1f}' => write!(out, "\\u{:04x}", u32::from(letter)),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => write!(out, "\\u{:04x}", u32::from(letter)),
            _ => out.write_char(letter),
        };
    }
    out.push('"');
}

/// Appends a value as compact JSON with sorted keys, escaped for HTML.
pub(crate) fn write_json(out: &mut String, value: &Value, exponents: Exponents) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => match Numeric::from_number(number) {
            Numeric::Int(int) => out.push_str(&int.to_string()),
            Numeric::Float(value) => out.push_str(&float(value, exponents)),
        },
        Value::String(text) => write_json_text(out, text, Escapes::Html, exponents),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item, exponents);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_text(out, name, Escapes::Html, exponents);
                out.push(':');
                write_json(out, value, exponents);
            }
            out.push('}');
        }
    }
}
