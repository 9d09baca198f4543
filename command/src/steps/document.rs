//! Doc strings, and the YAML in them.

use gherkin::Step;
use serde_json::Value;

use super::failure::{Outcome, StepFailure};

/// The doc string of a step, as its author sees it: without the media type, the common indentation and escapes.
///
/// # Errors
/// The step has none.
pub(crate) fn text(step: &Step) -> Outcome<String> {
    let raw = step
        .docstring()
        .ok_or_else(|| StepFailure::new(format!("`{}` needs a doc string (\"\"\") below it", step.value)))?;
    Ok(plain(raw))
}

/// One YAML document.
///
/// # Errors
/// It is not YAML, with line and column.
pub(crate) fn parse(text: &str) -> Outcome<Value> {
    serde_saphyr::from_str(text).map_err(|error| StepFailure::new(format!("this is not YAML: {error}")))
}

/// YAML documents, empty ones left out.
///
/// # Errors
/// They are not YAML, with line and column in the whole text.
pub(crate) fn parse_documents(text: &str) -> Outcome<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| StepFailure::new(format!("this is not YAML: {error}")))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Prints an object for people, without the record of who wrote which field.
pub(crate) fn show(value: &Value) -> String {
    let mut shown = value.clone();
    if let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&shown).unwrap_or_else(|_| value.to_string())
}

/// The parser hands doc strings over raw: with the rest of the opening line, which is the media type, and then with the
/// indentation of the feature file.
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
    fn a_doc_string_loses_its_indentation() {
        check("\n  kind: Pod\n  spec:\n    x: 1\n", "kind: Pod\nspec:\n  x: 1");
    }

    #[test]
    fn a_doc_string_loses_its_media_type() {
        check("yaml\n      kind: Pod\n      ", "kind: Pod");
    }

    #[test]
    fn an_empty_line_has_no_indentation() {
        check("\n    a: 1\n\n    b: 2\n", "a: 1\n\nb: 2");
    }

    #[test]
    fn escaped_quotes_are_quotes() {
        check("\n  a \\\"\\\"\\\" b", "a \"\"\" b");
    }
}
