//! Implements the list functions of Kubernetes.
//!
//! Source: apiserver pkg/cel/library/lists.go, version 1.

use std::cmp::Ordering;

use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::types::Type;
use crate::value::{Value, add, compare, equals};

use super::costs;
use super::lists::is_comparable;

/// Returns the functions of a version of the library; version 0 does not have `includes`.
pub(crate) fn library(version: u32) -> Vec<Function> {
    let element = Type::Parameter("A");
    let mut functions = vec![
        by_type("indexOf", &[("list_a_index_of_int", element.clone(), Type::Int, index_of)], true),
        by_type("isSorted", &IS_SORTED, false),
        by_type("lastIndexOf", &[("list_a_last_index_of_int", element, Type::Int, last_index_of)], true),
        by_type("max", &MAX, false),
        by_type("min", &MIN, false),
        by_type("sum", &SUM, false),
    ];
    if version >= 1 {
        let parameters = vec![Type::Dyn, Type::Dyn];
        let includes = Overload::member("list_includes_dyn_dyn", parameters, Type::Bool, includes);
        functions.push(Function::new("includes", vec![includes]).with_cost(costs::TRAVERSAL));
    }
    functions
}

/// An overload: its identifier, element type, result type, and implementation.
type Row = (&'static str, Type, Type, Implementation);

const IS_SORTED: [Row; 8] = [
    ("list_int_is_sorted_bool", Type::Int, Type::Bool, is_sorted),
    ("list_uint_is_sorted_bool", Type::Uint, Type::Bool, is_sorted),
    ("list_double_is_sorted_bool", Type::Double, Type::Bool, is_sorted),
    ("list_bool_is_sorted_bool", Type::Bool, Type::Bool, is_sorted),
    ("list_duration_is_sorted_bool", Type::Duration, Type::Bool, is_sorted),
    ("list_timestamp_is_sorted_bool", Type::Timestamp, Type::Bool, is_sorted),
    ("list_string_is_sorted_bool", Type::String, Type::Bool, is_sorted),
    ("list_bytes_is_sorted_bool", Type::Bytes, Type::Bool, is_sorted),
];

const MAX: [Row; 8] = [
    ("list_int_max_int", Type::Int, Type::Int, max),
    ("list_uint_max_uint", Type::Uint, Type::Uint, max),
    ("list_double_max_double", Type::Double, Type::Double, max),
    ("list_bool_max_bool", Type::Bool, Type::Bool, max),
    ("list_duration_max_duration", Type::Duration, Type::Duration, max),
    ("list_timestamp_max_timestamp", Type::Timestamp, Type::Timestamp, max),
    ("list_string_max_string", Type::String, Type::String, max),
    ("list_bytes_max_bytes", Type::Bytes, Type::Bytes, max),
];

const MIN: [Row; 8] = [
    ("list_int_min_int", Type::Int, Type::Int, min),
    ("list_uint_min_uint", Type::Uint, Type::Uint, min),
    ("list_double_min_double", Type::Double, Type::Double, min),
    ("list_bool_min_bool", Type::Bool, Type::Bool, min),
    ("list_duration_min_duration", Type::Duration, Type::Duration, min),
    ("list_timestamp_min_timestamp", Type::Timestamp, Type::Timestamp, min),
    ("list_string_min_string", Type::String, Type::String, min),
    ("list_bytes_min_bytes", Type::Bytes, Type::Bytes, min),
];

const SUM: [Row; 4] = [
    ("list_int_sum_int", Type::Int, Type::Int, |call| sum(call, Value::Int(0))),
    ("list_uint_sum_uint", Type::Uint, Type::Uint, |call| sum(call, Value::Uint(0))),
    ("list_double_sum_double", Type::Double, Type::Double, |call| sum(call, Value::Double(0.0))),
    ("list_duration_sum_duration", Type::Duration, Type::Duration, |call| sum(call, Value::Duration(0))),
];

/// Creates a function with an overload for each row. If `wanted` is set, the second argument is the element to find.
fn by_type(name: &'static str, rows: &[Row], wanted: bool) -> Function {
    let overload = |(id, element, result, implementation): &Row| {
        let mut parameters = vec![Type::list(element.clone())];
        parameters.extend(wanted.then(|| element.clone()));
        Overload::member(id, parameters, result.clone(), *implementation)
    };
    Function::new(name, rows.iter().map(overload).collect()).with_cost(costs::TRAVERSAL)
}

fn is_sorted<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let mut previous: Option<Value<'a>> = None;
    for element in call.list(0)? {
        if !is_comparable(&element) {
            return Err(incomparable(element));
        }
        // Incomparable elements count as sorted.
        if previous.is_some_and(|previous| matches!(compare("", &previous, &element), Ok(Ordering::Greater)))
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(element);
    }
    Ok(Value::Bool(true))
}

/// Returns the error that an invalid element contains, or `no such overload` for other elements.
///
/// Source: cel-go common/types/err.go, `MaybeNoSuchOverloadErr`.
fn incomparable(element: Value<'_>) -> Error {
    element.valid().err().unwrap_or_else(Error::no_such_overload)
}

fn max<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    extreme(call, "max", Ordering::Less)
}

fn min<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    extreme(call, "min", Ordering::Greater)
}

/// Returns the minimum or maximum of a list. A later element replaces the current result if comparing the current
/// result with the element yields `replaced`.
fn extreme<'a>(call: &Call<'_, 'a>, name: &str, replaced: Ordering) -> Result<Value<'a>, Error> {
    let mut best: Option<Value<'a>> = None;
    for element in call.list(0)? {
        if !is_comparable(&element) {
            return Err(incomparable(element));
        }
        if best
            .as_ref()
            .is_none_or(|best| matches!(compare("", best, &element), Ok(order) if order == replaced))
        {
            best = Some(element);
        }
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn sum<'a>(call: &Call<'_, 'a>, zero: Value<'a>) -> Result<Value<'a>, Error> {
    call.list(0)?.iter().try_fold(zero, |sum, element| add(&sum, &element))
}

fn position(index: Option<usize>) -> Value<'static> {
    Value::Int(index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1))
}

fn index_of<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let wanted = call.argument(1)?;
    Ok(position(call.list(0)?.iter().position(|element| equals(&element, wanted).unwrap_or(false))))
}

fn last_index_of<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let wanted = call.argument(1)?;
    let elements: Vec<Value<'a>> = call.list(0)?.iter().collect();
    Ok(position(elements.iter().rposition(|element| equals(element, wanted).unwrap_or(false))))
}

fn includes<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let wanted = call.argument(1)?;
    let target = call.argument(0)?;
    Ok(Value::Bool(if let Value::List(list) = target {
        list.iter().any(|element| equals(&element, wanted).unwrap_or(false))
    } else {
        equals(target, wanted).unwrap_or(false)
    }))
}
