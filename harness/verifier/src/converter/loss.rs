//! Finds the fields that a conversion to another version and back loses.

use std::str::FromStr as _;

use jiff::{SignedDuration, Timestamp};
use kubernetes_types::quantity;
use serde_json::Value;

/// Returns JSON pointers to the fields of `before` that are missing from `after` or have a different meaning there.
///
/// Correct converters do more than copy fields. They may add defaults and annotations, omit empty fields (null, false,
/// 0, empty), write quantities, times, and durations in a different form, and reorder lists.
pub(in super::super) fn lost(before: &Value, after: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    walk(before, Some(after), "", &mut lost);
    lost
}

fn walk(before: &Value, after: Option<&Value>, path: &str, lost: &mut Vec<String>) {
    match (before, after) {
        _ if says_nothing(before) => {}
        (Value::Object(members), Some(Value::Object(others))) => {
            for (name, member) in members {
                let name_in_path = name.replace('~', "~0").replace('/', "~1");
                walk(member, others.get(name), &format!("{path}/{name_in_path}"), lost);
            }
        }
        (Value::Array(items), Some(Value::Array(others))) => {
            for (index, item) in items.iter().enumerate() {
                let is_kept = |other: &Value| {
                    let mut lost = Vec::new();
                    walk(item, Some(other), "", &mut lost);
                    lost.is_empty()
                };
                let same_place = others.get(index);
                if !same_place.is_some_and(is_kept) && !others.iter().any(is_kept) {
                    walk(item, same_place, &format!("{path}/{index}"), lost);
                }
            }
        }
        (_, Some(after)) if means_the_same(before, after) => {}
        _ => lost.push(path.to_owned()),
    }
}

/// Returns whether a value is equivalent to a missing value.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(says_nothing),
    }
}

fn means_the_same(before: &Value, after: &Value) -> bool {
    if before == after {
        return true;
    }
    let is_scalar = |value: &Value| value.is_string() || value.is_number();
    if !is_scalar(before) || !is_scalar(after) {
        return false;
    }
    if let (Some(before), Some(after)) = (quantity::from_value(before), quantity::from_value(after)) {
        return before == after;
    }
    let (Some(before), Some(after)) = (before.as_str(), after.as_str()) else { return false };
    if let (Ok(before), Ok(after)) = (Timestamp::from_str(before), Timestamp::from_str(after)) {
        return before == after;
    }
    let durations = (SignedDuration::from_str(before), SignedDuration::from_str(after));
    matches!(durations, (Ok(before), Ok(after)) if before == after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: &Value, after: &Value, expected: &[&str]) {
        assert_eq!(lost(before, after), expected, "{before} {after}");
    }

    #[test]
    fn missing_or_changed_values_are_lost() {
        check(&json!({"a": 1, "b": {"c": "x"}}), &json!({"a": 2}), &["/a", "/b"]);
        check(&json!({"a": {"b/c": true}}), &json!({"a": {"b/c": false}}), &["/a/b~1c"]);
        check(&json!({"a": [{"n": 1}, {"n": 2}]}), &json!({"a": [{"n": 1}, {"n": 3}]}), &["/a/1/n"]);
        check(&json!({"a": ["x", "y"]}), &json!({"a": ["x"]}), &["/a/1"]);
        check(&json!({"a": "x"}), &json!({"a": {"b": "x"}}), &["/a"]);
    }

    #[test]
    fn equivalent_forms_are_not_lost() {
        for (before, after) in [
            (json!({"a": 1}), json!({"a": 1, "b": "default"})),
            (json!({"a": null, "b": false, "c": 0, "d": "", "e": [], "f": {"g": {}}}), json!({})),
            (json!({"cpu": "1000m", "size": 1}), json!({"cpu": "1", "size": "1"})),
            (json!({"n": 1}), json!({"n": 1.0})),
            (json!({"t": "2026-01-01T00:00:00Z"}), json!({"t": "2026-01-01T01:00:00+01:00"})),
            (json!({"d": "60s"}), json!({"d": "1m0s"})),
            (json!({"l": [1, 2]}), json!({"l": [2, 1]})),
        ] {
            check(&before, &after, &[]);
        }
    }
}
