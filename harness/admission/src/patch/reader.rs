//! Parses JSON into [`Node`]s.

use std::collections::BTreeMap;

use kubernetes_types::json_text::{Container, Token, scan};

use super::DecodeError;
use super::node::{Node, string};

/// The maximum nesting depth of a patch: [`MAX_LEVELS`] for a value, plus the list and the operation that contain it.
///
/// Go's own limit is 10,000.
pub(super) const MAX_DEPTH: usize = MAX_LEVELS + 2;
/// The maximum depth of a patched document. Operations on it, including dropping it, use stack space for each level.
pub(super) const MAX_LEVELS: usize = 128;

/// Parses a JSON document.
///
/// # Errors
/// Returns [`DecodeError`] with Go's message, such as `invalid character 'x' looking for beginning of value`.
pub(super) fn read(bytes: &[u8]) -> Result<Node, DecodeError> {
    let mut builder = Builder { open: Vec::new(), document: Node::Null };
    scan(bytes, MAX_DEPTH, |token| builder.take(token)).map_err(DecodeError)?;
    Ok(builder.document)
}

struct Builder {
    /// The unfinished objects and lists, innermost last.
    open: Vec<Open>,
    document: Node,
}

enum Open {
    Object { members: BTreeMap<String, Node>, key: String },
    Array(Vec<Node>),
}

impl Builder {
    fn take(&mut self, token: Token<'_>) {
        match token {
            Token::Begin(Container::Object) => {
                self.open.push(Open::Object { members: BTreeMap::new(), key: String::new() });
            }
            Token::Begin(Container::Array) => self.open.push(Open::Array(Vec::new())),
            Token::Key(text) => {
                if let Some(Open::Object { key, .. }) = self.open.last_mut() {
                    *key = string(&String::from_utf8_lossy(text));
                }
            }
            Token::Scalar(b"null") => self.put(Node::Null),
            Token::Scalar(text) => self.put(Node::Scalar(String::from_utf8_lossy(text).into_owned())),
            Token::End => match self.open.pop() {
                Some(Open::Object { members, .. }) => self.put(Node::Object(members)),
                Some(Open::Array(nodes)) => self.put(Node::Array(nodes)),
                None => {}
            },
        }
    }

    /// Adds a value to the innermost container. If two members have the same name, the later one wins.
    fn put(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(Open::Object { members, key }) => drop(members.insert(std::mem::take(key), node)),
            Some(Open::Array(nodes)) => nodes.push(node),
            None => self.document = node,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_unpaired_surrogate_becomes_a_replacement_character() {
        assert_eq!(string(r#""a\ud83d\ude00b\ud800c""#), "a😀b\u{fffd}c");
    }

    #[test]
    fn a_document_that_is_too_deep_is_rejected() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(nested(MAX_DEPTH).as_bytes()).is_ok());
        let error = DecodeError("exceeded max depth".to_owned());
        assert_eq!(read(nested(MAX_DEPTH + 1).as_bytes()), Err(error));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}\",:0-9eE.+\\-truefalsn\\\\ ]{0,40}") {
            let _ = read(text.as_bytes());
        }

        #[test]
        fn every_text_that_serde_reads_is_read_to_the_same_value(text in "[\\[\\]{}\",:0-9e.\\-\\\\ ]{0,12}") {
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                prop_assert_eq!(read(text.as_bytes()).unwrap().to_value().unwrap(), value);
            }
        }
    }
}
