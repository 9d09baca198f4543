//! Decodes the JSON of tokens strictly, because duplicate keys can hide a claim.
//!
//! Source: go-jose json/decode.go, `object` and `objectInterface`.

use std::collections::HashSet;

use kubernetes_types::json_text::{self, MAX_DEPTH, Token};
use serde_json::Value;

/// Decodes a JSON document without duplicate keys.
///
/// # Errors
/// Returns the message of go-jose for a duplicate key, and a message of the parser for invalid JSON.
pub(super) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let value = serde_json::from_slice(bytes).map_err(|error| {
        let text = error.to_string();
        // The parser adds the position, which go-jose does not.
        text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
    })?;
    match duplicate_key(bytes)? {
        Some(key) => Err(format!("json: duplicate key '{key}' in object")),
        None => Ok(value),
    }
}

/// Returns the first key that occurs twice in an object.
fn duplicate_key(text: &[u8]) -> Result<Option<String>, String> {
    let mut open: Vec<HashSet<String>> = Vec::new();
    let mut duplicate = None;
    json_text::scan(text, MAX_DEPTH, |token| match token {
        Token::Begin(_) => open.push(HashSet::new()),
        Token::End => drop(open.pop()),
        Token::Key(key) => {
            let key: String = serde_json::from_slice(key).unwrap_or_default();
            let is_duplicate = open.last_mut().is_some_and(|keys| !keys.insert(key.clone()));
            if is_duplicate && duplicate.is_none() {
                duplicate = Some(key);
            }
        }
        Token::Scalar(_) => {}
    })?;
    Ok(duplicate)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_keys_are_rejected_at_every_level() {
        let duplicate = |key: &str| Err(format!("json: duplicate key '{key}' in object"));
        assert_eq!(decode(br#"{"exp": 1, "nbf": 2, "exp": 3}"#), duplicate("exp"));
        assert_eq!(decode(br#"[{"a": {"b": null, "b": null}}]"#), duplicate("b"));
        assert_eq!(decode(br#"{"a\u0062": 1, "ab": 2}"#), duplicate("ab"));
        assert_eq!(decode(br#"{"a": 1, "A": -1, "b": [1.5, "x", true, null]}"#).unwrap(), {
            json!({"a": 1, "A": -1, "b": [1.5, "x", true, null]})
        });
        assert!(decode(b"{} {}").is_err() && decode(b"").is_err());
    }
}
