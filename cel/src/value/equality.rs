//! Implements the operators `==` and `in`.

use std::cmp::Ordering;

use crate::error::Error;

use super::{List, Map, Origin, Value, order, structured};

/// Returns `left == right`.
///
/// # Errors
///
/// Returns an error if the types of the values cannot be compared.
///
/// Source: cel-go common/types/util.go, `Equal`.
pub fn equal(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        _ => equals(left, right),
    }
}

/// Returns whether `left` equals `right`, according to the type of `left`; the result is not always symmetric.
///
/// # Errors
///
/// Returns an error if the types of the values cannot be compared.
///
/// Source: the `Equal` of each type in cel-go common/types.
pub fn equals(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Error> {
    Ok(match (left, right) {
        (Value::String(left), Value::String(right)) => left.as_str() == right.as_str(),
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => order::numbers(left, right) == Some(Ordering::Equal),
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left.instant() == right.instant(),
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::List(left), Value::List(right)) => return lists(left, right),
        (Value::Map(left), Value::Map(right)) => return maps(left, right),
        (Value::Invalid(why), _) => return Err(Error::new(&**why)),
        (Value::Preserved(json), _) => structured::preserves(json, right),
        (Value::List(list), _) if list.is_wrapped() => return Err(overload_error(right)),
        (Value::Map(map), _) if map.is_wrapped() => return Err(overload_error(right)),
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => return equals(left, right),
            (left, right) => left.is_none() && right.is_none(),
        },
        (Value::Object(left), Value::Object(right)) => return left.equals(right),
        (Value::Opaque(left), Value::Opaque(right)) => {
            return left.equals(right.as_ref()).ok_or_else(Error::no_such_overload);
        }
        (Value::Opaque(_), _) => return Err(Error::no_such_overload()),
        _ => false,
    })
}

/// Returns the error that an invalid value contains, or `no such overload` for other values.
///
/// Source: cel-go common/types/err.go, `MaybeNoSuchOverloadErr`.
fn overload_error(value: &Value<'_>) -> Error {
    if let Value::Invalid(why) = value { Error::new(&**why) } else { Error::no_such_overload() }
}

fn lists(left: &List<'_>, right: &List<'_>) -> Result<bool, Error> {
    if left.len() != right.len() {
        return Ok(false);
    }
    if let Some(equality) = structured::equal(left, right) {
        return equality;
    }
    if left.is_structured() {
        for (left, right) in left.iter().zip(right.iter()) {
            if !equals(&left, &right)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let typed = left.origin().is_typed();
    let mut error = None;
    for (left, right) in left.iter().zip(right.iter()) {
        let equality = if typed { equals(&left, &right) } else { equal(&left, &right) };
        match equality {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // Typed lists treat an error as a difference. Other lists ignore errors, except for concatenated lists,
            // which return the first error.
            Err(_) if typed => return Ok(false),
            Err(found) => error = error.or(Some(found)),
        }
    }
    match error {
        Some(error) if left.is_concat() => Err(error),
        _ => Ok(true),
    }
}

fn maps(left: &Map<'_>, right: &Map<'_>) -> Result<bool, Error> {
    if left.len() != right.len() {
        return Ok(false);
    }
    if let Some((members, schema)) = left.structured() {
        return structured::objects(left, members, schema, right);
    }
    for (key, value) in left {
        let Some(other) = right.get(&key) else { return Ok(false) };
        let equality = match left.origin() {
            Origin::Unstructured => equal(&value, &other).or(Ok(true)),
            Origin::TypedMap => equals(&value, &other).or(Ok(false)),
            // As in Go, an error in the comparison of two structs counts as a difference.
            Origin::Typed | Origin::Request => match right.origin() {
                Origin::Typed | Origin::Request => equals(&value, &other).or(Ok(false)),
                Origin::Unstructured | Origin::TypedMap => equals(&value, &other),
            },
        };
        if equality != Ok(true) {
            return equality;
        }
    }
    Ok(true)
}

/// Returns `element in container`.
///
/// # Errors
///
/// Returns `no such overload` if `container` is not a list or map, or if a typed map is searched for a key other than a
/// string.
pub fn contains(element: &Value<'_>, container: &Value<'_>) -> Result<bool, Error> {
    match container {
        Value::List(list) if list.origin().is_typed() => {
            Ok(list.iter().any(|known| equals(&known, element).unwrap_or(false)))
        }
        Value::List(list) if list.is_structured() => {
            if let Value::Invalid(why) = element {
                return Err(Error::new(&**why));
            }
            let mut error = None;
            for known in list {
                match equals(&known, element) {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(found) => error = error.or(Some(found)),
                }
            }
            error.map_or(Ok(false), Err)
        }
        Value::List(list) => Ok(list.iter().any(|known| equals(element, &known).unwrap_or(false))),
        Value::Map(map) => Ok(map.find(element)?.is_some()),
        _ => Err(Error::no_such_overload()),
    }
}
