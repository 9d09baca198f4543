//! Returns the errors of the strict decoder: unknown fields and duplicate keys.
//!
//! Source: sigs.k8s.io/json `internal/golang/encoding/json/kubernetes_patch.go`; apimachinery pkg/runtime/error.go,
//! `strictDecodingError`.

use std::collections::{BTreeSet, HashSet};

use super::table::{Form, Kind};
use super::walk::Type;
use crate::json_text::{self, Container, MAX_DEPTH, Token};
use crate::quoting::quote;

/// Returns the strict decoder's errors for the JSON document `text`, in the decoder's order.
///
/// `unknown` lists the paths of fields that the type does not have, such as `webhooks[0].foo`. Parts that the type
/// decodes with its own method are not checked.
///
/// # Errors
/// Returns Go's error for invalid JSON.
pub fn errors(text: &str, unknown: &[String], of: Type) -> Result<Vec<String>, String> {
    walk(text, unknown, of, None)
}

/// Returns the errors for a `v1` `List`. Its `items` are not checked.
///
/// # Errors
/// Returns Go's error for invalid JSON.
pub fn list_errors(text: &str, unknown: &[String]) -> Result<Vec<String>, String> {
    walk(text, unknown, Type::Free, Some("items"))
}

/// Combines all `errors` into one error. Succeeds if there are none.
///
/// # Errors
/// Returns kube-apiserver's message, which lists all errors.
///
/// Rule: LOAD-12.
pub fn refuse(errors: impl Iterator<Item = String>) -> Result<(), String> {
    let errors: Vec<String> = errors.collect();
    if errors.is_empty() { Ok(()) } else { Err(format!("strict decoding error: {}", errors.join(", "))) }
}

/// Returns the error for an unknown field.
pub fn unknown_field(path: &str) -> String {
    format!("unknown field {}", quote(path))
}

fn walk(text: &str, unknown: &[String], of: Type, raw: Option<&str>) -> Result<Vec<String>, String> {
    let mut walk = Walk {
        unknown: unknown.iter().map(String::as_str).collect(),
        raw,
        open: Vec::new(),
        next: Next { path: String::new(), of, is_skipped: false },
        errors: Vec::new(),
        seen: HashSet::new(),
    };
    json_text::scan(text.as_bytes(), MAX_DEPTH, |token| walk.token(token))?;
    Ok(walk.errors)
}

/// The maximum number of errors to report.
const MAX_STRICT_ERRORS: usize = 100;

/// An object or a list that is being read.
struct Frame {
    container: Container,
    /// The position and type of the object or list.
    at: Next,
    /// The keys of an object that have been read so far.
    names: HashSet<String>,
    /// The number of list elements that have been read so far.
    elements: usize,
}

/// The position and type of the value to read next.
struct Next {
    path: String,
    of: Type,
    /// Whether the contents of the value are not checked.
    is_skipped: bool,
}

struct Walk<'a> {
    unknown: BTreeSet<&'a str>,
    /// The name of a field whose value is not checked.
    raw: Option<&'a str>,
    open: Vec<Frame>,
    next: Next,
    errors: Vec<String>,
    /// The errors reported so far, so that each error is reported once.
    seen: HashSet<String>,
}

impl Walk<'_> {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Key(key) => self.key(key),
            Token::Begin(container) => {
                self.element();
                let nothing = Next { path: String::new(), of: Type::Free, is_skipped: false };
                let at = std::mem::replace(&mut self.next, nothing);
                self.open.push(Frame { container, at, names: HashSet::new(), elements: 0 });
            }
            Token::Scalar(_) => self.element(),
            Token::End => {
                self.open.pop();
            }
        }
    }

    /// Starts an element if the innermost container is a list. In an object, the key starts a value.
    fn element(&mut self) {
        if let Some(frame) = self.open.last_mut().filter(|frame| frame.container == Container::Array) {
            self.next = Next {
                path: format!("{}[{}]", frame.at.path, frame.elements),
                of: frame.at.of.item(),
                is_skipped: frame.at.is_skipped,
            };
            frame.elements += 1;
        }
    }

    fn key(&mut self, key: &[u8]) {
        let Some(frame) = self.open.last_mut() else { return };
        let name: String = serde_json::from_slice(key).unwrap_or_default();
        let path = if frame.at.path.is_empty() { name.clone() } else { format!("{}.{name}", frame.at.path) };
        let of = frame.at.of.member(&name);
        let is_unknown = self.unknown.contains(path.as_str());
        let is_new = frame.names.insert(name);
        let is_skipped = frame.at.is_skipped;
        if !is_skipped && is_unknown {
            self.note(unknown_field(&path));
        } else if !is_skipped && !is_new {
            self.note(format!("duplicate field {}", quote(&path)));
        }
        let is_raw = self.raw == Some(path.as_str()) || reads_itself(of);
        self.next = Next { path, of, is_skipped: is_skipped || is_unknown || is_raw };
    }

    fn note(&mut self, error: String) {
        if self.errors.len() < MAX_STRICT_ERRORS && self.seen.insert(error.clone()) {
            self.errors.push(error);
        }
    }
}

/// Returns whether a type has an `UnmarshalJSON` method. Such a method ignores unknown fields.
fn reads_itself(of: Type) -> bool {
    of.message().is_some_and(|message| {
        message.form == Form::Value && !matches!(message.fields.as_slice(), [only] if only.kind != Kind::Json)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group_version::GroupVersionKind;

    #[track_caller]
    fn refused(text: &str, unknown: &[&str], expect: &str) {
        let unknown: Vec<String> = unknown.iter().map(|path| (*path).to_owned()).collect();
        let errors = errors(text, &unknown, Type::Free).unwrap();
        assert_eq!(refuse(errors.into_iter()).unwrap_err(), format!("strict decoding error: {expect}"));
    }

    #[test]
    fn errors_are_in_the_order_of_the_text() {
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
        assert_eq!(errors(r#"{"a": [1, {"b": 1}, {"b": 1}]}"#, &[], Type::Free), Ok(Vec::new()));
    }

    #[test]
    fn the_items_of_a_list_are_not_checked() {
        let text = r#"{"items": [{"a": 1, "a": 2}], "kind": "List", "kind": "List"}"#;
        assert_eq!(list_errors(text, &[]), Ok(vec![r#"duplicate field "kind""#.to_owned()]));
    }

    #[test]
    fn arbitrary_json_is_not_checked() {
        let of = Type::for_kind(&GroupVersionKind::new("apps", "v1", "ControllerRevision"));
        let text = r#"{"metadata": {"name": "a", "name": "b"}, "data": {"a": 1, "a": 2}}"#;
        assert_eq!(errors(text, &[], of), Ok(vec![r#"duplicate field "metadata.name""#.to_owned()]));
    }
}
