//! The values of expressions at run time.

mod arithmetic;
mod convert;
mod display;
mod equality;
mod json;
mod layout;
mod list;
mod map;
mod number;
mod object;
mod order;
mod structured;
mod timestamp;
mod zone;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub use go_std::duration::{format_duration, parse_duration};
use serde_json::Value as Json;

use crate::error::Error;

pub use arithmetic::{add, divide, modulo, multiply, negate, subtract};
pub use convert::convert;
pub use equality::{contains, equal, equals};
pub use json::{Foreign, JsonLimit, ObjectJson, to_json};
pub use list::{Iter as Elements, List};
pub use map::{Iter as MapEntries, Map};
pub use number::format_double;
pub(crate) use number::{positional, shortest};
pub use object::{JSON_PATCH, OBJECT, Object};
pub use order::compare;
pub use timestamp::Timestamp;
pub use zone::Civil;

/// A value at run time.
///
/// Values borrow from the JSON that is bound to variables and from the program: nothing is converted or
/// copied until an expression needs it. Cloning is cheap. `Display` writes the text in error messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An unsigned 64-bit integer.
    Uint(u64),
    /// A 64-bit floating-point number.
    Double(f64),
    /// A Unicode string.
    String(Text<'a>),
    /// A sequence of bytes.
    Bytes(Arc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A point in time with a UTC offset.
    Timestamp(Timestamp),
    /// A list of values.
    List(List<'a>),
    /// A map, or an object with declared fields.
    Map(Map<'a>),
    /// An optional value; `None` if absent.
    Optional(Option<Arc<Value<'a>>>),
    /// A type, identified by its name at run time, such as `list`.
    Type(Arc<str>),
    /// An object that the expression created: a change to an object, or a JSON patch operation.
    Object(Arc<Object<'a>>),
    /// A value of a library type.
    Opaque(Arc<dyn Opaque>),
    /// A value that a schema keeps without a type (`x-kubernetes-preserve-unknown-fields`).
    Preserved(&'a Json),
    /// A part of a document that does not match its schema. Every use returns this error.
    Invalid(Arc<str>),
}

/// A string. It is borrowed or was created during the evaluation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Text<'a> {
    /// A part of the input or of the program.
    Borrowed(&'a str),
    /// A string that was created during the evaluation.
    Shared(Arc<str>),
}

/// How kube-apiserver represents the object that contains a JSON value. The behavior of lists and maps depends slightly
/// on the representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Origin {
    /// The object is a custom resource. Its maps and lists are represented as JSON.
    ///
    /// Source: cel-go common/types/map.go and list.go.
    #[default]
    Unstructured,
    /// The object has a Go type; examples are built-in objects and `namespaceObject`.
    ///
    /// Source: apiserver pkg/cel/common/valuesschemalesstyped.go.
    Typed,
    /// A Go map in an object with a Go type, such as labels.
    TypedMap,
    /// The variable `request`: a Go type. Its `options` are represented as JSON.
    Request,
}

/// The fields of built-in types that are Go maps and not structs.
///
/// Source: api core/v1/types.go and its siblings.
const MAPS: [&str; 25] = [
    "allocatable",
    "allocatedResources",
    "annotations",
    "attributes",
    "binaryData",
    "capacity",
    "data",
    "default",
    "defaultRequest",
    "driverVersions",
    "extra",
    "hard",
    "labels",
    "limits",
    "matchLabels",
    "max",
    "maxLimitRequestRatio",
    "min",
    "nodeSelector",
    "overhead",
    "parameters",
    "requests",
    "stringData",
    "used",
    "volumeAttributes",
];

impl Origin {
    /// Returns whether the origin is a Go type.
    pub(crate) fn is_typed(self) -> bool {
        self != Self::Unstructured
    }

    /// Returns how kube-apiserver represents a member of an object with this origin.
    fn of_member(self, name: &str, value: &Json) -> Self {
        let is_map = || match name {
            // The selector of a Service is a map; others are structs whose fields are not strings.
            "selector" => value.as_object().is_some_and(|members| members.values().all(Json::is_string)),
            _ => MAPS.binary_search(&name).is_ok(),
        };
        match (self, name) {
            (Self::Unstructured, _) | (Self::Request, "options") | (Self::Typed, "fieldsV1") => {
                Self::Unstructured
            }
            (Self::Typed | Self::Request, _) if is_map() => Self::TypedMap,
            (Self::Typed | Self::TypedMap | Self::Request, _) => Self::Typed,
        }
    }
}

/// A value of a library type, such as a quantity. `Display` writes the text of the value.
pub trait Opaque: Any + fmt::Debug + fmt::Display + Send + Sync {
    /// Returns the name that `type()` and errors show, such as `kubernetes.Quantity`.
    fn type_name(&self) -> &'static str;

    /// Returns the name of the value's Go type, as `%T` writes it in messages.
    fn go_type(&self) -> &'static str {
        self.type_name()
    }

    /// Returns the name in the errors of conversions to Go types, such as `Quantity`.
    fn native_name(&self) -> &'static str {
        self.type_name()
    }

    /// Returns whether the text of the value is accepted where a message requires a string.
    fn is_text(&self) -> bool {
        false
    }

    /// Returns whether both values are equal; `other` may have a different type.
    ///
    /// Returns `None` if the comparison results in `no such overload`. This is the case for every `other` that is not a
    /// [`Value::Opaque`].
    fn equals(&self, other: &dyn Opaque) -> Option<bool>;

    /// Returns the Go type if the value cannot be a map key, or `None` if it can.
    fn unhashable(&self) -> Option<&'static str> {
        None
    }

    /// Returns whether Go treats values of this type with the same text as the same map key.
    fn is_key_by_text(&self) -> bool {
        false
    }

    /// Returns the size that determines the cost of calls, such as the size of a CIDR; the default is 1.
    fn size(&self) -> u64 {
        1
    }
}

impl Text<'_> {
    /// Returns the string as a slice.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl<'a> Value<'a> {
    /// Converts JSON as in Kubernetes' unstructured objects: numbers are `int` if they are 64-bit integers,
    /// otherwise `double`.
    pub fn from_json(json: &'a Json) -> Self {
        Self::from_json_of(json, Origin::Unstructured)
    }

    /// Converts JSON that kube-apiserver represents as `origin`.
    pub fn from_json_of(json: &'a Json, origin: Origin) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => {
                number.as_i64().map_or_else(|| Self::Double(number.as_f64().unwrap_or_default()), Self::Int)
            }
            Json::String(text) => Self::String(Text::Borrowed(text)),
            Json::Array(elements) => Self::List(List::from_json(elements, origin)),
            Json::Object(members) => Self::Map(Map::from_json(members, origin)),
        }
    }

    /// Returns the value itself unless it is [`Value::Invalid`].
    ///
    /// # Errors
    ///
    /// Returns an error if the value does not match its schema.
    pub(crate) fn valid(self) -> Result<Self, Error> {
        if let Self::Invalid(why) = self { Err(Error::new(&*why)) } else { Ok(self) }
    }

    /// Creates a string value.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// Creates a list value.
    pub fn list(elements: Vec<Self>) -> Self {
        Self::List(List::from(elements))
    }

    /// Creates `optional.of(value)`.
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Returns the string, or `None` for other values.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text.as_str()) } else { None }
    }

    /// Returns the library value, or `None` if the value is not a `T`.
    pub fn downcast<T: Opaque>(&self) -> Option<&T> {
        let Self::Opaque(opaque) = self else { return None };
        let any: &dyn Any = opaque.as_ref();
        any.downcast_ref()
    }

    /// Returns the name of the value's type at run time, as `type()` returns and errors show.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => crate::types::OPTIONAL,
            Self::Type(_) => "type",
            Self::Opaque(opaque) => opaque.type_name(),
            Self::Object(object) => object.type_name(),
            Self::Preserved(_) => "unknown",
            Self::Invalid(_) => "error",
        }
    }

    /// Returns the result of `size()`, in code points, bytes, elements, or entries, or `None` for values without a
    /// size.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::String(text) => Some(count(text.as_str())),
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::List(list) => Some(list.len() as u64),
            Self::Map(map) => Some(map.len() as u64),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Duration(_)
            | Self::Timestamp(_)
            | Self::Optional(_)
            | Self::Type(_)
            | Self::Object(_)
            | Self::Opaque(_)
            | Self::Preserved(_)
            | Self::Invalid(_) => None,
        }
    }

    /// Returns the size that determines costs: the size of the value, or of the value in an optional, or 1 for values
    /// without a size.
    ///
    /// Source: cel-go interpreter/runtimecost.go, `actualSize`.
    pub fn cost_size(&self) -> u64 {
        if let Self::Optional(Some(value)) = self { value.cost_size() } else { self.size_or_one() }
    }

    /// Returns the size that determines the costs of extension functions, or 1 for values without a size.
    ///
    /// Unlike [`Value::cost_size`], this ignores the value in an optional.
    ///
    /// Source: apiserver pkg/cel/library/cost.go and cel-go ext/costs.go, `actualSize`.
    pub fn size_or_one(&self) -> u64 {
        if let Self::Opaque(opaque) = self { opaque.size() } else { self.size().unwrap_or(1) }
    }

    /// Returns the value as a list index. The index may be out of range.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not an integer.
    ///
    /// Source: cel-go common/types/list.go, `IndexOrError`.
    pub fn as_index(&self) -> Result<i64, Error> {
        let index = match self {
            Self::Int(index) => return Ok(*index),
            Self::Double(value) => number::as_int(*value),
            Self::Uint(value) => i64::try_from(*value).ok(),
            _ => {
                return Err(Error::new(format!("unsupported index type '{}' in list", self.type_name())));
            }
        };
        index.ok_or_else(|| Error::new(format!("unsupported index value {self} in list")))
    }

    /// Returns the name of the value's Go type if the value cannot be a map key, neither for lookup nor for insertion.
    pub(crate) fn unhashable(&self) -> Option<&'static str> {
        match self {
            Self::Bytes(_) => Some("types.Bytes"),
            Self::Opaque(opaque) => opaque.unhashable(),
            _ => None,
        }
    }

    /// Returns whether the value is the zero value of its type. `optional.ofNonZeroValue` treats it as absent.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) | Self::Duration(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.as_str().is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Timestamp(time) => time.is_zero(),
            Self::List(list) => !list.is_wrapped() && list.is_empty(),
            Self::Map(map) => !map.is_wrapped() && map.is_empty(),
            Self::Object(object) => object.is_zero(),
            Self::Optional(_) | Self::Type(_) | Self::Opaque(_) | Self::Preserved(_) | Self::Invalid(_) => {
                false
            }
        }
    }
}

fn count(text: &str) -> u64 {
    let characters = if text.is_ascii() { text.len() } else { text.chars().count() };
    characters as u64
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Text::Borrowed(text))
    }
}
