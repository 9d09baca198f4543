//! How much memory a document takes: many times its text, if it has many small members.

use std::io;

use serde_json::Value;

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
pub(super) fn weight(document: &Value) -> usize {
    size_of::<Value>()
        + match document {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => allocated(text.capacity()),
            Value::Array(items) => {
                let spare = items.capacity() - items.len();
                spare * size_of::<Value>() + items.iter().map(weight).sum::<usize>()
            }
            Value::Object(members) => {
                let each = |(key, value): (&String, &Value)| {
                    allocated(key.capacity()) + weight(value) - size_of::<Value>()
                };
                members.len().div_ceil(MEMBERS) * NODE + members.iter().map(each).sum::<usize>()
            }
        }
}

/// How many bytes a document has as JSON.
pub(super) fn json_length(document: &Value) -> usize {
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
    }

    #[test]
    fn a_document_is_as_long_as_its_text() {
        for document in [json!({"a": ["\n", null, 1.5]}), json!("é")] {
            assert_eq!(json_length(&document), document.to_string().len());
        }
    }
}
