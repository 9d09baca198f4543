//! Formats a patch for the audit log.

use std::collections::BTreeMap;

use kubernetes_types::json_text::{self, Container, Token};
use kubernetes_types::quoting::{encode, escape_html};
use serde_json::Value;

use super::node;

/// The operations of a patch and their JSON in the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations {
    values: Vec<Value>,
    written: String,
}

impl Operations {
    pub(super) fn new(values: Vec<Value>, patch: &[u8]) -> Self {
        Self { values, written: compact(patch) }
    }

    /// Returns the operations as compact JSON with the number formats and escapes that the webhook sent.
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl std::ops::Deref for Operations {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.values
    }
}

/// Formats a patch as compact JSON.
///
/// The members of each operation are sorted, and the last duplicate wins; their values keep their number formats,
/// escapes, and order.
///
/// Returns an empty string if `patch` is not a list of objects.
///
/// Source: gopkg.in/evanphx/json-patch.v4 patch.go: an `Operation` is a map of `json.RawMessage`s, which Go's encoder
/// compacts and escapes for HTML.
pub(super) fn compact(patch: &[u8]) -> String {
    let mut writer = Writer::default();
    // Invalid JSON is reported when the patch is decoded.
    if json_text::scan(patch, json_text::MAX_DEPTH, |token| writer.take(token)).is_err() {
        return String::new();
    }
    format!("[{}]", writer.operations.join(","))
}

#[derive(Default)]
struct Writer {
    operations: Vec<String>,
    /// The members of the operation that is being read.
    members: BTreeMap<String, String>,
    key: String,
    /// The value that is being read.
    value: String,
    open: Vec<Container>,
    /// Whether the next value requires a comma before it.
    follows: bool,
}

impl Writer {
    fn take(&mut self, token: Token<'_>) {
        match (token, self.open.len()) {
            (Token::Begin(container), depth) => {
                if depth > 1 {
                    self.separate();
                    self.value.push(if container == Container::Object { '{' } else { '[' });
                    self.follows = false;
                }
                self.open.push(container);
            }
            (Token::Key(text), depth) => {
                let text = String::from_utf8_lossy(text);
                if depth == 2 {
                    self.key = node::string(&text);
                } else {
                    self.separate();
                    self.value.push_str(&escape_html(&text));
                    self.value.push(':');
                    self.follows = false;
                }
            }
            (Token::Scalar(text), depth) => {
                let text = String::from_utf8_lossy(text);
                if depth == 1 {
                    self.operations.push(text.into_owned());
                } else {
                    self.separate();
                    self.value.push_str(&escape_html(&text));
                    self.end_of_value();
                }
            }
            (Token::End, _) => match (self.open.pop(), self.open.len()) {
                (Some(_), 1) => {
                    let members = std::mem::take(&mut self.members);
                    let member = |(key, value)| format!("{}:{value}", encode(&Value::String(key)));
                    let members: Vec<String> = members.into_iter().map(member).collect();
                    self.operations.push(format!("{{{}}}", members.join(",")));
                }
                (Some(container), 2..) => {
                    self.value.push(if container == Container::Object { '}' } else { ']' });
                    self.end_of_value();
                }
                _ => {}
            },
        }
    }

    fn separate(&mut self) {
        if self.follows {
            self.value.push(',');
        }
    }

    fn end_of_value(&mut self) {
        self.follows = true;
        if self.open.len() == 2 {
            self.members.insert(std::mem::take(&mut self.key), std::mem::take(&mut self.value));
            self.follows = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_deref_to_a_list_and_keep_their_text() {
        let patch = r#"[{"op": "remove", "path": "/a"}]"#;
        let values: Vec<Value> = serde_json::from_str(patch).expect("JSON");
        let operations = Operations::new(values.clone(), patch.as_bytes());
        assert_eq!(*operations, *values);
        assert_eq!(operations.written(), r#"[{"op":"remove","path":"/a"}]"#);
    }

    #[test]
    fn values_keep_their_source_text() {
        for (patch, expected) in [
            ("[]", "[]"),
            ("[null, {}]", "[null,{}]"),
            (
                r#"[ {"value" : 1.0e2, "op":"add", "path": "/a\u0062"} ]"#,
                r#"[{"op":"add","path":"/a\u0062","value":1.0e2}]"#,
            ),
            (
                r#"[{"value": {"b": [1, -0, {"a": "<"}], "a": {}, "b": []}}]"#,
                r#"[{"value":{"b":[1,-0,{"a":"\u003c"}],"a":{},"b":[]}}]"#,
            ),
            (r#"[{"a": 1, "\u0061": 12345678901234567890}]"#, r#"[{"a":12345678901234567890}]"#),
            (r#"[{"<": null}, {"x": [[], [1]]}]"#, r#"[{"\u003c":null},{"x":[[],[1]]}]"#),
            ("[", ""),
        ] {
            assert_eq!(compact(patch.as_bytes()), expected, "{patch}");
        }
    }
}
