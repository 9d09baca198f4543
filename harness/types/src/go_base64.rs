//! Decodes bytes in JSON as Go does: base64 may contain line breaks, and errors include the offset.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// The base64 alphabet. Padding is checked separately, and the unused bits before the padding may have any value.
const LETTERS: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes the bytes of a field from base64, or from a list of numbers from 0 to 255.
///
/// A `null` in the list is 0; a `null` instead of the list is empty.
///
/// # Errors
/// Go's error for invalid base64, or a message with the expected type for any other value.
///
/// Source: Go encoding/json/decode.go, `literalStore` and `array`.
pub fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    let byte = |item: &Value| {
        let number = if item.is_null() { Some(0) } else { item.as_u64() };
        let byte = number.and_then(|number| u8::try_from(number).ok());
        byte.ok_or_else(|| format!("must be a list of numbers from 0 to 255, found {item}"))
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => decode(text),
        Value::Array(items) => items.iter().map(byte).collect(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(format!("must be base64 or a list of numbers from 0 to 255, found {value}"))
        }
    }
}

/// Returns the base64 that Go writes for the bytes in `value`; `None` if `value` is the same or cannot be decoded.
pub(crate) fn canonical(value: &Value) -> Option<String> {
    // Most values are canonical: without line breaks and padding, no other form is possible.
    if value.as_str().is_some_and(|text| !text.ends_with('=') && !text.contains(['\r', '\n'])) {
        return None;
    }
    let text = BASE64_STANDARD.encode(bytes(value).ok()?);
    (value != text.as_str()).then_some(text)
}

/// Decodes `text` from base64.
///
/// # Errors
/// Go's error with the offset of the invalid byte: `illegal base64 data at input byte 3`.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    decode_or_blame(text).map_err(|at| format!("illegal base64 data at input byte {at}"))
}

/// Decodes base64, or returns the offset of the invalid byte.
///
/// Source: Go encoding/base64/base64.go, `decodeQuantum`.
fn decode_or_blame(text: &str) -> Result<Vec<u8>, usize> {
    let bytes = text.as_bytes();
    let mut letters: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\r' | b'\n' => {}
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => letters.push(byte),
            b'=' => {
                padding(bytes, at, letters.len() % 4)?;
                break;
            }
            _ => return Err(at - 1),
        }
        if at == bytes.len() && !letters.len().is_multiple_of(4) {
            return Err(at - letters.len() % 4);
        }
    }
    LETTERS.decode(&letters).or(Err(bytes.len()))
}

/// Checks the padding of base64. `at` is the position after the first `=`.
fn padding(bytes: &[u8], mut at: usize, letters_in_quantum: usize) -> Result<(), usize> {
    let skip = |mut at: usize| {
        while bytes.get(at).is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
            at += 1;
        }
        at
    };
    match letters_in_quantum {
        2 => {
            at = skip(at);
            match bytes.get(at) {
                None => return Err(bytes.len()),
                Some(b'=') => at += 1,
                Some(_) => return Err(at - 1),
            }
        }
        3 => {}
        _ => return Err(at - 1),
    }
    at = skip(at);
    if at < bytes.len() { Err(at) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<&[u8], usize>) {
        assert_eq!(decode_or_blame(text), expect.map(<[u8]>::to_vec), "{text:?}");
    }

    // The offsets are those of Go 1.26's base64.StdEncoding.
    #[test]
    fn base64_is_decoded_with_the_errors_of_go() {
        check("", Ok(b""));
        check("W10=", Ok(b"[]"));
        check("W1\n0=\n", Ok(b"[]"));
        check("YQ==", Ok(b"a"));
        check("W10", Err(0));
        check("YWJjW10", Err(4));
        check("W10=x", Err(4));
        check("YQ=", Err(3));
        check("YQ=x", Err(2));
        check("!!!", Err(0));
        check("ab-_", Err(2));
        check("=", Err(0));
    }

    // Recorded from kube-apiserver 1.37.1, which returns 400 for lists without an expected result.
    #[test]
    fn a_list_of_numbers_is_accepted_as_bytes_and_written_as_base64() {
        for (value, expect) in [
            (json!([65, 66]), Some("QUI=")),
            (json!([null, 65]), Some("AEE=")),
            (json!([]), Some("")),
            (json!("QU\nI="), Some("QUI=")),
            (json!("QUJ="), Some("QUI=")),
            (json!("QUI="), None),
            (json!([256]), None),
            (json!([-1]), None),
            (json!(["a"]), None),
            (json!([1.5]), None),
            (json!({}), None),
        ] {
            assert_eq!(canonical(&value).as_deref(), expect, "{value}");
        }
    }
}
