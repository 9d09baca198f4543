//! Generates numbers that a schema allows.

use serde_json::Value;

/// The limit up to which all JSON parsers represent integers exactly.
const MAX_EXACT: i64 = 1 << 53;

/// Returns the allowed integer at index `turn`.
///
/// The first integer is the minimum or, if the schema does not have one, `multipleOf` (default: 1).
pub(super) fn integer(schema: &Value, turn: usize) -> Value {
    let limit = |name: &str| schema.get(name).and_then(whole);
    let excluded = |name: &str| i64::from(schema[name] == true);
    let step = limit("multipleOf").filter(|step| *step > 0).unwrap_or(1);
    let least = limit("minimum").map(|least| least.saturating_add(excluded("exclusiveMinimum")));
    let largest = if schema["format"] == "int32" { i32::MAX.into() } else { MAX_EXACT };
    let most = limit("maximum").map_or(largest, |most| most.saturating_sub(excluded("exclusiveMaximum")));
    let begin = least.unwrap_or(most.min(step));
    let first = match begin.rem_euclid(step) {
        0 => begin,
        _ if least.is_none() => begin - begin.rem_euclid(step),
        rest => begin.saturating_add(step - rest),
    };
    let count = most.saturating_sub(first).max(0) / step + 1;
    let turn = i64::try_from(turn).unwrap_or(0) % count;
    first.saturating_add(turn.saturating_mul(step)).into()
}

/// Returns an allowed number that depends on `turn`. It is a multiple of `multipleOf` if the schema has this keyword.
pub(super) fn number(schema: &Value, turn: usize) -> Value {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (least, most) = (limit("minimum"), limit("maximum"));
    let step = limit("multipleOf").filter(|step| *step > 0.0);
    let begin = least.unwrap_or_else(|| most.map_or(1.0, |most| most.min(1.0)));
    // The steps are fractions of the allowed range, so that there are numbers between narrow limits.
    let width = most.map_or(8.0, |most| (most - begin).clamp(0.0, 8.0));
    let turn = u8::try_from(turn % 7).map_or(0.0, f64::from);
    let is_excluded = schema["exclusiveMinimum"] == true || schema["exclusiveMaximum"] == true;
    let number = begin + width * (turn + if is_excluded { 1.0 } else { 0.0 }) / 8.0;
    written(match step {
        Some(step) => (number / step).ceil() * step,
        None => number,
    })
}

/// Converts a float to a JSON number. An integral float becomes a number without a fractional part.
fn written(number: f64) -> Value {
    // The shortest form of an integral float has no fraction.
    serde_json::from_str(&number.to_string()).unwrap_or_else(|_| number.into())
}

/// Returns the integer value of a limit, or `None` if the limit has a fractional part.
fn whole(limit: &Value) -> Option<i64> {
    let written = || limit.as_f64().filter(|limit| limit.fract() == 0.0)?.to_string().parse().ok();
    limit.as_i64().or_else(written)
}
