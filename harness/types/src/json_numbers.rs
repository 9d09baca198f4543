//! Numbers as Go reads and converts them: those that a float cannot represent, and errors that quote them as written.

use serde_json::{Number, Value};

use crate::json_text::{self, MAX_DEPTH, Token};

/// The number that replaces a number out of the range of a float. The largest float itself is in range.
const STAND_IN: f64 = f64::MAX.next_down();

/// Decodes valid JSON. A number that is out of the range of a float becomes the second largest float.
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
    let replaced = replaced(text, |number| stand_in(number).to_string());
    let Some((text, first)) = replaced else { return Err(error) };
    Ok((serde_json::from_slice(&text)?, Some(first)))
}

/// Decodes valid JSON as a YAML parser does. A number that is out of the range of a float becomes a string.
///
/// # Errors
/// Returns an error for invalid JSON.
pub fn decode_as_yaml(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).or_else(|error| match replaced(text, |number| format!("\"{number}\"")) {
        Some((text, _)) => serde_json::from_slice(&text),
        None => Err(error),
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

/// Converts a float to an integer as Go does on amd64. Values out of range become the minimum integer.
#[expect(clippy::cast_possible_truncation, reason = "Go truncates, and the range is checked")]
pub fn truncated(float: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&float) { float as i64 } else { i64::MIN }
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

/// Returns the number that replaces `number`, with its sign.
fn stand_in(number: &str) -> Value {
    Value::from(if number.starts_with('-') { -STAND_IN } else { STAND_IN })
}

/// Returns whether a number replaces one that is out of the range of a float.
pub(crate) fn is_stand_in(number: &Number) -> bool {
    number.as_f64().is_some_and(|number| number.abs().to_bits() == STAND_IN.to_bits())
}

fn shown(number: &str) -> String {
    serde_json::from_str::<Number>(number)
        .map_or_else(|_error| stand_in(number).to_string(), |number| number.to_string())
}

/// Returns `text` with each number that is out of range replaced by `with`, and the first such number.
///
/// Returns `None` if no number is out of range, or if the text is not valid JSON.
fn replaced(text: &[u8], with: impl Fn(&str) -> String) -> Option<(Vec<u8>, String)> {
    let (mut result, mut end, mut first) = (Vec::with_capacity(text.len()), 0, None);
    json_text::scan(text, MAX_DEPTH, |token| {
        if let Some(number) = number(token).filter(|number| is_out_of_range(number)) {
            let start = number.as_ptr().addr() - text.as_ptr().addr();
            result.extend_from_slice(text.get(end..start).unwrap_or_default());
            result.extend_from_slice(with(number).as_bytes());
            end = start + number.len();
            first.get_or_insert_with(|| number.to_owned());
        }
    })
    .ok()?;
    result.extend_from_slice(text.get(end..).unwrap_or_default());
    Some((result, first?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_out_of_range_are_decoded() {
        let text = br#"{"1e999": ["1e999", 1e999, 1, -1e400]}"#;
        let expected = json!({"1e999": ["1e999", STAND_IN, 1, -STAND_IN]});
        assert_eq!(decode(text).unwrap(), (expected, Some("1e999".to_owned())));
        let expected = json!({"1e999": ["1e999", "1e999", 1, "-1e400"]});
        assert_eq!(decode_as_yaml(text).unwrap(), expected);
        assert_eq!(decode(b"[1e99]").unwrap(), (json!([1e99]), None));
        assert!(decode(b"[1e999").is_err() && decode_as_yaml(b"[1e999").is_err());
    }

    #[test]
    fn only_numbers_out_of_range_are_stand_ins() {
        for (text, expected) in [
            ("1e309", true),
            ("-1e309", true),
            ("1.7976931348623157e308", false),
            ("1e308", false),
            ("1", false),
        ] {
            let (value, _) = decode(text.as_bytes()).unwrap();
            assert_eq!(is_stand_in(value.as_number().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn errors_quote_numbers_as_written() {
        let quoted = |number: &str, text: &str| {
            quoted_as_written(&format!("json: cannot unmarshal number {number} into x"), text.as_bytes())
        };
        assert_eq!(quoted("100.0", "[1, 1e2]"), "json: cannot unmarshal number 1e2 into x");
        let replaced = Value::from(-STAND_IN).to_string();
        assert_eq!(quoted(&replaced, "[1e999, 5, -1e999]"), "json: cannot unmarshal number -1e999 into x");
        assert_eq!(quoted("3", "[\"3.0\"]"), "json: cannot unmarshal number 3 into x");
    }
}
