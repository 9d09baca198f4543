//! Compares the crate's sets, values, and writes with the recorded results of Kubernetes' own packages.
//!
//! Only `regenerate.sh` writes the recorded answers.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::answers::{answer, comparable};
use crate::schemas::Schemas;

/// Compares the crate's answers with the recorded answers in `file`.
#[track_caller]
fn check(file: &str) {
    let schemas = Schemas::read(&fs::read_to_string("tests/schemas.json").unwrap());
    let text = fs::read_to_string(Path::new("tests/facts").join(file)).unwrap();
    let mut differences = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let expected = comparable(&line["answer"]);
        let found = comparable(&answer(&line["ask"], &schemas));
        if found != expected {
            differences.push(format!(
                "line {}: {}\n{}",
                index + 1,
                line["ask"],
                first_difference(&expected, &found, "")
            ));
        }
    }
    let total = text.lines().count();
    assert!(total > 0, "{file} has no questions");
    assert!(
        differences.is_empty(),
        "{} of {total} differ:\n{}",
        differences.len(),
        differences.iter().take(5).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// Returns the first difference between two answers.
fn first_difference(expected: &Value, found: &Value, path: &str) -> String {
    let step = |name: &str, expected: &Value, found: &Value| {
        first_difference(expected, found, &format!("{path}/{name}"))
    };
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) if left.keys().eq(right.keys()) => {
            let unequal = left.iter().find(|(name, value)| right[*name] != **value);
            unequal.map_or_else(String::new, |(name, value)| step(name, value, &right[name]))
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let index = left.iter().zip(right).position(|(left, right)| left != right).unwrap_or_default();
            step(&index.to_string(), &left[index], &right[index])
        }
        _ => format!("at {path}\nexpected {expected}\nfound    {found}"),
    }
}

#[test]
fn sets_are_decoded_encoded_and_combined_as_upstream() {
    check("sets.jsonl");
}

#[test]
fn values_are_validated_merged_and_compared_as_upstream() {
    check("values.jsonl");
}

#[test]
fn writes_change_managed_fields_as_upstream() {
    check("writes.jsonl");
}

#[test]
fn invalid_entries_are_rejected_with_upstreams_errors() {
    check("entries.jsonl");
}

#[test]
fn scales_have_the_same_entries_as_upstream() {
    check("scales.jsonl");
}
