//! Represents a JSON document whose scalars keep their source text.
//!
//! A `test` operation treats `1` and `1.0` as different values, and also `"<"` and `"\u003c"`.

use std::collections::BTreeMap;

use serde_json::Value;

use kubernetes_types::quoting::{encode, escape_html};

/// A JSON value in a patch or in the document to patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A null in the document.
    Null,
    /// The `value` of an operation if it is null. A `test` distinguishes it from [`Node::Null`].
    Given,
    /// The `value` of a policy's operation if it is null. It is an object without members that cannot have members.
    NullObject,
    /// A boolean, a number, or a string, as its source text.
    Scalar(String),
    Object(BTreeMap<String, Node>),
    Array(Vec<Node>),
    /// A part of the document that no operation has accessed.
    Untouched(Value),
}

impl Node {
    /// Converts `value` into a node with scalars as the API server's encoder writes them.
    ///
    /// Source: apimachinery pkg/runtime/serializer/json/json.go: Go's encoder escapes for HTML.
    pub(super) fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) | Value::Number(_) => Self::Scalar(value.to_string()),
            Value::String(_) => Self::Scalar(encode(value)),
            Value::Array(values) => Self::Array(values.iter().map(Self::from_value).collect()),
            Value::Object(members) => Self::Object(
                members.iter().map(|(key, value)| (key.clone(), Self::from_value(value))).collect(),
            ),
        }
    }

    /// Wraps a value that no operation has accessed. Null becomes [`Node::Null`], because it does not have members.
    pub(super) fn untouched(value: Value) -> Self {
        if value.is_null() { Self::Null } else { Self::Untouched(value) }
    }

    /// Converts an untouched value into a node whose members are untouched.
    pub(super) fn open(&mut self) {
        let Self::Untouched(value) = self else { return };
        *self = match value.take() {
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(key, value)| (key, Self::untouched(value))).collect())
            }
            Value::Array(values) => Self::Array(values.into_iter().map(Self::untouched).collect()),
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                Self::from_value(&scalar)
            }
        };
    }

    /// Converts all untouched values in the node.
    pub(super) fn open_all(&mut self) {
        match self {
            Self::Null | Self::Given | Self::NullObject | Self::Scalar(_) => {}
            Self::Object(members) => members.values_mut().for_each(Self::open_all),
            Self::Array(nodes) => nodes.iter_mut().for_each(Self::open_all),
            Self::Untouched(value) => *self = Self::from_value(value),
        }
    }

    /// Converts the node as [`Self::to_value`] does, without copying untouched values.
    pub(super) fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Untouched(value) => value,
            Self::Array(nodes) => {
                Value::Array(nodes.into_iter().map(Self::into_value).collect::<Result<_, _>>()?)
            }
            Self::Object(members) => Value::Object(
                members
                    .into_iter()
                    .map(|(key, node)| Ok((key, node.into_value()?)))
                    .collect::<Result<_, String>>()?,
            ),
            other @ (Self::Null | Self::Given | Self::NullObject | Self::Scalar(_)) => other.to_value()?,
        })
    }

    /// Converts the node to a JSON value.
    ///
    /// # Errors
    /// Returns the error of Go's decoder if a number is out of the range of `f64`.
    pub(super) fn to_value(&self) -> Result<Value, String> {
        Ok(match self {
            Self::Null | Self::Given | Self::NullObject => Value::Null,
            Self::Untouched(value) => value.clone(),
            Self::Scalar(text) if text.starts_with('"') => Value::String(string(text)),
            Self::Scalar(text) => serde_json::from_str(text).map_err(|error| {
                format!("json: cannot unmarshal number {text} into Go value of type float64 ({error})")
            })?,
            Self::Array(nodes) => Value::Array(nodes.iter().map(Self::to_value).collect::<Result<_, _>>()?),
            Self::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, node)| Ok((key.clone(), node.to_value()?)))
                    .collect::<Result<_, String>>()?,
            ),
        })
    }

    /// Returns the value of a string node; `None` for other nodes.
    pub(super) fn as_string(&self) -> Option<String> {
        match self {
            Self::Scalar(text) if text.starts_with('"') => Some(string(text)),
            Self::Untouched(value) => value.as_str().map(str::to_owned),
            Self::Null
            | Self::Given
            | Self::NullObject
            | Self::Scalar(_)
            | Self::Object(_)
            | Self::Array(_) => None,
        }
    }

    /// Returns a copy of the node as the library makes it, and the size of the copy in bytes.
    ///
    /// The library encodes and decodes the node. Encoding escapes HTML characters in strings.
    pub(super) fn copied(&self) -> (Self, usize) {
        match self {
            Self::Null => (Self::Null, 0),
            Self::Given
            | Self::NullObject
            | Self::Scalar(_)
            | Self::Object(_)
            | Self::Array(_)
            | Self::Untouched(_) => {
                let mut copy = self.clone();
                copy.open_all();
                let size = copy.encode();
                (copy, size)
            }
        }
    }

    /// Escapes HTML characters in all strings, and returns the length of the compact JSON.
    fn encode(&mut self) -> usize {
        match self {
            Self::Untouched(value) => {
                *self = Self::from_value(value);
                self.encode()
            }
            Self::Null | Self::Given | Self::NullObject => "null".len(),
            Self::Scalar(text) => {
                *text = escape_html(text);
                text.len()
            }
            Self::Array(nodes) => nodes.iter_mut().map(|node| node.encode() + 1).sum::<usize>().max(1) + 1,
            Self::Object(members) => {
                let member = |(key, node): (&String, &mut Self)| {
                    encode(&Value::from(key.as_str())).len() + 1 + node.encode() + 1
                };
                members.iter_mut().map(member).sum::<usize>().max(1) + 1
            }
        }
    }

    /// Returns the nesting depth of the objects and arrays in the node.
    pub(super) fn depth(&self) -> usize {
        match self {
            Self::Null | Self::Given | Self::NullObject | Self::Scalar(_) => 0,
            Self::Untouched(value) => Self::from_value(value).depth(),
            Self::Array(nodes) => 1 + nodes.iter().map(Self::depth).max().unwrap_or_default(),
            Self::Object(members) => 1 + members.values().map(Self::depth).max().unwrap_or_default(),
        }
    }

    /// Returns the number of values in the node, including the node itself.
    pub(super) fn values(&self) -> usize {
        match self {
            Self::Null | Self::Given | Self::NullObject | Self::Scalar(_) => 1,
            Self::Untouched(value) => Self::from_value(value).values(),
            Self::Array(nodes) => 1 + nodes.iter().map(Self::values).sum::<usize>(),
            Self::Object(members) => 1 + members.values().map(Self::values).sum::<usize>(),
        }
    }

    /// Returns the name of this kind of value in Go's decoder.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null | Self::Given | Self::NullObject => "null",
            Self::Untouched(value) => kubernetes_types::json::json_type(value),
            Self::Scalar(text) => match text.as_bytes().first() {
                Some(b'"') => "string",
                Some(b't' | b'f') => "bool",
                _ => "number",
            },
            Self::Object(_) => "object",
            Self::Array(_) => "array",
        }
    }
}

