//! Escapes property names for expressions.
//!
//! Source: apiserver pkg/cel/escaping.go.

use std::borrow::Cow;

use crate::parser::RESERVED;

const ESCAPES: [(&str, &str); 4] = [("__", "underscores"), (".", "dot"), ("-", "dash"), ("/", "slash")];

/// Returns whether a name is a keyword of the language.
///
/// Source: apiserver pkg/cel/escaping.go, `celReservedSymbols`.
pub fn is_keyword(name: &str) -> bool {
    RESERVED.contains(&name) || ["true", "false", "null", "in"].contains(&name)
}

/// Escapes a property name for expressions, such as `__namespace__` and `a__dot__b`, or returns `None` if expressions
/// cannot contain the name.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if is_keyword(name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.bytes().all(is_plain) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(first) = rest.bytes().next() {
        let escape = ESCAPES.iter().find_map(|(text, escape)| Some((rest.strip_prefix(text)?, escape)));
        if let Some((behind, escape)) = escape {
            escaped.extend(["__", escape, "__"]);
            rest = behind;
        } else if is_plain(first) {
            escaped.push(char::from(first));
            rest = rest.get(1..)?;
        } else {
            return None;
        }
    }
    Some(Cow::Owned(escaped))
}

/// Reverses [`escape`]; returns `None` if `escaped` contains an invalid escape sequence.
pub fn unescape(escaped: &str) -> Option<Cow<'_, str>> {
    let mut name = String::new();
    let mut rest = escaped;
    while let Some((before, contents, behind)) = next_escape(rest) {
        name.push_str(before);
        match ESCAPES.iter().find(|(_, escape)| *escape == contents) {
            Some((text, _)) => name.push_str(text),
            // A keyword is the whole name.
            None if is_keyword(contents) && contents.len() + 4 == escaped.len() => name.push_str(contents),
            None => return None,
        }
        rest = behind;
    }
    if rest.len() == escaped.len() {
        return Some(Cow::Borrowed(escaped));
    }
    name.push_str(rest);
    Some(Cow::Owned(name))
}

/// Splits at the first `__name__` into the text before it, the name without underscores, and the text after it.
fn next_escape(text: &str) -> Option<(&str, &str, &str)> {
    let mut start = 0;
    while let Some(found) = text.get(start..)?.find("__") {
        let open = start + found;
        let inner = text.get(open + 2..)?;
        let length = inner.find('_').unwrap_or(inner.len());
        let (contents, behind) = inner.split_at(length);
        if let (false, Some(behind)) = (contents.is_empty(), behind.strip_prefix("__")) {
            return Some((text.get(..open)?, contents, behind));
        }
        start = open + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        let cases = [
            ("a", Some("a")),
            ("_a1", Some("_a1")),
            ("namespace", Some("__namespace__")),
            ("in", Some("__in__")),
            ("namespaces", Some("namespaces")),
            ("a.b", Some("a__dot__b")),
            ("a-b/c", Some("a__dash__b__slash__c")),
            ("__", Some("__underscores__")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("-", Some("__dash__")),
            ("é", None),
            ("a.é", None),
            ("a b", None),
            ("1a", None),
            ("", None),
        ];
        for (name, expected) in cases {
            let escaped = escape(name);
            assert_eq!(escaped.as_deref(), expected, "{name}");
            if let Some(escaped) = escaped {
                assert_eq!(unescape(&escaped).as_deref(), Some(name), "{name}");
            }
        }
    }

    #[test]
    fn unescaped_text_is_not_a_name() {
        let cases = [
            ("__dot__", Some(".")),
            ("a__dot", Some("a__dot")),
            ("a__", Some("a__")),
            ("___dot__", Some("_.")),
            ("a__nothing__b", None),
            ("a__namespace__", None),
            ("__namespace__", Some("namespace")),
            ("__dot____dash__", Some(".-")),
        ];
        for (escaped, expected) in cases {
            assert_eq!(unescape(escaped).as_deref(), expected, "{escaped}");
        }
    }
}
