//! What a strict decoder refuses: fields that the type does not have, and names that an object has twice.
//!
//! Source: sigs.k8s.io/json `internal/golang/encoding/json/kubernetes_patch.go`; apimachinery pkg/runtime/error.go,
//! `strictDecodingError`.

use std::collections::{BTreeSet, HashSet};

use crate::json_text::{self, Container, MAX_DEPTH, Token};
use crate::quoting::quote;

/// Checks a document, whose JSON is `text`. `unknown` are the paths of the fields that its type does not have, such as
/// `webhooks[0].foo`; `repeated` is what the reader of YAML said of keys that are there twice.
///
/// Rule: LOAD-12.
///
/// # Errors
/// The server's text, with everything that is wrong in the order of `text`.
pub(super) fn check(text: &str, unknown: &[String], repeated: Option<&str>) -> Result<(), String> {
    refuse(text, unknown, repeated, None)
}

/// Checks a `v1` `List`, of whose `items` only the text is kept.
///
/// # Errors
/// As [`check`].
pub(super) fn check_list(text: &str, unknown: &[String], repeated: Option<&str>) -> Result<(), String> {
    refuse(text, unknown, repeated, Some("items"))
}

fn refuse(text: &str, unknown: &[String], repeated: Option<&str>, raw: Option<&str>) -> Result<(), String> {
    let mut walk = Walk {
        unknown: unknown.iter().map(String::as_str).collect(),
        raw,
        open: Vec::new(),
        next: String::new(),
        is_skipped: false,
        errors: repeated.iter().map(|text| (*text).to_owned()).collect(),
    };
    json_text::scan(text.as_bytes(), MAX_DEPTH, |token| walk.token(token))?;
    // An error that is there twice is said once.
    let mut seen = HashSet::new();
    let errors: Vec<String> = walk.errors.into_iter().filter(|error| seen.insert(error.clone())).collect();
    if errors.is_empty() { Ok(()) } else { Err(format!("strict decoding error: {}", errors.join(", "))) }
}

/// An object or a list that is being walked through.
struct Frame {
    container: Container,
    path: String,
    /// The names that were there, of an object; of a list how many elements.
    names: HashSet<String>,
    elements: usize,
    /// Whether nothing in it is looked at.
    is_skipped: bool,
}

struct Walk<'a> {
    unknown: BTreeSet<&'a str>,
    /// A field whose value is not looked at.
    raw: Option<&'a str>,
    open: Vec<Frame>,
    /// The path of the value that comes next.
    next: String,
    is_skipped: bool,
    errors: Vec<String>,
}

impl Walk<'_> {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Key(key) => self.key(key),
            Token::Begin(container) => {
                self.element();
                let (path, is_skipped) = (std::mem::take(&mut self.next), self.is_skipped);
                let names = HashSet::new();
                self.open.push(Frame { container, path, names, elements: 0, is_skipped });
            }
            Token::Scalar(_) => self.element(),
            Token::End => {
                self.open.pop();
            }
        }
    }

    /// A value begins: in a list it has no name.
    fn element(&mut self) {
        if let Some(frame) = self.open.last_mut().filter(|frame| frame.container == Container::Array) {
            self.next = format!("{}[{}]", frame.path, frame.elements);
            self.is_skipped = frame.is_skipped;
            frame.elements += 1;
        }
    }

    fn key(&mut self, key: &[u8]) {
        let Some(frame) = self.open.last_mut() else { return };
        let name: String = serde_json::from_slice(key).unwrap_or_default();
        let path = if frame.path.is_empty() { name.clone() } else { format!("{}.{name}", frame.path) };
        let is_unknown = self.unknown.contains(path.as_str());
        let is_new = frame.names.insert(name);
        if !frame.is_skipped {
            if is_unknown {
                self.errors.push(format!("unknown field {}", quote(&path)));
            } else if !is_new {
                self.errors.push(format!("duplicate field {}", quote(&path)));
            }
        }
        self.is_skipped = frame.is_skipped || is_unknown || self.raw == Some(path.as_str());
        self.next = path;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, unknown: &[&str], expect: &str) {
        let unknown: Vec<String> = unknown.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(check(text, &unknown, None).unwrap_err(), format!("strict decoding error: {expect}"));
    }

    #[test]
    fn what_is_wrong_comes_in_the_order_of_the_text() {
        refused(
            r#"{"b": [{}, {"zoo": {"a": 1, "a": 2}}], "foo": 1, "a": 1, "a": 2, "foo": 2}"#,
            &["foo", "b[1].zoo"],
            r#"unknown field "b[1].zoo", unknown field "foo", duplicate field "a""#,
        );
        refused(
            r#"{"metadata": {"labels": {"a": "b", "\u0061": "c"}}}"#,
            &[],
            r#"duplicate field "metadata.labels.a""#,
        );
        assert_eq!(check(r#"{"a": [1, {"b": 1}, {"b": 1}]}"#, &[], None), Ok(()));
    }

    #[test]
    fn the_items_of_a_list_are_looked_at_later() {
        let text = r#"{"items": [{"a": 1, "a": 2}], "kind": "List", "kind": "List"}"#;
        let error = check_list(text, &[], None).unwrap_err();
        assert_eq!(error, r#"strict decoding error: duplicate field "kind""#);
    }
}
