//! Finds the differences between two documents, and shows them side by side.

use std::fmt::Write as _;

use serde_json::Value;

/// A path at which two documents differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The path, such as `requests[0].answer.status`.
    pub path: String,
    /// The value in the recording; `None` if it is missing.
    pub expected: Option<Value>,
    /// The actual value; `None` if it is missing.
    pub actual: Option<Value>,
}

/// Returns every path at which the documents differ.
pub fn differences(expected: &Value, actual: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(expected), Some(actual), &mut found);
    found
}

fn compare(path: String, expected: Option<&Value>, actual: Option<&Value>, found: &mut Vec<Difference>) {
    match (expected, actual) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let dot = if path.is_empty() { "" } else { "." };
                compare(format!("{path}{dot}{key}"), one.get(key), other.get(key), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                compare(format!("{path}[{index}]"), one.get(index), other.get(index), found);
            }
        }
        (expected, actual) if expected == actual => {}
        (expected, actual) => {
            found.push(Difference { path, expected: expected.cloned(), actual: actual.cloned() });
        }
    }
}

/// Formats the differences, with the expected and the actual value side by side under each path.
pub fn side_by_side(differences: &[Difference]) -> String {
    const COLUMN: usize = 56;
    let mut text = format!("    {:COLUMN$} | actual\n", "expected");
    for difference in differences.iter().take(MAX_DIFFERENCES) {
        let _ = writeln!(text, "  {}", difference.path);
        let (expected, actual) = (lines(difference.expected.as_ref()), lines(difference.actual.as_ref()));
        for index in 0..expected.len().max(actual.len()) {
            let side = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
            let _ = writeln!(text, "    {:COLUMN$} | {}", side(&expected), side(&actual));
        }
    }
    if differences.len() > MAX_DIFFERENCES {
        let _ = writeln!(text, "  … and {} more", differences.len() - MAX_DIFFERENCES);
    }
    text
}

const MAX_DIFFERENCES: usize = 12;

/// Formats a value as lines that are short enough for one of two columns.
fn lines(value: Option<&Value>) -> Vec<String> {
    let Some(value) = value else { return vec!["(nothing)".to_owned()] };
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut lines = Vec::new();
    for line in text.lines() {
        let letters: Vec<char> = line.chars().collect();
        lines.extend(letters.chunks(56).map(|part| part.iter().collect::<String>()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_is_named() {
        let found =
            differences(&json!({"a": [1, 2], "b": {"c": 1}}), &json!({"a": [1], "b": {"c": 2, "d": 3}}));
        let paths: Vec<&str> = found.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(paths, ["a[1]", "b.c", "b.d"]);
        let text = side_by_side(&found);
        assert!(text.contains("(nothing)"), "{text}");
    }
}
