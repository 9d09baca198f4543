//! Map values and their keys.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::error::Error;

use super::{Origin, Timestamp, Value, structured};
use crate::schema::Schema;

/// A map. It is a borrowed JSON object or was created during the evaluation.
#[derive(Clone, Debug)]
pub struct Map<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    Json(&'a serde_json::Map<String, Json>, Origin),
    /// A JSON object whose members with these keys are unknown.
    Partial(&'a serde_json::Map<String, Json>, Origin, &'a [&'a str]),
    /// A map in a document that is read through the schema of the object or map.
    Structured(&'a serde_json::Map<String, Json>, &'a Schema),
    Shared(Arc<Entries<'a>>),
}

/// Entries in insertion order, with an index of the keys if there are many.
#[derive(Clone, Debug, Default)]
struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<Key, usize>,
}

/// A key of a map: like Go, cel-go compares keys by type and value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Go's `nil`.
    Nothing,
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(Arc<str>),
    Duration(i64),
    Timestamp(Timestamp),
    Type(Arc<str>),
    /// `optional.none()`. All such values are the same key.
    None,
    /// A library value, identified by its type and text.
    Opaque(&'static str, String),
    /// A value that Go cannot compare, identified by its text.
    Text(String),
    /// A value that Go holds by reference, identified by its address, so that it equals only itself.
    Reference(usize),
}

/// The maximum number of entries for which a linear search is faster than a hash lookup.
const SCANNED: usize = 8;

impl Key {
    /// Returns the key of a value, or `None` for values that do not equal any key, such as NaN.
    pub(super) fn from_value(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Double(value) if value.is_nan() => return None,
            // Adding zero turns -0.0 into the equal 0.0.
            Value::Double(value) => Self::Double((value + 0.0).to_bits()),
            Value::String(text) => Self::String(text.as_str().into()),
            Value::Duration(value) => Self::Duration(*value),
            Value::Type(name) => Self::Type(name.clone()),
            Value::Timestamp(time) if time.has_known_zone() => Self::Timestamp(*time),
            Value::Optional(None) => Self::None,
            Value::Opaque(opaque) if opaque.is_key_by_text() => {
                Self::Opaque(opaque.type_name(), opaque.to_string())
            }
            Value::List(_) | Value::Map(_) | Value::Opaque(_) => Self::Reference(address(value)?),
            // Reading a variable creates a new optional, so an optional with a value does not equal any key.
            Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Optional(Some(_))
            | Value::Object(_)
            | Value::Preserved(_)
            | Value::Invalid(_) => return None,
        })
    }
}

/// Returns the address of a value that Go holds by reference. Returns `None` for JSON, because Go creates a new value
/// each time.
fn address(value: &Value<'_>) -> Option<usize> {
    match value {
        Value::List(list) => list.address(),
        Value::Map(Map(Repr::Shared(entries))) => Some(Arc::as_ptr(entries).addr()),
        Value::Opaque(opaque) => Some(Arc::as_ptr(opaque).cast::<()>().addr()),
        _ => None,
    }
}

/// Returns whether two values are equal as map keys.
#[expect(clippy::float_cmp, reason = "keys are compared as Go compares them")]
pub(crate) fn same_key(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left.as_str() == right.as_str(),
        (Value::Int(left), Value::Int(right)) | (Value::Duration(left), Value::Duration(right)) => {
            left == right
        }
        (Value::Uint(left), Value::Uint(right)) => left == right,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Double(left), Value::Double(right)) => left == right,
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right && left.has_known_zone(),
        (Value::Null, Value::Null) | (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Opaque(left), Value::Opaque(right)) => {
            Arc::ptr_eq(left, right)
                || left.is_key_by_text()
                    && left.type_name() == right.type_name()
                    && left.to_string() == right.to_string()
        }
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => {
            address(left).is_some_and(|left| address(right) == Some(left))
        }
        _ => false,
    }
}

impl<'a> Entries<'a> {
    fn position(&self, key: &Value<'_>) -> Option<usize> {
        if self.entries.len() <= SCANNED {
            return self.entries.iter().position(|(known, _)| same_key(known, key));
        }
        self.index.get(&Key::from_value(key)?).copied()
    }

    fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(entry) = self.position(&key).and_then(|position| self.entries.get_mut(position)) {
            entry.1 = value;
            return;
        }
        self.entries.push((key, value));
        if self.entries.len() == SCANNED + 1 {
            self.index = (self.entries.iter().enumerate())
                .filter_map(|(position, (key, _))| Some((Key::from_value(key)?, position)))
                .collect();
        } else if self.entries.len() > SCANNED
            && let Some(key) = self.entries.last().and_then(|(key, _)| Key::from_value(key))
        {
            self.index.insert(key, self.entries.len() - 1);
        }
    }
}

