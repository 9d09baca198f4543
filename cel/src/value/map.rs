//! Maps.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::function::Error;

use super::{Origin, Timestamp, Value, structured};
use crate::schema::Schema;

/// A map: a borrowed JSON object, or made during the evaluation.
#[derive(Clone, Debug)]
pub struct Map<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    Json(&'a serde_json::Map<String, Json>, Origin),
    /// Of which the members with these keys are not known.
    Partial(&'a serde_json::Map<String, Json>, Origin, &'a [&'a str]),
    /// Of a document that is read through the schema of the object or map.
    Structured(&'a serde_json::Map<String, Json>, &'a Schema),
    Shared(Arc<Entries<'a>>),
}

/// Entries in the order in which they were inserted, and where each key stands once there are many.
#[derive(Clone, Debug, Default)]
struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<Key, usize>,
}

/// A key of a map: cel-go compares keys as Go does, by type and value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Go's nil.
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
    /// `optional.none()`, of which there is only one.
    None,
    /// A value of a library, by its type and text.
    Opaque(&'static str, String),
    /// What Go cannot compare, by the text that stands for it.
    Text(String),
    /// What Go holds by reference, by its address: it equals itself alone.
    Reference(usize),
}

/// Up to this size a scan is faster than a hash.
const SCANNED: usize = 8;

impl Key {
    /// None for values that equal no other as a key, such as NaN.
    pub(super) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::Double(value) if value.is_nan() => return None,
            // Adding zero makes -0.0 the 0.0 that it equals.
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
            // Reading a variable makes a new optional.
            Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Optional(Some(_))
            | Value::Preserved(_)
            | Value::Invalid(_) => return None,
        })
    }
}

/// Where a value that Go holds by reference lies in memory; none for JSON, of which Go makes a new value each time.
fn address(value: &Value<'_>) -> Option<usize> {
    match value {
        Value::List(list) => list.address(),
        Value::Map(Map(Repr::Shared(entries))) => Some(Arc::as_ptr(entries).addr()),
        Value::Opaque(opaque) => Some(Arc::as_ptr(opaque).cast::<()>().addr()),
        _ => None,
    }
}

/// Whether both are the same key.
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
        self.index.get(&Key::of(key)?).copied()
    }

    fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(entry) = self.position(&key).and_then(|position| self.entries.get_mut(position)) {
            entry.1 = value;
            return;
        }
        self.entries.push((key, value));
        if self.entries.len() == SCANNED + 1 {
            self.index = (self.entries.iter().enumerate())
                .filter_map(|(position, (key, _))| Some((Key::of(key)?, position)))
                .collect();
        } else if self.entries.len() > SCANNED
            && let Some(key) = self.entries.last().and_then(|(key, _)| Key::of(key))
        {
            self.index.insert(key, self.entries.len() - 1);
        }
    }
}

impl<'a> Map<'a> {
    /// The map of a JSON object.
    pub fn from_json(members: &'a serde_json::Map<String, Json>, origin: Origin) -> Self {
        Self(Repr::Json(members, origin))
    }

