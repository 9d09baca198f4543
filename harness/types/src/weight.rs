//! How much memory a document takes: many times its text, if it has many small members.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::json_text::{self, Container, Token};

/// A node of a `BTreeMap` of documents: eleven keys and values, each of which has its place whether it is there or not.
const NODE: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;

/// How many members a node has, at the least, where there are several nodes.
const MEMBERS: usize = 6;

/// What an allocator takes for so many bytes: multiples of 16, eight bytes of its own, and 32 at the least.
const fn allocated(bytes: usize) -> usize {
    let whole = (bytes + 8).next_multiple_of(16);
    match bytes {
        0 => 0,
        1..=24 => 32,
        _ => whole,
    }
}

/// The bytes of memory that a document takes, not exactly, but never a fraction of it.
pub fn weight(document: &Value) -> usize {
    usize::MAX - left_of(usize::MAX, document).unwrap_or_default()
}

/// Whether a document weighs more than so many bytes: not much more of it is looked at.
pub fn exceeds(document: &Value, bytes: usize) -> bool {
    left_of(bytes, document).is_none()
}

/// Whether documents weigh more than so many bytes together.
pub fn all_exceed<'a>(documents: impl IntoIterator<Item = &'a Value>, bytes: usize) -> bool {
    documents.into_iter().try_fold(bytes, left_of).is_none()
}

/// What is left of so many bytes beside a document; none if it weighs more.
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
                // The value's own place is in the node.
                left = left.checked_sub(allocated(key.capacity()))? + size_of::<Value>();
                left = left_of(left, value)?;
            }
        }
    }
    Some(left)
}

/// How many bytes a document has as JSON.
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
    // A document has no keys that are not texts, and the counter takes all.
    let _ = serde_json::to_writer(&mut counter, document);
    counter.0
}

/// What the document of a JSON text comes to, before it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// How many values it has.
    pub values: usize,
    /// What it weighs, and more if it names a member twice.
    pub weight: usize,
}

/// What becomes of a text, up to where it stops being JSON.
pub fn expected(text: &[u8]) -> Expected {
    let mut expected = Expected { values: 0, weight: size_of::<Value>() };
    let mut is_first = false;
    // What is no JSON is told when it is read.
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
    // A list has up to twice the places that it needs.
    expected.weight += 2 * expected.values * size_of::<Value>();
    expected
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_members_weigh_many_times_their_text() {
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
    fn a_text_becomes_no_more_than_was_expected() {
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
    fn a_document_is_as_long_as_its_text() {
        for document in [json!({"a": ["\n", null, 1.5]}), json!("é")] {
            assert_eq!(json_length(&document), document.to_string().len());
        }
    }
}
