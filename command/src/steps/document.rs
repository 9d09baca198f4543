//! Reads the doc strings of steps and the YAML in them.

use gherkin::Step;
use serde_json::Value;

use super::failure::{Outcome, StepFailure};
use crate::documents::yaml_message;

/// Returns the doc string of a step without the media type, the common indentation, and escapes.
///
/// # Errors
/// The step does not have a doc string.
pub(crate) fn text(step: &Step) -> Outcome<String> {
    let raw = step
        .docstring()
        .ok_or_else(|| StepFailure::new(format!("missing doc string (\"\"\") below `{}`", step.value)))?;
    Ok(plain(raw))
}

/// Parses a single YAML document.
///
/// # Errors
/// The text is not valid YAML; the error contains line and column.
pub(crate) fn parse(text: &str) -> Outcome<Value> {
    serde_saphyr::from_str(text).map_err(|error| invalid(&error))
}

/// Parses YAML documents and skips empty documents.
///
/// # Errors
/// The text is not valid YAML; the error contains line and column.
pub(crate) fn parse_documents(text: &str) -> Outcome<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| invalid(&error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn invalid(error: &serde_saphyr::Error) -> StepFailure {
    StepFailure::new(format!("invalid YAML: {}", yaml_message(error)))
}

/// Formats an object as YAML without `managedFields`.
pub(crate) fn show(value: &Value) -> String {
    let mut shown = value.clone();
    if let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&shown).unwrap_or_else(|_| value.to_string())
}

/// Returns a doc string without the media type, the indentation, and the escapes that the parser keeps.
fn plain(raw: &str) -> String {
    let body = match raw.split_once('\n') {
        Some((_media_type, body)) => body,
        None => raw,
    };
    let indentation = body
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let lines: Vec<&str> = body.lines().map(|line| line.get(indentation..).unwrap_or("")).collect();
    lines.join("\n").trim_end().replace("\\\"\\\"\\\"", "\"\"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(plain(raw), expected);
    }

    #[test]
    fn indentation_is_removed() {
        check("\n  kind: Pod\n  spec:\n    x: 1\n", "kind: Pod\nspec:\n  x: 1");
    }

    #[test]
    fn limit_of_the_parser_is_explained() {
        let message = parse(&format!("a: [{}]\n", "1,".repeat(260_000))).unwrap_err().to_string();
        assert!(message.starts_with("invalid YAML: this YAML document is too large: "), "{message}");
    }

    #[test]
    fn media_type_is_removed() {
        check("yaml\n      kind: Pod\n      ", "kind: Pod");
    }

    #[test]
    fn empty_lines_do_not_affect_the_indentation() {
        check("\n    a: 1\n\n    b: 2\n", "a: 1\n\nb: 2");
    }

    #[test]
    fn escaped_quotes_are_unescaped() {
        check("\n  a \\\"\\\"\\\" b", "a \"\"\" b");
    }
}
