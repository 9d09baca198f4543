//! Implements the list functions of cel-go's extension.
//!
//! Source: cel-go ext/lists.go, version 3.

use std::cmp::Ordering;
use std::mem;

use crate::function::{Call, CallCost, Error, Function, Overload};
use crate::types::Type;
use crate::value::{List, Value, compare, equals};

use super::costs;
use super::gosort::sorted_indices;

/// The maximum length of the result of `lists.range`.
const MAX_RANGE: i64 = 1_000_000;

/// The types that can be ordered, each with the identifiers of its overloads of `sort` and `@sortByAssociatedKeys`.
const COMPARABLE: [(&str, &str, Type); 8] = [
    ("list_int_sort", "list_int_sortByAssociatedKeys", Type::Int),
    ("list_uint_sort", "list_uint_sortByAssociatedKeys", Type::Uint),
    ("list_double_sort", "list_double_sortByAssociatedKeys", Type::Double),
    ("list_bool_sort", "list_bool_sortByAssociatedKeys", Type::Bool),
    (
        "list_google.protobuf.Duration_sort",
        "list_google.protobuf.Duration_sortByAssociatedKeys",
        Type::Duration,
    ),
    (
        "list_google.protobuf.Timestamp_sort",
        "list_google.protobuf.Timestamp_sortByAssociatedKeys",
        Type::Timestamp,
    ),
    ("list_string_sort", "list_string_sortByAssociatedKeys", Type::String),
    ("list_bytes_sort", "list_bytes_sortByAssociatedKeys", Type::Bytes),
];

/// Returns the functions of the library. The macro `sortBy` expands to a call to `@sortByAssociatedKeys`.
pub(crate) fn library() -> Vec<Function> {
    let list = Type::list(Type::Parameter("T"));
    let dynamic = Type::list(Type::Dyn);
    let of_list = |name, id, implementation| {
        Function::new(name, vec![Overload::member(id, vec![list.clone()], list.clone(), implementation)])
    };
    let sort = COMPARABLE.map(|(id, _, element)| {
        Overload::member(id, vec![Type::list(element.clone())], Type::list(element), sort).unguarded()
    });
    let sort_by = COMPARABLE.map(|(_, id, key)| {
        Overload::member(id, vec![list.clone(), Type::list(key)], list.clone(), sort_by_keys).unguarded()
    });
    vec![
        Function::new(
            "slice",
            vec![Overload::member(
                "list_slice",
                vec![list.clone(), Type::Int, Type::Int],
                list.clone(),
                slice,
            )],
        )
        .with_cost(RESULT),
        Function::new(
            "flatten",
            vec![
                Overload::member("list_flatten", vec![Type::list(list.clone())], list.clone(), flatten)
                    .unguarded(),
                Overload::member("list_flatten_int", vec![dynamic.clone(), Type::Int], dynamic, flatten)
                    .unguarded(),
            ],
        )
        .with_cost(FLATTEN),
        Function::new("sort", sort.into()).with_cost(|overload, arguments, _| {
            // If several overloads are possible at run time, the cost is that of an unknown function.
            if overload.is_empty() { None } else { pairs(arguments.first()?) }
        }),
        Function::new("@sortByAssociatedKeys", sort_by.into()).with_cost(|overload, arguments, _| {
            if overload.is_empty() { None } else { pairs(arguments.get(1)?) }
        }),
        Function::new(
            "lists.range",
            vec![Overload::global("lists_range", vec![Type::Int], Type::list(Type::Int), range)],
        )
        .with_cost(RESULT),
        of_list("reverse", "list_reverse", reverse).with_cost(RESULT),
        of_list("distinct", "list_distinct", distinct).with_cost(|_, arguments, _| pairs(arguments.first()?)),
    ]
}

/// The cost of creating a list as large as the result.
const RESULT: CallCost = |_, _, result| Some(new_list(1.0, result.map_or(1, Value::size_or_one)));

const FLATTEN: CallCost = |overload, arguments, _| {
    let depth = match arguments {
        _ if overload.is_empty() => return None,
        #[expect(clippy::cast_precision_loss, reason = "so does cel-go")]
        [_, Value::Int(depth)] => *depth as f64,
        _ => 1.0,
    };
    Some(new_list(depth, arguments.first()?.size_or_one()))
};

/// Returns the cost of comparing all pairs of elements.
///
/// Source: cel-go ext/lists.go, `trackListSelfCompare`.
fn pairs(list: &Value<'_>) -> Option<u64> {
    let Value::List(list) = list else { return None };
    let size = list.len() as u64;
    let factor = match list.get(0) {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + costs::TRAVERSED,
        _ => 2.0,
    };
    Some(new_list(factor, size.saturating_mul(size)))
}

fn new_list(factor: f64, size: u64) -> u64 {
    let factor = if factor < 0.0 { 1.0 } else { factor };
    costs::share_rounded_down(size, factor).saturating_add(1 + costs::LIST)
}

