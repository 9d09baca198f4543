//! Whether an object contains what a feature says it contains.

use serde_json::Value;

/// Every difference, as `path: expected …, found …`; none if `actual` contains `expected`.
///
/// A map contains a map if each of its keys is there and contains the value. A list contains a list if its items are
/// found in order, others between them. Anything else must be equal; `null` is expected of what must not be there.
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
            let place = if path.is_empty() { "the whole" } else { path };
            found.push(format!("{place}: expected {expected}, found {actual}"));
        }
    }
}

/// Takes each expected item to be the first not yet taken item that contains it. Of an item that is nowhere, the
/// differences to the item at its own place are told, because that is the one that its author had in mind.
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
    fn what_is_not_expected_may_be_there() {
        check(json!({"a": 1}), json!({"a": 1, "b": 2}), &[]);
    }

    #[test]
    fn a_missing_key_and_another_value_are_both_told() {
        check(
            json!({"a": {"x": 1}, "b": 2}),
            json!({"a": {}, "b": 3}),
            &["a.x: expected 1, found nothing", "b: expected 2, found 3"],
        );
    }

    #[test]
    fn null_is_expected_of_what_is_absent() {
        check(json!({"a": null}), json!({}), &[]);
        check(json!({"a": null}), json!({"a": 1}), &["a: expected null, found 1"]);
    }

    #[test]
    fn items_of_a_list_are_found_in_order() {
        check(json!([{"n": "b"}]), json!([{"n": "a"}, {"n": "b"}]), &[]);
        check(json!(["b", "a"]), json!(["a", "b"]), &["[1]: expected \"a\", found \"b\""]);
    }

    #[test]
    fn an_item_that_is_nowhere_is_compared_with_the_one_at_its_place() {
        check(
            json!({"c": [{"n": "a", "v": 1}]}),
            json!({"c": [{"n": "a", "v": 2}]}),
            &["c[0].v: expected 1, found 2"],
        );
    }

    #[test]
    fn an_empty_list_contains_nothing() {
        check(json!({"c": []}), json!({"c": [1]}), &["c: expected an empty list, found 1 items"]);
    }
}