    /// The map of a JSON object of which nobody knows whether it has members with the keys `unknown`, and what they are:
    /// to select one, or to test for it, is an error. The map as a whole has only the known members.
    pub fn partial(
        members: &'a serde_json::Map<String, Json>,
        unknown: &'a [&'a str],
        origin: Origin,
    ) -> Self {
        Self(Repr::Partial(members, origin, unknown))
    }

    /// The map of a JSON object that is read through its schema.
    pub(super) fn from_structured(members: &'a serde_json::Map<String, Json>, schema: &'a Schema) -> Self {
        Self(Repr::Structured(members, schema))
    }

    /// Whether it is a part of a document that is read through a schema.
    pub(crate) fn is_structured(&self) -> bool {
        matches!(self.0, Repr::Structured(..))
    }

    /// The JSON and the schema of a part of a document that is read through a schema.
    pub(super) fn structured(&self) -> Option<(&'a serde_json::Map<String, Json>, &'a Schema)> {
        if let Repr::Structured(members, schema) = self.0 { Some((members, schema)) } else { None }
    }

    /// Its JSON, where Go holds it so.
    pub(super) fn json(&self) -> Option<&'a serde_json::Map<String, Json>> {
        match self.0 {
            Repr::Structured(members, _) | Repr::Json(members, Origin::Unstructured) => Some(members),
            Repr::Json(..) | Repr::Partial(..) | Repr::Shared(_) => None,
        }
    }

    /// How many entries it has; of an object, also those that its schema does not know.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Json(members, _) | Repr::Partial(members, ..) | Repr::Structured(members, _) => {
                members.len()
            }
            Repr::Shared(entries) => entries.entries.len(),
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How kube-apiserver holds it; maps that the evaluation made are unstructured.
    pub fn origin(&self) -> Origin {
        match self.0 {
            Repr::Json(_, origin) | Repr::Partial(_, origin, _) => origin,
            Repr::Structured(..) | Repr::Shared(_) => Origin::Unstructured,
        }
    }

    /// Whether kube-apiserver has a type of its own for it: such maps have no zero value, and are compared with maps only.
    pub(super) fn is_wrapped(&self) -> bool {
        self.origin().is_typed() || self.is_structured()
    }

    /// The name of the type that holds it in Go.
    pub(super) fn go_type(&self) -> &'static str {
        match self.origin() {
            _ if self.is_structured() => "*common.unstructuredMap",
            Origin::Typed | Origin::Request => "*common.reflectSchemalessTypedStruct",
            Origin::TypedMap => "*common.reflectSchemalessTypedMap",
            Origin::Unstructured => "*types.baseMap",
        }
    }

    /// The value of a text as key.
    pub fn member(&self, key: &str) -> Option<Value<'a>> {
        match &self.0 {
            Repr::Json(members, origin) | Repr::Partial(members, origin, _) => {
                members.get(key).map(|value| Value::from_json_of(value, origin.of_member(key, value)))
            }
            Repr::Structured(members, schema) => structured::find(members, schema, key),
            Repr::Shared(_) => self.get(&Value::from(key)),
        }
    }

    /// The value of a key; numbers find keys of other numeric types that they equal.
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

    /// Whether it has exactly this key, which does not find keys of other numeric types.
    pub(crate) fn has_key(&self, key: &Value<'_>) -> bool {
        match &self.0 {
            Repr::Json(members, _) | Repr::Partial(members, ..) => {
                key.as_str().is_some_and(|key| members.contains_key(key))
            }
            Repr::Structured(..) => self.get(key).is_some(),
            Repr::Shared(entries) => entries.position(key).is_some(),
        }
    }

    /// The value of a key, as `_[_]` and `in` look for it.
    ///
    /// # Errors
    ///
    /// Typed maps have texts as keys only, partial ones members that are not known, and those of a schema members that do
    /// not fit it; in maps that the evaluation made, kube-apiserver panics where Go cannot hash the key.
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

    /// Its entries. Those of a JSON object come sorted by key, others as they were inserted; kube-apiserver's order is
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

    /// What a comprehension goes through: the entries, and null for each member that the schema of an object does not know.
    ///
    /// Source: apiserver pkg/cel/common/valuesunstructured.go, `unstructuredMap.Iterator`, which has room for a key of each
    /// member.
    pub(crate) fn turns(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let unknown = self.structured().map_or(0, |(members, schema)| {
            members.keys().filter(|name| schema.member(name).is_none()).count()
        });
        let value = Value::Invalid(Error::no_such_overload().to_string().into());
        self.iter().chain(std::iter::repeat_n((Value::Null, value), unknown))
    }

    /// Sets an entry, in place where nothing else holds the map, by copying otherwise.
    pub fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Repr::Shared(entries) = &mut self.0 {
            Arc::make_mut(entries).insert(key, value);
            return;
        }
        let mut map: Self = self.iter().collect();
        map.insert(key, value);
        *self = map;
    }

    /// Takes an entry away.
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
    /// The last of several entries with the same key counts.
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

/// The entries of a map.
#[derive(Debug)]
#[non_exhaustive]
pub enum Iter<'m, 'a> {
    /// Of a JSON object.
    Json(serde_json::map::Iter<'a>, Origin),
    /// Of a JSON object that is read through its schema: only members that the schema knows.
    Structured(&'a serde_json::Map<String, Json>, serde_json::map::Keys<'a>, &'a Schema),
    /// Of a map that the evaluation made.
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
