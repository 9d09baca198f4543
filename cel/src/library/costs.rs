//! Calculates costs for the libraries.
//!
//! Source: apiserver pkg/cel/library/cost.go and cel-go ext/costs.go.

use crate::function::CallCost;
use crate::value::Value;

pub(crate) const LIST: u64 = 10;

/// The cost of each code point or byte of a string that is read.
pub(crate) const TRAVERSED: f64 = 0.1;

/// The cost of traversing the first argument completely.
pub(crate) const TRAVERSAL: CallCost = |_, arguments, _| Some(arguments.first().map_or(0, traversal));

/// The cost of accessors and other cheap calls: 1.
pub(crate) const NOMINAL: CallCost = |_, _, _| Some(1);

/// The cost of reading the string in the first argument.
pub(crate) const ONE_PASS: CallCost = |_, arguments, _| Some(passes(arguments.first()?, 1.0));

/// The cost of reading and comparing the string in the first argument.
pub(crate) const TWO_PASSES: CallCost = |_, arguments, _| Some(passes(arguments.first()?, 2.0));

/// Returns the cost of reading a string, or the bytes of an address, `times` times, rounded up.
pub(crate) fn passes(value: &Value<'_>, times: f64) -> u64 {
    share(value.size_or_one(), times * TRAVERSED)
}

/// Returns `size` times `factor`, rounded up.
pub(crate) fn share(size: u64, factor: f64) -> u64 {
    whole((approximate(size) * factor).ceil())
}

/// Returns `size` times `factor`, rounded down.
pub(crate) fn share_rounded_down(size: u64, factor: f64) -> u64 {
    whole(approximate(size) * factor)
}

#[expect(clippy::cast_precision_loss, reason = "so does Go")]
fn approximate(size: u64) -> f64 {
    size as f64
}

/// Converts a cost to an integer as Go does on amd64: a value out of range becomes 2 to the power of 63.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked, and costs are whole")]
fn whole(cost: f64) -> u64 {
    const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;
    if (0.0..TOO_LARGE).contains(&cost) { cost as u64 } else { 1 << 63 }
}

/// Returns the cost of traversing a value with all its elements, keys, and values.
///
/// A string or bytes value costs a tenth of its length in bytes, rounded down; a value of fixed size costs 1.
///
/// Source: apiserver pkg/cel/library/cost.go, `traversalCost`.
fn traversal(value: &Value<'_>) -> u64 {
    let mut cost = 0_u64;
    let mut pending = vec![value.clone()];
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) => cost += share_rounded_down(text.as_str().len() as u64, TRAVERSED),
            Value::Bytes(bytes) => cost += share_rounded_down(bytes.len() as u64, TRAVERSED),
            Value::List(list) => pending.extend(list.iter()),
            Value::Map(map) => {
                for (key, value) in map.turns() {
                    pending.extend([key, value]);
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::Optional(_)
            | Value::Type(_)
            | Value::Object(_)
            | Value::Opaque(_)
            | Value::Preserved(_)
            | Value::Invalid(_) => cost += 1,
        }
    }
    cost
}