fn slice<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let (list, start, end) = (call.list(0)?, call.int(1)?, call.int(2)?);
    let wrong = |why: &str| Err(Error::new(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return wrong("negative indexes not supported");
    };
    if from > to {
        return wrong("start index must be less than or equal to end index");
    }
    if list.len() < to {
        return wrong(&format!("list is length {}", list.len()));
    }
    Ok(Value::list(list.iter().skip(from).take(to - from).collect()))
}

fn flatten<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let (list, depth) = match call.arguments {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        [other] => return Err(Error::new(format!("no such overload: {}.flatten()", full_type_name(other)))),
        [other, depth] => {
            let (other, depth) = (full_type_name(other), full_type_name(depth));
            return Err(Error::new(format!("no such overload: {other}.flatten({depth})")));
        }
        _ => return Err(Error::no_such_overload()),
    };
    let Ok(depth) = usize::try_from(depth) else {
        return Err(Error::new("level must be non-negative".to_owned()));
    };
    let mut flat = Vec::with_capacity(list.len());
    // The rest of the enclosing lists, innermost last.
    let mut rest: Vec<std::vec::IntoIter<Value<'a>>> = vec![elements(list).into_iter()];
    while let Some(current) = rest.last_mut() {
        match current.next() {
            None => {
                rest.pop();
            }
            Some(Value::List(inner)) if rest.len() <= depth => rest.push(elements(&inner).into_iter()),
            Some(element) => flat.push(element),
        }
    }
    Ok(Value::list(flat))
}

fn elements<'a>(list: &List<'a>) -> Vec<Value<'a>> {
    list.iter().collect()
}

/// Returns the name of a value's type, including type parameters.
fn full_type_name(value: &Value<'_>) -> &'static str {
    match value.type_name() {
        "list" => "list(dyn)",
        "map" => "map(dyn, dyn)",
        "optional_type" => "optional_type(dyn)",
        name => name,
    }
}

fn sort<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let target = call.argument(0)?;
    if let Value::List(list) = target { sorted(list, list) } else { Err(no_list("sort", target)) }
}

fn sort_by_keys<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    match (call.argument(0)?, call.argument(1)?) {
        (Value::List(list), Value::List(keys)) => sorted(list, keys),
        (other, _) => Err(no_list("@sortByAssociatedKeys", other)),
    }
}

/// Creates the error for a function call on a value that is not a list.
///
/// For strings, durations, and timestamps, which have methods, the error does not contain the name of the function.
fn no_list(function: &str, value: &Value<'_>) -> Error {
    if matches!(value, Value::String(_) | Value::Duration(_) | Value::Timestamp(_)) {
        Error::no_such_overload()
    } else {
        Error::new(format!("no such overload: {function}"))
    }
}

/// Returns the list sorted by `keys`. `keys` contains a key for each element.
fn sorted<'a>(list: &List<'a>, keys: &List<'a>) -> Result<Value<'a>, Error> {
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let (values, keys) = (elements(list), elements(keys));
    let Some(first) = keys.first() else { return Ok(Value::List(list.clone())) };
    if !is_comparable(first) {
        return Err(Error::new("list elements must be comparable".to_owned()));
    }
    let mut mixed = false;
    let order = sorted_indices(keys.len(), |left, right| {
        let (Some(left), Some(right)) = (keys.get(left), keys.get(right)) else { return false };
        if [left, right].iter().any(|key| mem::discriminant(*key) != mem::discriminant(first)) {
            mixed = true;
            return false;
        }
        matches!(compare("", left, right), Ok(Ordering::Less))
    });
    if mixed {
        return Err(Error::new("list elements must have the same type".to_owned()));
    }
    Ok(Value::list(order.into_iter().filter_map(|index| values.get(index).cloned()).collect()))
}

/// Returns whether values of the type of `value` can be ordered.
pub(super) fn is_comparable(value: &Value<'_>) -> bool {
    match value {
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_) => true,
        Value::Null
        | Value::List(_)
        | Value::Map(_)
        | Value::Optional(_)
        | Value::Type(_)
        | Value::Object(_)
        | Value::Opaque(_)
        | Value::Preserved(_)
        | Value::Invalid(_) => false,
    }
}

fn range<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let size = call.int(0)?;
    if size < 0 {
        return Err(Error::new(format!("lists.range: size must be non-negative, got {size}")));
    }
    if size > MAX_RANGE {
        return Err(Error::new(format!("lists.range: size {size} exceeds maximum allowed ({MAX_RANGE})")));
    }
    Ok(Value::list((0..size).map(Value::Int).collect()))
}

fn reverse<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let mut reversed = elements(call.list(0)?);
    reversed.reverse();
    Ok(Value::list(reversed))
}

fn distinct<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let mut distinct: Vec<Value<'a>> = Vec::new();
    for element in call.list(0)? {
        if !distinct.iter().any(|known| equals(&element, known).unwrap_or(false)) {
            distinct.push(element);
        }
    }
    Ok(Value::list(distinct))
}
