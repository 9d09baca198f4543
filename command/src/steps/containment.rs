//! Compares an object with the expected fields of a step.

use serde_json::Value;

/// Returns every difference as `path: expected …, found …`, or an empty list if `actual` contains `expected`.
///
/// A map contains a map if it has each key with a value that contains the expected value. A list contains a list if it
/// has the items in order, possibly with others in between. All other values must be equal. `null` matches an absent field.
pub(crate) fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", expected, Some(actual), &mut found);
    found
}

fn compare(path: &str, expected: &Value, actual: Option<&Value>, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Null, None | Some(Value::Null)) => {}
        (Value::Object(members), Some(Value::Object(actual))) => {
            for (key, value) in members {
                compare(&below(path, key), value, actual.get(key), found);
            }
        }
        (Value::Array(items), Some(Value::Array(actual))) => compare_lists(path, items, actual, found),
        (expected, Some(actual)) if expected == actual => {}
        (expected, actual) => {
            let actual = actual.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let place = if path.is_empty() { "the value" } else { path };
            found.push(format!("{place}: expected {expected}, found {actual}"));
        }
    }
}

/// Matches each expected item with the first unmatched item that contains it.
///
/// A missing item is compared with the item at its position, which is most likely the item that the author meant.
fn compare_lists(path: &str, expected: &[Value], actual: &[Value], found: &mut Vec<String>) {
    let mut next = 0;
    for (place, item) in expected.iter().enumerate() {
        let position = (next..actual.len())
            .find(|&candidate| actual.get(candidate).is_some_and(|it| differences(item, it).is_empty()));
        match position {
            Some(position) => next = position + 1,
            None => compare(&format!("{path}[{place}]"), item, actual.get(place), found),
        }
    }
    if expected.is_empty() && !actual.is_empty() {
        found.push(format!("{path}: expected an empty list, found {} items", actual.len()));
    }
}

fn below(path: &str, key: &str) -> String {
    match (path.is_empty(), key.contains(['.', '/'])) {
        (true, _) => key.to_owned(),
        (false, false) => format!("{path}.{key}"),
        (false, true) => format!("{path}['{key}']"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(expected: Value, actual: Value, difference: &[&str]) {
        assert_eq!(differences(&expected, &actual), difference);
    }

    #[test]
    fn additional_keys_are_ignored() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), &[]);
    }

    #[test]
    fn missing_keys_and_different_values_are_reported() {
        check(
            json!({"a": {"x": 1}, "b": 2}),
            json!({"a": {}, "b": 3}),
            &["a.x: expected 1, found nothing", "b: expected 2, found 3"],
        );
    }

    #[test]
    fn null_matches_an_absent_field() {
        check(json!({"a": null}), json!({}), &[]);
        check(json!({"a": null}), json!({"a": 1}), &["a: expected null, found 1"]);
    }

    #[test]
    fn list_items_are_matched_in_order() {
        check(json!([{"n": "b"}]), json!([{"n": "a"}, {"n": "b"}]), &[]);
        check(json!(["b", "a"]), json!(["a", "b"]), &["[1]: expected \"a\", found \"b\""]);
    }

    #[test]
    fn missing_item_is_compared_with_the_item_at_its_position() {
        check(
            json!({"c": [{"n": "a", "v": 1}]}),
            json!({"c": [{"n": "a", "v": 2}]}),
            &["c[0].v: expected 1, found 2"],
        );
    }

    #[test]
    fn empty_list_matches_only_an_empty_list() {
        check(json!({"c": []}), json!({"c": [1]}), &["c: expected an empty list, found 1 items"]);
    }
}
