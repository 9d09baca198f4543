//! Numbers in JSON text that a float cannot represent, and errors that quote a number as written.

use std::ops::Range;

use serde_json::{Number, Value};

use crate::json_text::{self, MAX_DEPTH, Token};

/// Decodes valid JSON. A number that is out of the range of a float becomes the largest float.
///
/// Also returns the first such number.
///
/// # Errors
/// Returns an error for invalid JSON.
pub fn decode(text: &[u8]) -> serde_json::Result<(Value, Option<String>)> {
    let error = match serde_json::from_slice(text) {
        Ok(value) => return Ok((value, None)),
        Err(error) => error,
    };
    let Some(first) = first_out_of_range(text) else { return Err(error) };
    Ok((serde_json::from_slice(&replaced(text, |number| largest(number).to_string()))?, Some(first)))
}

/// Decodes valid JSON as a YAML parser does. A number that is out of the range of a float becomes a string.
///
/// # Errors
/// Returns an error for invalid JSON.
pub fn decode_as_yaml(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).or_else(|error| {
        if first_out_of_range(text).is_none() {
            return Err(error);
        }
        serde_json::from_slice(&replaced(text, |number| format!("\"{number}\"")))
    })
}

/// Returns the first number that is out of the range of a float, or `None` if the text is not valid JSON.
pub fn first_out_of_range(text: &[u8]) -> Option<String> {
    let mut first = None;
    json_text::scan(text, MAX_DEPTH, |token| {
        if first.is_none() {
            first = number(token).filter(|number| is_out_of_range(number)).map(str::to_owned);
        }
    })
    .ok()?;
    first
}

/// Returns `message` with the number in it as it is written in `text`.
///
/// Go quotes the text of a number that has the wrong type, such as `cannot unmarshal number 1e2 into …`.
pub fn quoted_as_written(message: &str, text: &[u8]) -> String {
    let found = message
        .split_once("cannot unmarshal number ")
        .and_then(|(_, rest)| Some(rest.split_once(" into ")?.0))
        .filter(|number| !number.contains(' '));
    let Some(found) = found else { return message.to_owned() };
    let mut written = None;
    let _ = json_text::scan(text, MAX_DEPTH, |token| {
        if let Some(number) = number(token).filter(|_| written.is_none())
            && shown(number) == found
        {
            written = Some(number.to_owned());
        }
    });
    written.map_or_else(|| message.to_owned(), |written| message.replacen(found, &written, 1))
}

fn number(token: Token<'_>) -> Option<&str> {
    let Token::Scalar(text) = token else { return None };
    std::str::from_utf8(text)
        .ok()
        .filter(|text| text.starts_with(|first: char| first == '-' || first.is_ascii_digit()))
}

fn is_out_of_range(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Returns the largest float with the sign of `number`.
fn largest(number: &str) -> Value {
    Value::from(if number.starts_with('-') { f64::MIN } else { f64::MAX })
}

/// Returns whether a number stands for one that is out of the range of a float.
pub(crate) fn is_largest(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number.abs() >= f64::MAX)
}

fn shown(number: &str) -> String {
    serde_json::from_str::<Number>(number)
        .map_or_else(|_error| largest(number).to_string(), |number| number.to_string())
}

/// Returns `text` with each number that is out of range replaced by `with`.
fn replaced(text: &[u8], with: impl Fn(&str) -> String) -> Vec<u8> {
    let mut places: Vec<(Range<usize>, String)> = Vec::new();
    let _ = json_text::scan(text, MAX_DEPTH, |token| {
        if let Some(number) = number(token).filter(|number| is_out_of_range(number)) {
            let start = number.as_ptr().addr() - text.as_ptr().addr();
            places.push((start..start + number.len(), with(number)));
        }
    });
    let mut result = Vec::with_capacity(text.len());
    let mut end = 0;
    for (place, number) in places {
        result.extend_from_slice(text.get(end..place.start).unwrap_or_default());
        result.extend_from_slice(number.as_bytes());
        end = place.end;
    }
    result.extend_from_slice(text.get(end..).unwrap_or_default());
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_out_of_range_are_decoded() {
        let text = br#"{"1e999": ["1e999", 1e999, 1, -1e400]}"#;
        let expected = json!({"1e999": ["1e999", f64::MAX, 1, f64::MIN]});
        assert_eq!(decode(text).unwrap(), (expected, Some("1e999".to_owned())));
        let expected = json!({"1e999": ["1e999", "1e999", 1, "-1e400"]});
        assert_eq!(decode_as_yaml(text).unwrap(), expected);
        assert_eq!(decode(b"[1e99]").unwrap(), (json!([1e99]), None));
        assert!(decode(b"[1e999").is_err() && decode_as_yaml(b"[1e999").is_err());
    }

    #[test]
    fn errors_quote_numbers_as_written() {
        let quoted = |number: &str, text: &str| {
            quoted_as_written(&format!("json: cannot unmarshal number {number} into x"), text.as_bytes())
        };
        assert_eq!(quoted("100.0", "[1, 1e2]"), "json: cannot unmarshal number 1e2 into x");
        let largest = Value::from(f64::MIN).to_string();
        assert_eq!(quoted(&largest, "[1e999, 5, -1e999]"), "json: cannot unmarshal number -1e999 into x");
        assert_eq!(quoted("3", "[\"3.0\"]"), "json: cannot unmarshal number 3 into x");
    }
}
