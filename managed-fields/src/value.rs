//! Orders and compares JSON values as field sets do.

use std::cmp::Ordering;

use serde_json::Value;

use crate::go::Numeric;

/// Compares two values: numbers sort before strings, booleans, lists, maps, and null.
///
/// Integers and floats compare by value.
///
/// Source: structured-merge-diff value/value.go, `CompareUsing`.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            match (Numeric::from_number(left), Numeric::from_number(right)) {
                (Numeric::Int(left), Numeric::Int(right)) => left.cmp(&right),
                (left, right) => left.as_float().partial_cmp(&right.as_float()).unwrap_or(Ordering::Equal),
            }
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let mut orders = left.iter().zip(right).map(|(left, right)| compare(left, right));
            orders.find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut orders = left.iter().zip(right).map(|((name, value), (other_name, other))| {
                name.cmp(other_name).then_with(|| compare(value, other))
            });
            orders.find(|order| order.is_ne()).unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Returns whether two values are equal; 1 equals 1.0.
///
/// Source: structured-merge-diff value/value.go, `EqualsUsing`.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((name, value), (other_name, other))| name == other_name && equal(value, other))
        }
        (Value::Number(_), Value::Number(_)) => compare(left, right).is_eq(),
        _ => left == right,
    }
}
