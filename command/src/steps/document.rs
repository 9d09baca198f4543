//! Reads the doc strings of steps and the YAML in them.

use std::path::Path;

use gherkin::Step;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::{Outcome, StepFailure};
use crate::documents::{self, yaml_message, yaml_options};

/// Returns the doc string of a step without the media type, the common indentation, and escapes.
///
/// # Errors
/// Returns an error if the step does not have a doc string.
pub(crate) fn text(step: &Step) -> Outcome<String> {
    let raw = step
        .docstring()
        .ok_or_else(|| StepFailure::new(format!("missing doc string (\"\"\") below `{}`", step.value)))?;
    Ok(plain(raw))
}

/// Parses a single YAML document.
///
/// # Errors
/// Returns an error if the text is not valid YAML. The error contains the line and the column.
pub(crate) fn parse(text: &str) -> Outcome<Value> {
    serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|error| invalid(&error))
}

/// Parses the objects in the YAML documents of a file, including the items of lists, and skips empty documents.
///
/// # Errors
/// Returns an error if the text is not valid YAML. The error contains the line and the column.
pub(crate) fn parse_objects(text: &str) -> Outcome<Vec<Value>> {
    let parsed: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, yaml_options()).map_err(|error| invalid(&error))?;
    let objects = parsed.into_iter().filter(|document| !document.is_null());
    let each = |mut object| documents::take_items(&mut object).unwrap_or_else(|| vec![object]);
    Ok(objects.flat_map(each).collect())
}

/// Parses the single YAML document in the doc string of `step`, after `expand` has changed the text within its lines.
///
/// # Errors
/// Returns an error if the text is not valid YAML. The error contains the line of the feature file.
pub(crate) fn parse_step<T: DeserializeOwned>(
    step: &Step,
    what: &str,
    expand: impl Fn(&str) -> String,
) -> Outcome<T> {
    let text = expand(&text(step)?);
    serde_saphyr::from_str_with_options(&text, yaml_options()).map_err(|error| invalid_in(step, what, &error))
}

/// Parses the YAML documents in the doc string of `step` as [`parse_step`] does, and skips empty documents.
///
/// # Errors
/// Returns an error if the text is not valid YAML. The error contains the line of the feature file.
pub(crate) fn parse_step_documents(step: &Step, expand: impl Fn(&str) -> String) -> Outcome<Vec<Value>> {
    let text = expand(&text(step)?);
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, yaml_options())
        .map_err(|error| invalid_in(step, YAML, &error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Returns the objects in the doc string of `step`, or an empty list if the text is not valid YAML.
pub(crate) fn yaml_of(step: &Step) -> Vec<Value> {
    parse_step_documents(step, str::to_owned).unwrap_or_default()
}

/// Returns the objects in a file, or an empty list if the file is not valid YAML.
pub(crate) fn objects_of(path: &Path) -> Vec<Value> {
    let text = output::read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| parse_objects(&text).ok()).unwrap_or_default()
}

/// Returns the reason why a file cannot be read or parsed, or `None` if it is valid YAML.
pub(crate) fn file_error(path: &Path) -> Option<String> {
    let text = match output::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => return Some("not UTF-8 text".to_owned()),
        },
        Err(error) => return Some(error.to_string()),
    };
    let error = serde_saphyr::from_multiple::<Value>(&text).err()?;
    let position = error.location().map(|at| format!("{}:{}: ", at.line(), at.column())).unwrap_or_default();
    Some(format!("{position}invalid YAML: {}", without_position(&yaml_message(&error))))
}

/// The beginning of the message for a doc string that is not valid YAML.
const YAML: &str = "invalid YAML";

/// Formats an error with the line of the feature file: the doc string begins two lines below its step.
fn invalid_in(step: &Step, what: &str, error: &serde_saphyr::Error) -> StepFailure {
    let message = yaml_message(error);
    let Some(at) = error.location() else { return StepFailure::new(format!("{what}: {message}")) };
    let line = u64::try_from(step.position.line).unwrap_or_default() + 1 + at.line();
    let message = without_position(&message);
    let doc_string = text(step).unwrap_or_default();
    let message = fake_webhooks::needed_parameters(message, &doc_string, at.line(), at.column())
        .unwrap_or_else(|| fake_webhooks::plain_yaml_message(message));
    StepFailure::new(format!("{what} on line {line} of the feature file: {message}"))
}

/// Returns the first line of a message without its position, because it is relative to the doc string or file.
fn without_position(message: &str) -> &str {
    let first = message.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let first = match first.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((_, rest)) => rest,
        None => first,
    };
    first.split(" at line ").next().unwrap_or_default()
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

/// The maximum number of lines in an excerpt.
const MAX_EXCERPT: usize = 12;

/// Formats a part of an object as YAML; if it is long, without the contents of its maps and lists.
pub(crate) fn excerpt(value: &Value) -> String {
    fn inner(value: &Value) -> String {
        match value {
            Value::Object(members) if members.is_empty() => "{}".to_owned(),
            Value::Array(items) if items.is_empty() => "[]".to_owned(),
            Value::Object(members) => match members.get("name") {
                Some(name) => format!("{{name: {name}, …}}"),
                None => "{…}".to_owned(),
            },
            Value::Array(_) => "[…]".to_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        }
    }
    let whole = show(value);
    if whole.trim_end().lines().count() <= MAX_EXCERPT {
        return whole.trim_end().to_owned();
    }
    let mut lines: Vec<String> = match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(key, _)| *key != "managedFields");
            members.map(|(key, value)| format!("{key}: {}", inner(value))).collect()
        }
        Value::Array(items) => items.iter().map(|item| format!("- {}", inner(item))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![value.to_string()],
    };
    if lines.len() > MAX_EXCERPT {
        lines.truncate(MAX_EXCERPT);
        lines.push("…".to_owned());
    }
    lines.join("\n")
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
    fn a_long_part_is_shown_without_the_contents_of_its_fields() {
        assert_eq!(excerpt(&serde_json::json!({"app": "web", "on": true})), "app: web\n\"on\": true");
        let long: Vec<Value> = (0..20).map(|number| serde_json::json!({"number": number})).collect();
        let part = serde_json::json!({"containers": long, "name": "a", "volumes": [], "web": {"name": "b"}});
        assert_eq!(excerpt(&part), "containers: […]\nname: \"a\"\nvolumes: []\nweb: {name: \"b\", …}");
        let list = Value::from(long);
        assert_eq!(excerpt(&list).lines().count(), MAX_EXCERPT + 1);
    }

    #[test]
    fn a_leading_zero_makes_an_octal_number() {
        assert_eq!(parse("defaultMode: 0644").unwrap(), serde_json::json!({"defaultMode": 420}));
        assert_eq!(parse_objects("defaultMode: 0644").unwrap(), [serde_json::json!({"defaultMode": 420})]);
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
