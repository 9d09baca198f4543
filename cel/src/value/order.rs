//! Implements the operators `< <= > >=`.

use std::cmp::Ordering;

use crate::error::Error;

use super::Value;

/// Compares two values; `operator` is the called function, such as `_<_`, for error messages.
///
/// # Errors
///
/// Returns an error for NaN, or `no such overload` if the types cannot be compared.
///
/// Source: cel-go common/types/compare.go and the `Compare` of each type.
pub fn compare(operator: &str, left: &Value<'_>, right: &Value<'_>) -> Result<Ordering, Error> {
    Ok(match (left, right) {
        (Value::Int(left), Value::Int(right)) | (Value::Duration(left), Value::Duration(right)) => {
            left.cmp(right)
        }
        (Value::Uint(left), Value::Uint(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => left.as_str().cmp(right.as_str()),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.instant().cmp(&right.instant()),
        (Value::Double(value), _) if value.is_nan() => return Err(nan()),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Double(value)) if value.is_nan() => {
            return Err(nan());
        }
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => return numbers(left, right).ok_or_else(Error::no_such_overload),
        (
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bool(_)
            | Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Duration(_),
            _,
        ) => return Err(Error::no_such_overload()),
        _ => return Err(Error::new(format!("no such overload: {operator}"))),
    })
}

fn nan() -> Error {
    Error::new("NaN values cannot be ordered".to_owned())
}

/// Compares two numbers, or returns `None` for NaN and other types. Integers that a double cannot represent exactly are
/// rounded before they are compared with a double.
#[expect(clippy::cast_precision_loss, reason = "cel-go compares integers and doubles as doubles")]
pub(super) fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Uint(left), Value::Uint(right)) => Some(left.cmp(right)),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Int(left), Value::Uint(right)) => {
            Some(u64::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right)))
        }
        (Value::Uint(left), Value::Int(right)) => {
            Some(u64::try_from(*right).map_or(Ordering::Greater, |right| left.cmp(&right)))
        }
        (Value::Double(left), Value::Int(right)) => left.partial_cmp(&(*right as f64)),
        (Value::Double(left), Value::Uint(right)) => left.partial_cmp(&(*right as f64)),
        (Value::Int(left), Value::Double(right)) => (*left as f64).partial_cmp(right),
        (Value::Uint(left), Value::Double(right)) => (*left as f64).partial_cmp(right),
        _ => None,
    }
}
