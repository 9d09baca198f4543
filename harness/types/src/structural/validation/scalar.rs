//! Validates types, strings, and enumerations.

use serde_json::{Number, Value};

use super::super::node::{Schema, ValueValidation};
use super::super::numbers::is_integer;
use super::report::Failure;
use crate::json_numbers::truncated;
use crate::path::Path;

/// Returns the OpenAPI type of a value, and the format of the corresponding Go type.
///
/// Source: kube-openapi pkg/validation/validate/type.go, `schemaInfoForType`.
fn kind(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Returns the failure for a value whose type does not match the schema.
///
/// Source: kube-openapi pkg/validation/validate/type.go, `Validate`.
pub(super) fn wrong_type(schema: &Schema, format: &str, value: &Value, path: &Path<'_>) -> Option<Failure> {
    let types = schema.types();
    let (kind, kind_format) = kind(value);
    let is_integral = || value.as_f64().is_some_and(is_integer);
    let fits = types.contains(&kind)
        || (kind == "number" && types.contains(&"integer") && is_integral())
        || (kind == "integer" && types.contains(&"number"));
    let is_text_or_list = value.is_string() || value.is_array();
    if !is_text_or_list && !format.is_empty() && !fits && kind_format != format {
        return Some(Failure::wrong_type(path, format, kind_format));
    }
    let is_numeric = types.contains(&"number") || types.contains(&"integer");
    if !is_numeric && !format.is_empty() && is_text_or_list {
        return None;
    }
    (!fits).then(|| Failure::wrong_type(path, &types.join(","), kind))
}

/// Returns the first failure of a string: its length or its pattern. The format is not checked.
///
/// Source: kube-openapi pkg/validation/validate/validator.go, `stringValidator`.
pub(super) fn wrong_text(values: &ValueValidation, text: &str, path: &Path<'_>) -> Option<Failure> {
    let number = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    let length = || number(text.chars().count());
    // A string has at most as many characters as bytes.
    if let Some(most) = values.max_length.filter(|most| number(text.len()) > *most && length() > *most) {
        return Some(Failure::too_long(path, most));
    }
    if let Some(least) = values.min_length.filter(|least| length() < *least) {
        let what = format_args!("should be at least {least} chars long");
        return Some(Failure::invalid(path, &text.into(), what));
    }
    let pattern = values.pattern.as_ref().filter(|pattern| !pattern.regexp.is_match(text))?;
    Some(Failure::invalid(path, &text.into(), format_args!("should match '{}'", pattern.text)))
}

/// Returns whether a value equals an allowed value of an `enum`, after Go's conversion to the same type.
///
/// Source: kube-openapi pkg/validation/validate/validator.go, `basicCommonValidator`; Go reflect, `Convert`.
pub(super) fn is_value(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => is_number(value, allowed),
        // Go converts an integer to the character with that number.
        (Value::Number(value), Value::String(allowed)) => value.as_i64().is_some_and(|value| {
            let character = u32::try_from(value).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
            let mut characters = allowed.chars();
            characters.next() == Some(character) && characters.next().is_none()
        }),
        (value, allowed) => value == allowed,
    }
}

#[expect(clippy::cast_precision_loss, reason = "so Go compares")]
fn is_number(value: &Number, allowed: &Number) -> bool {
    match (value.as_i64(), allowed.as_i64()) {
        (Some(value), Some(allowed)) => value == allowed,
        (Some(value), None) => allowed.as_f64() == Some(value as f64),
        (None, Some(allowed)) => value.as_f64().is_some_and(|value| truncated(value) == allowed),
        (None, None) => value.as_f64() == allowed.as_f64(),
    }
}
