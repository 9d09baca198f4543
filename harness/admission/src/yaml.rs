//! Decodes YAML as Go's YAML library does.

use serde::de::{DeserializeOwned, Error as _};
use serde_saphyr::{DuplicateKeyPolicy, Error, with_deserializer_from_str_with_options};

/// Decodes the first document in a string. If a key is duplicated, its last value is used.
///
/// Anything after the first document is ignored, even if it is not YAML.
///
/// # Errors
/// Returns an error if the first document is not valid YAML.
///
/// Source: sigs.k8s.io/yaml goyaml.v2/yaml.go, `Unmarshal`.
pub fn first_document<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let mut first = None;
    let read = with_deserializer_from_str_with_options(text, options, |deserializer| {
        first = Some(T::deserialize(deserializer)?);
        Ok(())
    });
    first.ok_or_else(|| read.err().unwrap_or_else(|| Error::custom("there is no document")))
}

/// Returns the message of Go's library for an error, without the prefix `yaml: `.
///
/// For errors other than invalid characters and unclosed brackets, the wording differs from Go's.
///
/// Source: sigs.k8s.io/yaml goyaml.v2/readerc.go, `yaml_parser_update_buffer`; parserc.go, `yaml_parser_parse_node` and
/// `yaml_parser_parse_flow_mapping_key`; decode.go, `fail`.
pub fn message(text: &str, error: &Error) -> String {
    if text.chars().any(|letter| !is_allowed(letter)) {
        return "control characters are not allowed".to_owned();
    }
    let shown = error.without_snippet().to_string();
    if shown.contains("budget breached") {
        return "the document is too complex".to_owned();
    }
    let brackets = [("unclosed bracket '{'", "'}'"), ("unclosed bracket '['", "']'")];
    match brackets.iter().find(|(opening, _)| shown.contains(opening)) {
        Some((_, closing)) => {
            let end = text.lines().count();
            if text.trim_end().ends_with(['{', '[', ',', ':']) {
                return format!("line {end}: did not find expected node content");
            }
            format!("line {end}: did not find expected ',' or {closing}")
        }
        None => in_go(&shown),
    }
}

/// Returns whether YAML documents may contain a character.
fn is_allowed(letter: char) -> bool {
    matches!(letter,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
        | '\u{10000}'..='\u{10ffff}')
}

/// Returns the first line of a YAML error in the format of Go's messages.
///
/// The column is always removed, and the line number is removed if it is 1.
fn in_go(error: &str) -> String {
    let first = error.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let parts = first.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    match parts.map(|(place, text)| (place.split(' ').next().unwrap_or_default(), text)) {
        None => first.to_owned(),
        Some(("1", text)) => text.to_owned(),
        Some((line, text)) => format!("line {line}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn yaml_errors_lose_their_column() {
        assert_eq!(in_go("error: line 1 column 5: unexpected end\n 1 | {"), "unexpected end");
        assert_eq!(in_go("line 3 column 5: unexpected end"), "line 3: unexpected end");
        assert_eq!(in_go("unexpected end"), "unexpected end");
    }

    #[test]
    fn only_the_first_document_is_decoded() {
        for (text, expected) in [
            ("a: 1\n---\na: 2\n", json!({"a": 1})),
            ("{\"a\": 1}{\"a\": 2}", json!({"a": 1})),
            ("a: 1\n---\n{", json!({"a": 1})),
            ("---\n---\na: 1\n", json!(null)),
            ("", json!(null)),
            ("a: 1\na: 2\n", json!({"a": 2})),
        ] {
            assert_eq!(first_document::<Value>(text).expect(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_have_the_words_of_go() {
        for (text, expected) in [
            ("{", "line 1: did not find expected node content"),
            ("k8s\u{0}", "control characters are not allowed"),
            ("{a: b", "line 1: did not find expected ',' or '}'"),
            ("a:\n  b: [c\n", "line 2: did not find expected ',' or ']'"),
        ] {
            let error = first_document::<Value>(text).expect_err(text);
            assert_eq!(message(text, &error), expected, "{text}");
        }
    }
}
