//! Lists with element keys: sets, whose elements are their own keys, and lists with
//! `x-kubernetes-list-map-keys`.
//!
//! Source: apiserver pkg/cel/common/valuesunstructured.go and valuesreflect.go.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::super::map::Key;
use super::super::{List, Value, equality, number};
use crate::error::Error;
use crate::schema::{ListType, Schema};

/// The part of an element that Go compares; `None` does not equal any key, not even itself.
type ElementKey = Option<Vec<Key>>;

/// Returns whether two lists of the same length have equal elements, ignoring their order; returns `None` if the left
/// list does not have keys.
///
/// Source: `unstructuredSetList.Equal`, `unstructuredMapList.Equal` and those of `refValSetList` and `refValMapList`.
pub(in super::super) fn equal(left: &List<'_>, right: &List<'_>) -> Option<Result<bool, Error>> {
    match (&left.schema()?.list_type, left.json()) {
        (ListType::Set, _) => Some(sets(left, right)),
        (ListType::Map(keys), Some(_)) => Some(by_keys(left, right, |element| key_of_json(element, keys))),
        (ListType::Map(keys), None) => Some(by_keys(left, right, |element| Ok(key_of_value(element, keys)))),
        (ListType::Atomic | ListType::Other(_), _) => None,
    }
}

fn sets(left: &List<'_>, right: &List<'_>) -> Result<bool, Error> {
    let known = left.iter().map(|element| scalar(&element)).collect::<Result<Vec<_>, _>>()?;
    by_keys_of(left, &known, right, scalar, |_, _| Ok(true))
}