impl<'a> Map<'a> {
    /// Creates a map from a JSON object.
    pub fn from_json(members: &'a serde_json::Map<String, Json>, origin: Origin) -> Self {
        Self(Repr::Json(members, origin))
    }

    /// Creates a map from a JSON object whose members with the keys `unknown` are unknown: selecting or testing an
    /// unknown member is an error. The map as a whole contains only the known members.
    pub fn partial(
        members: &'a serde_json::Map<String, Json>,
        unknown: &'a [&'a str],
        origin: Origin,
    ) -> Self {
        Self(Repr::Partial(members, origin, unknown))
    }

    /// Creates a map from a JSON object that is read through its schema.
    pub(super) fn from_structured(members: &'a serde_json::Map<String, Json>, schema: &'a Schema) -> Self {
        Self(Repr::Structured(members, schema))
    }

    /// Returns whether the map is part of a document that is read through a schema.
    pub(crate) fn is_structured(&self) -> bool {
        matches!(self.0, Repr::Structured(..))
    }

    /// Returns the JSON and the schema if the map is part of a document that is read through a schema.
    pub(super) fn structured(&self) -> Option<(&'a serde_json::Map<String, Json>, &'a Schema)> {
        if let Repr::Structured(members, schema) = self.0 { Some((members, schema)) } else { None }
    }

    /// Returns the map's JSON, or `None` if Go does not represent the map as JSON.
    pub(super) fn json(&self) -> Option<&'a serde_json::Map<String, Json>> {
        match self.0 {
            Repr::Structured(members, _) | Repr::Json(members, Origin::Unstructured) => Some(members),
            Repr::Json(..) | Repr::Partial(..) | Repr::Shared(_) => None,
        }
    }

    /// Returns the number of entries; for an object, this includes members that are not in its schema.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Json(members, _) | Repr::Partial(members, ..) | Repr::Structured(members, _) => {
                members.len()
            }
            Repr::Shared(entries) => entries.entries.len(),
        }
    }

    /// Returns whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how kube-apiserver represents the map. Maps created by the evaluation are unstructured.
    pub fn origin(&self) -> Origin {
        match self.0 {
            Repr::Json(_, origin) | Repr::Partial(_, origin, _) => origin,
            Repr::Structured(..) | Repr::Shared(_) => Origin::Unstructured,
        }
    }

    /// Returns whether kube-apiserver has a separate type for the map. Such maps do not have a zero value, and are
    /// compared only with maps.
    pub(super) fn is_wrapped(&self) -> bool {
        self.origin().is_typed() || self.is_structured()
    }

    /// Returns the name of the Go type that represents the map.
    pub(super) fn go_type(&self) -> &'static str {
        match self.origin() {
            _ if self.is_structured() => "*common.unstructuredMap",
            Origin::Typed | Origin::Request => "*common.reflectSchemalessTypedStruct",
            Origin::TypedMap => "*common.reflectSchemalessTypedMap",
            Origin::Unstructured => "*types.baseMap",
        }
    }

    /// Returns the value of a string key, or `None` if the map does not contain the key.
    pub fn member(&self, key: &str) -> Option<Value<'a>> {
        match &self.0 {
            Repr::Json(members, origin) | Repr::Partial(members, origin, _) => {
                members.get(key).map(|value| Value::from_json_of(value, origin.of_member(key, value)))
            }
            Repr::Structured(members, schema) => structured::find(members, schema, key),
            Repr::Shared(_) => self.get(&Value::from(key)),
        }
    }

    /// Returns the value of a key; a number also finds an equal key of a different numeric type.
    ///
    /// Source: cel-go common/types/map.go, `refValMapAccessor.Find`.
    pub fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        let entries = match &self.0 {
            Repr::Json(..) | Repr::Partial(..) => return self.member(key.as_str()?),
            Repr::Structured(..) => {
                let Some(key) = key.as_str() else {
                    return Some(Value::Invalid(Error::no_such_overload().to_string().into()));
                };
                return self.member(key);
            }
            Repr::Shared(entries) => entries,
        };
        let find =
            |key: &Value<'_>| entries.entries.get(entries.position(key)?).map(|(_, value)| value.clone());
        find(key).or_else(|| match *key {
            Value::Int(value) => find(&Value::Uint(u64::try_from(value).ok()?)),
            Value::Uint(value) => find(&Value::Int(i64::try_from(value).ok()?)),
            Value::Double(value) => super::number::as_int(value)
                .and_then(|value| find(&Value::Int(value)))
                .or_else(|| find(&Value::Uint(super::number::as_uint(value)?))),
            _ => None,
        })
    }

    /// Returns whether the map contains exactly this key; equal keys of other numeric types do not count.
    pub(crate) fn has_key(&self, key: &Value<'_>) -> bool {
        match &self.0 {
            Repr::Json(members, _) | Repr::Partial(members, ..) => {
                key.as_str().is_some_and(|key| members.contains_key(key))
            }
            Repr::Structured(..) => self.get(key).is_some(),
            Repr::Shared(entries) => entries.position(key).is_some(),
        }
    }

    /// Returns the value of a key, as used by `_[_]` and `in`.
    ///
    /// # Errors
    ///
    /// Returns an error if a typed map is searched for a key other than a string, if the member of a partial map is
    /// unknown, or if the member does not match its schema. For maps created by the evaluation, returns
    /// kube-apiserver's panic if Go cannot hash the key.
    pub fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, Error> {
        if let Repr::Partial(_, _, unknown) = self.0
            && let Some(unknown) = unknown.iter().find(|unknown| key.as_str() == Some(unknown))
        {
            return Err(Error::new(format!("not known: {unknown}")));
        }
        if self.origin().is_typed() && key.as_str().is_none() {
            return Err(Error::new(format!("unsupported map key type: {}", key.go_type())));
        }
        if self.is_structured() {
            return self.get(key).map(Value::valid).transpose();
        }
        match key.unhashable() {
            // An empty map is not searched.
            Some(name) if matches!(self.0, Repr::Shared(_)) && !self.is_empty() => {
                Err(Error::Panic(format!("runtime error: hash of unhashable type {name}")))
            }
            _ => Ok(self.get(key)),
        }
    }

    /// Returns the entries, sorted by key for a JSON object, otherwise in insertion order; kube-apiserver's order is
    /// random.
    pub fn iter(&self) -> Iter<'_, 'a> {
        match &self.0 {
            Repr::Json(members, origin) | Repr::Partial(members, origin, _) => {
                Iter::Json(members.iter(), *origin)
            }
            Repr::Structured(members, schema) => Iter::Structured(members, members.keys(), schema),
            Repr::Shared(entries) => Iter::Shared(entries.entries.iter()),
        }
    }

    /// Returns the iterations of a comprehension: the entries, and null for each member of an object that is not in its
    /// schema.
    ///
    /// Source: apiserver pkg/cel/common/valuesunstructured.go, `unstructuredMap.Iterator`, which allocates a key for
    /// each member.
    pub(crate) fn turns(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let unknown = self.structured().map_or(0, |(members, schema)| {
            members.keys().filter(|name| schema.member(name).is_none()).count()
        });
        let value = Value::Invalid(Error::no_such_overload().to_string().into());
        self.iter().chain(std::iter::repeat_n((Value::Null, value), unknown))
    }

    /// Sets an entry in place, or in a copy if the map is shared.
    pub fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Repr::Shared(entries) = &mut self.0 {
            Arc::make_mut(entries).insert(key, value);
            return;
        }
        let mut map: Self = self.iter().collect();
        map.insert(key, value);
        *self = map;
    }

    /// Removes the entry with this key, if any.
    pub(crate) fn remove(&mut self, key: &Value<'a>) {
        *self = self.iter().filter(|(known, _)| !same_key(known, key)).collect();
    }
}

