//! Implements the operators `+ - * / %` and unary `-` for values of any type.
//!
//! Source: cel-go common/types/{int,uint,double,duration,timestamp,overflow}.go. Each operation first checks the type
//! of its left operand; for a type that does not support the operator, the error contains the operator's name.

use crate::error::Error;

use super::{Text, Timestamp, Value, structured};

const INTEGER_OVERFLOW: &str = "integer overflow";
const UNSIGNED_OVERFLOW: &str = "unsigned integer overflow";
const DIVISION_BY_ZERO: &str = "division by zero";
const MODULUS_BY_ZERO: &str = "modulus by zero";

fn error(text: &str) -> Error {
    Error::new(text.to_owned())
}

fn int<'a>(value: Option<i64>) -> Result<Value<'a>, Error> {
    value.map(Value::Int).ok_or_else(|| error(INTEGER_OVERFLOW))
}

fn uint<'a>(value: Option<u64>) -> Result<Value<'a>, Error> {
    value.map(Value::Uint).ok_or_else(|| error(UNSIGNED_OVERFLOW))
}

fn duration<'a>(value: Option<i64>) -> Result<Value<'a>, Error> {
    value.map(Value::Duration).ok_or_else(|| error(INTEGER_OVERFLOW))
}

/// Returns the error for an operator that the type of the left operand does not support.
///
/// For strings, durations, and timestamps, cel-go looks for a method with the operator's name. No such method exists.
fn unknown(operator: &str, left: &Value<'_>) -> Error {
    match left {
        Value::String(_) | Value::Duration(_) | Value::Timestamp(_) => Error::no_such_overload(),
        _ => Error::new(format!("no such overload: {operator}")),
    }
}

/// Returns `left + right`.
///
/// # Errors
///
/// Returns an error on overflow, or `no such overload` if the types do not match.
pub fn add<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_add(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_add(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::String(left), Value::String(right)) => {
            bounded(left.as_str().len(), right.as_str().len(), MAX_RESULT)?;
            Ok(concat(left, right))
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            bounded(left.len(), right.len(), MAX_RESULT)?;
            Ok(Value::Bytes(left.iter().chain(right.iter()).copied().collect()))
        }
        (Value::List(left), Value::List(right)) => {
            bounded(left.len(), right.len(), MAX_LIST)?;
            if let Some(merged) = structured::merged(left, right) {
                return merged.map(Value::List);
            }
            if left.is_structured() {
                return Ok(Value::list(left.iter().chain(right).collect()));
            }
            Ok(Value::List(left.clone().concat(right.clone())))
        }
        (Value::Duration(left), Value::Duration(right)) => duration(left.checked_add(*right)),
        (Value::Timestamp(time), Value::Duration(span)) | (Value::Duration(span), Value::Timestamp(time)) => {
            time.checked_add(*span).map(Value::Timestamp)
        }
        (
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ) => Err(Error::no_such_overload()),
        _ => Err(unknown("_+_", left)),
    }
}

/// The maximum size, in bytes, of a string or bytes value that `+` returns. kube-apiserver is limited only by its
/// memory.
const MAX_RESULT: usize = 1 << 26;
const MAX_LIST: usize = 1 << 24;

fn bounded(left: usize, right: usize, longest: usize) -> Result<(), Error> {
    if left.saturating_add(right) <= longest {
        return Ok(());
    }
    Err(Error::Unsupported(format!("the result of + is longer than {longest}")))
}

fn concat<'a>(left: &Text<'a>, right: &Text<'a>) -> Value<'a> {
    let (first, second) = (left.as_str(), right.as_str());
    if first.is_empty() {
        return Value::String(right.clone());
    }
    if second.is_empty() {
        return Value::String(left.clone());
    }
    let mut text = String::with_capacity(first.len().saturating_add(second.len()));
    text.push_str(first);
    text.push_str(second);
    Value::text(text)
}

/// Returns `left - right`.
///
/// # Errors
///
/// Returns an error on overflow, or `no such overload` if the types do not match.
pub fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_sub(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => duration(left.checked_sub(*right)),
        (Value::Timestamp(time), Value::Duration(span)) => {
            let span = span.checked_neg().ok_or_else(|| error(INTEGER_OVERFLOW))?;
            time.checked_add(span).map(Value::Timestamp)
        }
        (Value::Timestamp(left), Value::Timestamp(right)) => duration(Timestamp::since(left, right)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_) | Value::Timestamp(_), _) => {
            Err(Error::no_such_overload())
        }
        _ => Err(unknown("_-_", left)),
    }
}

/// Returns `left * right`.
///
/// # Errors
///
/// Returns an error on overflow, or `no such overload` if the types do not match.
pub fn multiply<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_mul(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_mul(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => Err(Error::no_such_overload()),
        _ => Err(unknown("_*_", left)),
    }
}

/// Returns `left / right`.
///
/// # Errors
///
/// Returns an error on division by zero or overflow, or `no such overload` if the types do not match.
pub fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(error(DIVISION_BY_ZERO)),
        (Value::Int(left), Value::Int(right)) => int(left.checked_div(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_div(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => Err(Error::no_such_overload()),
        _ => Err(unknown("_/_", left)),
    }
}

/// Returns `left % right`.
///
/// # Errors
///
/// Returns an error on modulus by zero or overflow, or `no such overload` if the types do not match.
pub fn modulo<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(error(MODULUS_BY_ZERO)),
        (Value::Int(left), Value::Int(right)) => int(left.checked_rem(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_rem(*right)),
        (Value::Int(_) | Value::Uint(_), _) => Err(Error::no_such_overload()),
        _ => Err(unknown("_%_", left)),
    }
}

/// Returns `-value`.
///
/// # Errors
///
/// Returns an error on overflow, or `no such overload` if the type does not support the operator.
pub fn negate<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    match value {
        Value::Int(value) => int(value.checked_neg()),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => duration(value.checked_neg()),
        Value::Bool(_) => Err(Error::no_such_overload()),
        _ => Err(unknown("-_", value)),
    }
}
