//! Converts strings that have a format.

use go_std::base64;

use super::super::{Text, Timestamp, Value, layout};
use crate::schema::parse_duration;

/// Converts a string with an OpenAPI format; formats that are only used for validation result in strings.
pub(super) fn read<'a>(text: &'a str, format: &str) -> Value<'a> {
    let value = match format {
        "duration" => parse_duration(text)
            .map(Value::Duration)
            .map_err(|error| format!("Invalid duration {text}: {error}")),
        "date" => layout::parse(layout::DATE, text)
            .map(Value::Timestamp)
            .map_err(|error| format!("Invalid date formatted string {text}: {error}")),
        "date-time" => date_time(text)
            .map(Value::Timestamp)
            .map_err(|error| format!("Invalid date-time formatted string {text}: {error}")),
        "byte" => base64::decode(text)
            .map(|bytes| Value::Bytes(bytes.into()))
            .map_err(|error| format!("Invalid byte formatted string {text}: {error}")),
        _ => return Value::String(Text::Borrowed(text)),
    };
    value.unwrap_or_else(|error| Value::Invalid(error.into()))
}

/// Parses a date and time; an empty string is the zero time.
///
/// Source: kube-openapi pkg/validation/strfmt/time.go, `ParseDateTime`.
fn date_time(text: &str) -> Result<Timestamp, String> {
    if text.is_empty() {
        return Ok(Timestamp::of_any_year(0, 0));
    }
    match Timestamp::parse_any_year(text) {
        Some(time) => Ok(time),
        None => layout::parse(layout::DATE_AND_TIME, text),
    }
}
