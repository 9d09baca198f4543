//! Decodes bytes in JSON as Go does: from base64 or from a list of numbers.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
pub use go_std::base64::decode;
use serde_json::Value;

/// Decodes the bytes of a field from base64, or from a list of numbers from 0 to 255.
///
/// A `null` in the list is 0; a `null` instead of the list is empty.
///
/// # Errors
/// Returns Go's error for invalid base64, or a message with the expected type for any other value.
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

/// Returns the base64 that Go writes for the bytes in `value`.
///
/// Returns `None` if `value` is already in this form or cannot be decoded.
pub(crate) fn canonical(value: &Value) -> Option<String> {
    // Base64 without line breaks and padding, as in most values, has only one form.
    if value.as_str().is_some_and(|text| !text.ends_with('=') && !text.contains(['\r', '\n'])) {
        return None;
    }
    let text = BASE64_STANDARD.encode(bytes(value).ok()?);
    (value != text.as_str()).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