/// Decodes the text between the quotes of a valid JSON string; an unpaired surrogate becomes U+FFFD.
pub(super) fn string(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw);
    let mut units = Vec::new();
    let mut rest = inner.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            flush(&mut units, &mut text);
            text.push(character);
            continue;
        }
        match rest.next() {
            Some('u') => {
                let hexadecimal = rest.as_str().get(..4).unwrap_or_default();
                units.push(u16::from_str_radix(hexadecimal, 16).unwrap_or(0xfffd));
                rest = rest.as_str().get(4..).unwrap_or_default().chars();
            }
            other => {
                flush(&mut units, &mut text);
                text.extend(other.map(|letter| match letter {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    itself => itself,
                }));
            }
        }
    }
    flush(&mut units, &mut text);
    text
}

fn flush(units: &mut Vec<u16>, text: &mut String) {
    text.push_str(&String::from_utf16_lossy(units));
    units.clear();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::reader::read;
    use super::*;

    #[track_caller]
    fn check(value: &Value, depth: usize, values: usize) {
        let compact = value.to_string();
        for node in [read(compact.as_bytes()).unwrap(), Node::untouched(value.clone())] {
            assert_eq!((node.depth(), node.values()), (depth, values), "{compact}");
            let length = if node == Node::Null { 0 } else { compact.replace('<', r"\u003c").len() };
            assert_eq!(node.copied().1, length, "{compact}");
        }
    }

    #[test]
    fn depth_and_values_are_counted() {
        check(&json!(null), 0, 1);
        check(&json!("<"), 0, 1);
        check(&json!([]), 1, 1);
        check(&json!({}), 1, 1);
        check(&json!([1, null]), 1, 3);
        check(&json!({"a": true, "<": 1.5}), 1, 3);
        check(&json!({"a": [1, {"b": [[], {}]}], "c": []}), 5, 8);
    }
}
