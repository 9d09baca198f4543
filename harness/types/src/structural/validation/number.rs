//! Validates numbers: their range, bounds, and `multipleOf`.
//!
//! Source: kube-openapi pkg/validation/validate/{validator,values}.go.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::super::node::{Schema, ValueValidation};
use super::super::numbers::is_integer;
use super::super::parse::float;
use super::Validator;
use super::report::{Failure, Report};
use crate::json_numbers::truncated;
use crate::path::Path;
use crate::quoting::printed_float;

/// A number as it is compared with a bound. Integers are compared with the integral part of the bound.
#[derive(Clone, Copy)]
enum Compared {
    Integer(i64),
    Float(f64),
}

pub(super) fn validate(
    validator: &mut Validator,
    schema: &Schema,
    values: &ValueValidation,
    number: &Number,
    path: &Path<'_>,
    report: &mut Report,
) {
    let kind = if schema.int_or_string { "" } else { schema.kind.as_str() };
    let format = if ["integer", "number"].contains(&kind) { values.format.as_str() } else { "" };
    let value = Value::Number(number.clone());
    let native = number.as_i64().map_or(Compared::Float(float(number)), Compared::Integer);
    if let Some(why) = beyond(native, kind, format, "Checked", path) {
        report.add(validator, Failure::message(why));
    }
    if let Some(factor) = &values.multiple_of {
        let factor = float(factor);
        let of_type = beyond(Compared::Float(factor), kind, format, "MultipleOf", path);
        let compared = if of_type.is_some() { Compared::Float(float(number)) } else { native };
        if let Some(why) = of_type {
            report.add(validator, Failure::message(why));
        }
        if let Some(failure) = not_a_multiple(compared, factor, &value, path) {
            report.add(validator, failure);
        }
    }
    let bounds = [
        (&values.minimum, values.exclusive_minimum, Ordering::Less, "Minimum boundary", "greater than"),
        (&values.maximum, values.exclusive_maximum, Ordering::Greater, "Maximum boundary", "less than"),
    ];
    for (bound, exclusive, beyond_bound, name, words) in bounds {
        let Some(bound) = bound.as_ref().map(float) else { continue };
        let of_type = beyond(Compared::Float(bound), kind, format, name, path);
        let compared = if of_type.is_some() { Compared::Float(float(number)) } else { native };
        if let Some(why) = of_type {
            report.add(validator, Failure::message(why));
        }
        let (order, shown) = match compared {
            Compared::Integer(integer) => {
                (Some(integer.cmp(&truncated(bound))), truncated(bound).to_string())
            }
            Compared::Float(float) => (float.partial_cmp(&bound), printed_float(bound)),
        };
        if order == Some(beyond_bound) || (exclusive && order == Some(Ordering::Equal)) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            let what = format!("should be {words}{or_equal} {shown}");
            report.add(validator, Failure::invalid(path, &value, what));
        }
    }
    report.matches += 1;
}

fn not_a_multiple(compared: Compared, factor: f64, value: &Value, path: &Path<'_>) -> Option<Failure> {
    let not_positive = |factor: Value| {
        let shown = super::super::coerce::displayed(&factor);
        let message = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        Failure::invalid_with(path, &factor, message)
    };
    match compared {
        Compared::Integer(integer) => {
            let factor = truncated(factor);
            if factor <= 0 {
                return Some(not_positive(factor.into()));
            }
            (integer % factor != 0)
                .then(|| Failure::invalid(path, value, format_args!("should be a multiple of {factor}")))
        }
        Compared::Float(float) => {
            if factor <= 0.0 {
                return Some(not_positive(factor.into()));
            }
            let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            (!is_integer(times)).then(|| {
                Failure::invalid(
                    path,
                    value,
                    format_args!("should be a multiple of {}", printed_float(factor)),
                )
            })
        }
    }
}

/// Returns the error for a number that is out of range for its type and format; `None` if it is in range.
///
/// Source: kube-openapi pkg/validation/validate/values.go, `IsValueValidAgainstRange`.
fn beyond(number: Compared, kind: &str, format: &str, name: &str, path: &Path<'_>) -> Option<String> {
    let fits = match (kind, format, number) {
        ("integer", "int32", Compared::Integer(integer)) => i32::try_from(integer).is_ok(),
        ("integer", "int32", Compared::Float(float)) => {
            is_integral(float) && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float)
        }
        ("integer", _, Compared::Float(float)) => {
            const BEYOND: f64 = 9_223_372_036_854_775_808.0;
            is_integral(float) && (-BEYOND..BEYOND).contains(&float)
        }
        (_, "float", Compared::Float(float)) => float.abs() < 3.402_823_567_797_366e38,
        _ => true,
    };
    if fits {
        return None;
    }
    Some(if format.is_empty() {
        format!("{name} value must be of type {kind} (default format) in {path}")
    } else {
        format!("{name} value must be of type {kind} with format {format} in {path}")
    })
}

/// Returns whether a float does not have a fractional part.
#[expect(clippy::float_cmp, reason = "it is exact or not integral")]
fn is_integral(float: f64) -> bool {
    float.trunc() == float
}
