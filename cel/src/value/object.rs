//! Objects that an expression creates to describe a change: `Object{}` and `JSONPatch{}`.
//!
//! Source: apiserver pkg/cel/mutation/dynamic/objects.go and pkg/cel/mutation/jsonpatch.go.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::error::Error;

use super::{List, Value, equality};

/// The type of a change to an object. `Object.spec` is the type of its field `spec`.
pub const OBJECT: &str = "Object";

/// The type of a JSON patch operation.
pub const JSON_PATCH: &str = "JSONPatch";

/// An object that an expression creates, with its type and fields.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    name: Arc<str>,
    fields: Vec<(Arc<str>, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// Returns whether `name` is `Object`, the type of one of its fields (`Object.spec`), or `JSONPatch`.
    pub(crate) fn is_named(name: &str) -> bool {
        let rest = name.strip_prefix(OBJECT);
        name == JSON_PATCH || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Creates an object. The last of several values of a field is used.
    ///
    /// # Errors
    ///
    /// Returns an error if a field of a JSON patch operation has a value of the wrong type.
    pub(crate) fn create(name: &str, given: &[(&str, Value<'a>)]) -> Result<Self, Error> {
        let mut fields: Vec<(Arc<str>, Value<'a>)> = Vec::with_capacity(given.len());
        for (field, value) in given {
            if name == JSON_PATCH && *field != "value" && value.as_str().is_none() {
                let found = native_type(value);
                return Err(Error::new(format!("unexpected type {found} for JSONPatchType '{field}' field")));
            }
            match fields.iter_mut().find(|(known, _)| **known == **field) {
                Some((_, known)) => *known = value.clone(),
                None => fields.push(((*field).into(), value.clone())),
            }
        }
        Ok(Self { name: name.into(), fields })
    }

    /// Returns the name of the type, such as `Object.spec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the object is a JSON patch operation.
    pub fn is_operation(&self) -> bool {
        &*self.name == JSON_PATCH
    }

    /// Returns the fields in the order in which the expression sets them.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the value of a field, or `None` if the expression does not set the field.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Returns the value that an expression selects. A field that is not set is null, or an empty string in an
    /// operation.
    ///
    /// Objects in the field become maps.
    pub(crate) fn select(&self, name: &str, presence: bool) -> Option<Value<'a>> {
        let found =
            self.field(name).map(|value| if self.is_operation() { value.clone() } else { plain(value) });
        match found {
            Some(value) if self.is_operation() && presence && value.as_str() == Some("") => None,
            Some(value) => Some(value),
            None if presence => None,
            None if self.is_operation() && name != "value" => Some(Value::text("")),
            None => Some(Value::Null),
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        if self.is_operation() { JSON_PATCH } else { OBJECT }
    }

    pub(super) fn go_type(&self) -> &'static str {
        if self.is_operation() { "*mutation.JSONPatchVal" } else { "*dynamic.ObjectVal" }
    }

    pub(super) fn is_zero(&self) -> bool {
        !self.is_operation() && self.fields.is_empty()
    }

    pub(super) fn equals(&self, other: &Self) -> Result<bool, Error> {
        if self.name != other.name || self.fields.len() != other.fields.len() {
            return Ok(false);
        }
        for (name, value) in self.fields() {
            let Some(other) = other.field(name) else { return Ok(false) };
            if !equality::equal(value, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Converts objects to maps, including objects in fields and lists. Objects that are patch operations are unchanged.
fn plain<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Object(object) if !object.is_operation() => {
            let fields = object.fields.iter();
            Value::Map(fields.map(|(name, value)| (Value::text(Arc::clone(name)), plain(value))).collect())
        }
        Value::List(list) if list.iter().any(|element| matches!(element, Value::Object(_))) => {
            Value::List(List::from(list.iter().map(|element| plain(&element)).collect::<Vec<_>>()))
        }
        other => other.clone(),
    }
}

/// Returns the Go type of the value that a CEL value wraps, as `%T` writes it.
fn native_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::Bytes(_) => "[]uint8",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        Value::Duration(_) => "time.Duration",
        Value::Timestamp(_) => "time.Time",
        other => other.go_type(),
    }
}

impl Display for Object<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{", self.name)?;
        for (index, (name, value)) in self.fields().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}: {value}")?;
        }
        f.write_str("}")
    }
}