impl Default for Map<'_> {
    fn default() -> Self {
        Self(Repr::Shared(Arc::default()))
    }
}

impl<'a> FromIterator<(Value<'a>, Value<'a>)> for Map<'a> {
    /// Creates a map; the last of several entries with the same key is kept.
    fn from_iter<I: IntoIterator<Item = (Value<'a>, Value<'a>)>>(entries: I) -> Self {
        let mut map = Entries::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        Self(Repr::Shared(Arc::new(map)))
    }
}

impl<'m, 'a> IntoIterator for &'m Map<'a> {
    type Item = (Value<'a>, Value<'a>);
    type IntoIter = Iter<'m, 'a>;

    fn into_iter(self) -> Iter<'m, 'a> {
        self.iter()
    }
}

/// An iterator over the entries of a map.
#[derive(Debug)]
#[non_exhaustive]
pub enum Iter<'m, 'a> {
    /// Entries of a JSON object.
    Json(serde_json::map::Iter<'a>, Origin),
    /// Entries of a JSON object that is read through its schema; members that are not in the schema are skipped.
    Structured(&'a serde_json::Map<String, Json>, serde_json::map::Keys<'a>, &'a Schema),
    /// Entries of a map created by the evaluation.
    Shared(std::slice::Iter<'m, (Value<'a>, Value<'a>)>),
}

impl<'a> Iterator for Iter<'_, 'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Json(members, origin) => {
                let (key, value) = members.next()?;
                Some((Value::from(key.as_str()), Value::from_json_of(value, origin.of_member(key, value))))
            }
            Self::Structured(members, names, schema) => {
                names.find_map(|name| structured::entry(members, schema, name))
            }
            Self::Shared(entries) => entries.next().cloned(),
        }
    }
}
