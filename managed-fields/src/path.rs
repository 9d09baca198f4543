//! Paths to parts of an object, and their elements in managedFields.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use go_std::quote::quote;
use serde_json::Value;

use crate::go::{self, Escapes, Exponents};
use crate::reader::{self, Reader};
use crate::value;

/// The elements from the root of an object to a field.
pub type Path = Vec<PathElement>;

/// An element of a path, ordered as in managedFields: fields, items by key, items by value, items by index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PathElement {
    /// A member of a struct or map: `f:name`.
    Field(Arc<str>),
    /// An item of a list with keys: `k:{"name":"a"}`. The keys are sorted by name.
    Key(Arc<[(String, Value)]>),
    /// An item of a set: `v:"a"`.
    Value(Arc<Value>),
    /// An item by its zero-based index: `i:0`.
    Index(i64),
    /// An item without a key. Such an element is never encoded.
    Unknown,
}

impl PathElement {
    /// Creates an element for a member of a struct or map.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Creates an element for an item with these keys, in any order.
    pub fn key(fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by(|(name, _), (other, _)| name.cmp(other));
        Self::Key(fields.into())
    }

    /// Creates an element for an item of a set.
    pub fn value(value: Value) -> Self {
        Self::Value(Arc::new(value))
    }

    /// Parses the output of [`Self::serialize`]; returns `None` for an unknown kind of element, such as `x:y`.
    ///
    /// # Errors
    /// Returns kube-apiserver's error if the text is invalid.
    ///
    /// Source: structured-merge-diff fieldpath/serialize-pe.go, `DeserializePathElement`.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let bytes = text.as_bytes();
        let (&[kind, separator], Some(rest)) = (bytes.first_chunk().unwrap_or(&[0, 0]), text.get(2..)) else {
            // If the second byte is in the middle of a character, there is no kind.
            return match bytes {
                [_, _, ..] => Err(format!("missing colon: {text}")),
                _ => Err("key must be 2 characters long:".to_owned()),
            };
        };
        if separator != b':' {
            return Err(format!("missing colon: {text}"));
        }
        match kind {
            b'f' => Ok(Some(Self::field(rest))),
            b'v' => {
                let mut reader = Reader::new(rest.as_bytes());
                let value = reader.value();
                reader.finish()?;
                Ok(Some(Self::value(value)))
            }
            b'k' => {
                let mut reader = Reader::new(rest.as_bytes());
                let mut fields = Vec::new();
                reader.object(reader::OBJECT, |reader, name| fields.push((name, reader.value())));
                reader.finish()?;
                Ok(Some(Self::key(fields)))
            }
            b'i' => index(rest).map(|index| Some(Self::Index(index))),
            _ => Ok(None),
        }
    }

    /// Encodes the element as a member name in `fieldsV1`; returns `None` if the element cannot be encoded.
    ///
    /// Source: structured-merge-diff fieldpath/serialize-pe.go, `serializePathElementToWriter`.
    pub fn serialize(&self) -> Option<String> {
        let mut out = String::new();
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(fields) => {
                out.push_str("k:{");
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    go::write_json_text(&mut out, name, Escapes::Needed, Exponents::JsonIterator);
                    out.push(':');
                    go::write_json(&mut out, value, Exponents::JsonIterator);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                go::write_json(&mut out, value, Exponents::JsonIterator);
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
            Self::Unknown => return None,
        }
        Some(out)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
            Self::Unknown => 4,
        }
    }
}

/// Parses an index; returns Go's error if the text is not an integer.
///
/// Source: Go strconv/number.go, `Atoi`.
fn index(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(format!("strconv.Atoi: parsing {}: invalid syntax", quote(text)));
    }
    text.parse().map_err(|_out_of_range| format!("strconv.Atoi: parsing {}: value out of range", quote(text)))
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(name), Self::Field(other)) => name.cmp(other),
            (Self::Key(fields), Self::Key(other)) => {
                let mut orders =
                    fields.iter().zip(other.iter()).map(|((name, value), (other_name, other))| {
                        name.cmp(other_name).then_with(|| value::compare(value, other))
                    });
                orders.find(|order| order.is_ne()).unwrap_or_else(|| fields.len().cmp(&other.len()))
            }
            (Self::Value(value), Self::Value(other)) => value::compare(value, other),
            (Self::Index(index), Self::Index(other)) => index.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// Formats the element for errors and conflicts: `.spec`, `[name="a"]`, `[="a"]`, `[0]`.
///
/// Source: structured-merge-diff fieldpath/element.go, `String`; value/value.go, `ToString`.
impl fmt::Display for PathElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(name, value)| format!("{name}={}", readable(value))).collect();
                write!(formatter, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(formatter, "[={}]", readable(value)),
            Self::Index(index) => write!(formatter, "[{index}]"),
            Self::Unknown => formatter.write_str("{{invalid path element}}"),
        }
    }
}

fn readable(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => go::number_text(number),
        Value::String(text) => quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(readable).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}={}", readable(value)));
            members.collect::<Vec<_>>().concat()
        }
    }
}

/// Formats a path for errors and conflicts: `.spec.containers[name="a"].image`.
pub(crate) fn text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
