//! Estimates the memory of JSON documents.
//!
//! A document with many small members takes many times as much memory as its text.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::json_text::{self, Container, Token};

/// The size, in bytes, of a `BTreeMap` node. A node has space for eleven keys and values, whether used or not.
const NODE: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;

/// The minimum number of members in a node if there are several nodes.
const MEMBERS: usize = 6;

/// Returns the memory in bytes that the allocator uses for `bytes`: at least 32 bytes, and a multiple of 16.
const fn allocated(bytes: usize) -> usize {
    let whole = (bytes + 8).next_multiple_of(16);
    match bytes {
        0 => 0,
        1..=24 => 32,
        _ => whole,
    }
}

/// Estimates the memory, in bytes, of a document. The result is never much too small.
pub fn weight(document: &Value) -> usize {
    usize::MAX - left_of(usize::MAX, document).unwrap_or_default()
}

/// Returns whether a document takes more than `bytes` of memory. Counting stops soon after the limit.
pub fn exceeds(document: &Value, bytes: usize) -> bool {
    left_of(bytes, document).is_none()
}

/// Returns whether all documents together take more than `bytes` of memory.
pub fn all_exceed<'a>(documents: impl IntoIterator<Item = &'a Value>, bytes: usize) -> bool {
    documents.into_iter().try_fold(bytes, left_of).is_none()
}

/// Subtracts the memory of a document from `bytes`; returns `None` if the document takes more.
fn left_of(bytes: usize, document: &Value) -> Option<usize> {
    let mut left = bytes.checked_sub(size_of::<Value>())?;
    match document {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => left = left.checked_sub(allocated(text.capacity()))?,
        Value::Array(items) => {
            left = left.checked_sub((items.capacity() - items.len()) * size_of::<Value>())?;
            for item in items {
                left = left_of(left, item)?;
            }
        }
        Value::Object(members) => {
            left = left.checked_sub(members.len().div_ceil(MEMBERS) * NODE)?;
            for (key, value) in members {
                // The value itself is stored in the node.
                left = left.checked_sub(allocated(key.capacity()))? + size_of::<Value>();
                left = left_of(left, value)?;
            }
        }
    }
    Some(left)
}

/// Returns the length, in bytes, of a document as JSON.
pub fn json_length(document: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Serialization cannot fail: all keys are strings, and the counter accepts every write.
    let _ = serde_json::to_writer(&mut counter, document);
    counter.0
}

/// The estimated size of a JSON document that has not been parsed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The number of values.
    pub values: usize,
    /// The memory, in bytes. Duplicate keys make the estimate too large.
    pub weight: usize,
}

/// Estimates the size of the document in `text`, up to the first syntax error.
pub fn expected(text: &[u8]) -> Expected {
    let mut expected = Expected { values: 0, weight: size_of::<Value>() };
    let mut is_first = false;
    // Invalid JSON is reported when the text is parsed.
    let _ = json_text::scan(text, json_text::MAX_DEPTH, |token| match token {
        Token::Begin(container) => {
            expected.values += 1;
            is_first = container == Container::Object;
        }
        Token::Scalar(scalar) => {
            expected.values += 1;
            if let [b'"', text @ .., _quote] = scalar {
                expected.weight += allocated(text.len());
            }
        }
        Token::Key(key) => {
            expected.weight += allocated(key.len()) + if is_first { NODE } else { NODE / MEMBERS };
            is_first = false;
        }
        Token::End => is_first = false,
    });
    // A list allocates up to twice the slots that it needs.
    expected.weight += 2 * expected.values * size_of::<Value>();
    expected
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_members_take_many_times_their_text() {
        let text = format!("[{}]", vec![r#"{"a":0}"#; 1000].join(","));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(weight(&document) > 1000 * NODE, "{}", weight(&document));
        assert!(weight(&json!("x".repeat(1000))) >= 1000);
        assert!(weight(&json!("x".repeat(1000))) < 2000);
        for document in [document, json!({"a": ["b", {"c": null}], "d": {}}), json!(1)] {
            assert!(!exceeds(&document, weight(&document)));
            assert!(exceeds(&document, weight(&document) - 1));
        }
    }

    #[test]
    fn a_document_takes_no_more_than_estimated() {
        for (text, values) in [
            ("{}".to_owned(), 1),
            (format!("[{}]", vec!["{}"; 1000].join(",")), 1001),
            (format!("[{}]", vec![r#"{"a":0}"#; 1000].join(",")), 2001),
            (format!(r#"{{"a":{{"b":[[],"{}"]}},"c":{{"d":1}}}}"#, "x".repeat(1000)), 7),
            (json!((0..1000).map(|key| (key.to_string(), json!("y"))).collect::<Value>()).to_string(), 1001),
        ] {
            let document: Value = serde_json::from_str(&text).unwrap();
            let expected = expected(text.as_bytes());
            assert_eq!(expected.values, values);
            assert!(expected.weight >= weight(&document), "{expected:?}, {}", weight(&document));
            assert!(expected.weight <= 3 * weight(&document) + 100, "{expected:?}, {}", weight(&document));
        }
    }

    #[test]
    fn json_length_equals_the_length_of_the_text() {
        for document in [json!({"a": ["\n", null, 1.5]}), json!("é")] {
            assert_eq!(json_length(&document), document.to_string().len());
        }
    }
}