fn by_keys(
    left: &List<'_>,
    right: &List<'_>,
    key: impl Fn(&Value<'_>) -> Result<ElementKey, Error>,
) -> Result<bool, Error> {
    let known = left.iter().map(|element| key(&element)).collect::<Result<Vec<_>, _>>()?;
    by_keys_of(left, &known, right, key, equality::equals)
}

/// Returns whether each element of `right` equals the element of `left` with the same key, and all elements of `left`
/// are matched.
fn by_keys_of(
    left: &List<'_>,
    known: &[ElementKey],
    right: &List<'_>,
    key: impl Fn(&Value<'_>) -> Result<ElementKey, Error>,
    equals: impl Fn(&Value<'_>, &Value<'_>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let keyless = known.iter().filter(|key| key.is_none()).count();
    let places = known.iter().enumerate().filter_map(|(place, key)| Some((key.as_ref()?, place)));
    let mut places: HashMap<&Vec<Key>, (usize, bool)> =
        places.map(|(key, place)| (key, (place, false))).collect();
    for other in right {
        let Some((place, met)) = key(&other)?.and_then(|key| places.get_mut(&key)) else { return Ok(false) };
        *met = true;
        let Some(element) = left.get(*place) else { return Ok(false) };
        match equals(&element, &other) {
            Ok(true) => {}
            found => return found,
        }
    }
    Ok(keyless == 0 && places.values().all(|(_, met)| *met))
}

/// Returns `left + right`, or `None` if `left` does not have keys. Elements of `right` replace those with the same key,
/// or are appended.
///
/// Source: apiserver pkg/cel/common/valuesreflect.go, `addToSetList` and `addToMapList`.
pub(in super::super) fn merged<'a>(left: &List<'a>, right: &List<'a>) -> Option<Result<List<'a>, Error>> {
    let schema = left.schema()?;
    let key = |element: &Value<'a>| match &schema.list_type {
        ListType::Map(keys) => Ok(key_of_value(element, keys)),
        ListType::Set | ListType::Atomic | ListType::Other(_) => scalar(element),
    };
    match schema.list_type {
        ListType::Set | ListType::Map(_) => Some(merged_by(left, right, schema, key)),
        ListType::Atomic | ListType::Other(_) => None,
    }
}

fn merged_by<'a>(
    left: &List<'a>,
    right: &List<'a>,
    schema: &'a Schema,
    key: impl Fn(&Value<'a>) -> Result<ElementKey, Error>,
) -> Result<List<'a>, Error> {
    let replaces = matches!(schema.list_type, ListType::Map(_));
    let mut elements: Vec<Value<'a>> = left.iter().collect();
    let mut places = HashMap::new();
    for (place, element) in elements.iter().enumerate() {
        if let Some(key) = key(element)? {
            places.insert(key, place);
        }
    }
    for element in right {
        let key = key(&element)?;
        match key.as_ref().and_then(|key| elements.get_mut(*places.get(key)?)) {
            Some(known) if replaces => *known = element,
            Some(_) => {}
            None => {
                // Duplicates in `right` are both appended to a list with keys.
                if let (Some(key), false) = (key, replaces) {
                    places.insert(key, elements.len());
                }
                elements.push(element);
            }
        }
    }
    Ok(List::of_schema(elements, schema))
}

/// Returns the key of an element of a set.
///
/// Source: apiserver pkg/cel/common/valuesreflect.go, `setElementKey`.
fn scalar(element: &Value<'_>) -> Result<ElementKey, Error> {
    match element {
        Value::List(_) | Value::Map(_) => {
            Err(Error::new("listSet operations are only supported on lists of scalar values"))
        }
        _ => Ok(key_of(element).map(|key| vec![key])),
    }
}

/// Returns the part of a value that Go compares: the underlying Go value.
fn key_of(value: &Value<'_>) -> Option<Key> {
    match value {
        Value::Preserved(json) => match json {
            Json::Array(_) | Json::Object(_) => Some(Key::Text(json.to_string())),
            _ => key_of_scalar(json),
        },
        Value::List(list) => Some(Key::Text(Json::from(list.json()?.to_vec()).to_string())),
        Value::Map(map) => Some(Key::Text(Json::from(map.json()?.clone()).to_string())),
        Value::Bytes(bytes) => Some(Key::Text(format!("{bytes:?}"))),
        Value::Type(name) => Some(Key::String(name.clone())),
        Value::Optional(value) => value.as_ref().map_or(Some(Key::Nothing), |value| key_of(value)),
        Value::Invalid(_) => None,
        _ => Key::from_value(value),
    }
}

fn key_of_scalar(json: &Json) -> Option<Key> {
    match json {
        Json::Null => Some(Key::Nothing),
        _ => Key::from_value(&Value::from_json(json)),
    }
}

/// Returns the key of an element in a list with keys: the values of the element's key fields.
///
/// Source: apiserver pkg/cel/common/valuesreflect.go, `refValMapKey`.
fn key_of_value(element: &Value<'_>, keys: &[String]) -> ElementKey {
    let of_field = |name: &String| {
        let field = match element {
            Value::Map(map) => map.get(&Value::from(name.as_str())),
            _ => None,
        };
        match field {
            None | Some(Value::Invalid(_)) => Some(Key::Nothing),
            Some(value) => key_of(&value),
        }
    };
    keys.iter().map(of_field).collect()
}

/// Returns the key of a list element from its JSON. Like kube-apiserver, looks up the escaped names in the JSON, whose
/// names are not escaped.
///
/// Source: apiserver pkg/cel/common/valuesunstructured.go, `unstructuredMapList.toMapKey`.
fn key_of_json(element: &Value<'_>, keys: &[String]) -> Result<ElementKey, Error> {
    /// The maximum number of keys that Go compares by value; with more keys, Go compares strings.
    const COMPARED: usize = 3;
    let members = match element {
        Value::Map(map) => map.json(),
        Value::Preserved(Json::Object(members)) => Some(members),
        _ => None,
    };
    let Some(members) = members else { return Ok(None) };
    let mut found = Vec::with_capacity(keys.len());
    for name in keys {
        let field = members.get(name).unwrap_or(&Json::Null);
        found.push(match field {
            // As strings, numbers of all types are the same.
            Json::Number(value) if keys.len() > COMPARED => {
                let text = value.as_f64().filter(|_| !value.is_i64()).map(number::format_double);
                Some(Key::Text(text.unwrap_or_else(|| value.to_string())))
            }
            Json::Array(_) | Json::Object(_) if keys.len() > COMPARED => Some(Key::Text(field.to_string())),
            Json::Array(_) | Json::Object(_) => {
                let name = super::go_type(field);
                return Err(Error::Panic(format!("runtime error: hash of unhashable type {name}")));
            }
            _ => key_of_scalar(field),
        });
    }
    Ok(found.into_iter().collect())
}
