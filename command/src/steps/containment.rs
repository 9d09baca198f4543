//! Compares an object with the expected fields of a step.

use serde_json::Value;

/// Returns every difference as `path: expected …, found …`, or an empty list if `actual` contains `expected`.
///
/// A map contains a map if it has each key with a value that contains the expected value. A list contains a list if it
/// has the items in order, possibly with others in between. All other values must be equal. `null` matches an absent field.
pub(crate) fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let found = compared(expected, actual);
    found.into_iter().map(|difference| difference.text).collect()
}

/// Returns the maps and lists of `actual` that lack an expected value, each once with its path.
pub(super) fn incomplete<'a>(expected: &Value, actual: &'a Value) -> Vec<(String, &'a Value)> {
    let mut found: Vec<(String, &Value)> = Vec::new();
    for parent in compared(expected, actual).into_iter().filter_map(|difference| difference.lacking) {
        if !found.iter().any(|(path, _)| *path == parent.0) {
            found.push(parent);
        }
    }
    found
}

/// Returns the names of expected list items that are compared with an item of another name, each with its list's path.
pub(super) fn misplaced<'a>(expected: &'a Value, actual: &Value) -> Vec<(String, &'a str)> {
    fn collect<'a>(path: &str, expected: &'a Value, actual: &Value, found: &mut Vec<(String, &'a str)>) {
        match (expected, actual) {
            (Value::Object(members), Value::Object(actual)) => {
                for (key, value) in members {
                    if let Some(actual) = actual.get(key) {
                        collect(&below(path, key), value, actual, found);
                    }
                }
            }
            (Value::Array(items), Value::Array(actual)) => {
                let mut next = 0;
                for (place, item) in items.iter().enumerate() {
                    if let Some(position) = position_from(next, item, actual) {
                        next = position + 1;
                        continue;
                    }
                    let Some(compared) = actual.get(place) else { continue };
                    match item.get("name").and_then(Value::as_str) {
                        Some(name) if compared.get("name").and_then(Value::as_str) != Some(name) => {
                            found.push((path.to_owned(), name));
                        }
                        _ => collect(&format!("{path}[{place}]"), item, compared, found),
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect("", expected, actual, &mut found);
    found
}

/// Returns every scalar and empty value in a document as `path: value`.
pub(super) fn fields(document: &Value) -> Vec<String> {
    fn collect(path: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                members.iter().for_each(|(key, value)| collect(&below(path, key), value, found));
            }
            Value::Array(items) if !items.is_empty() => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(at, item)| collect(&format!("{path}[{at}]"), item, found));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {
                let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
                found.push(format!("{place}{value}"));
            }
        }
    }
    let mut found = Vec::new();
    collect("", document, &mut found);
    found
}

/// A difference between the expected and the actual document.
struct Difference<'a> {
    /// The path, the expected value, and the actual value, as an error message.
    text: String,
    /// The map or list that lacks the value, with its path; `None` if the value exists and differs.
    lacking: Option<(String, &'a Value)>,
}

/// A value and the map or list that contains it, or that lacks it.
struct Actual<'p, 'a> {
    value: Option<&'a Value>,
    parent: (&'p str, &'a Value),
}

fn compared<'a>(expected: &Value, actual: &'a Value) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    compare("", expected, &Actual { value: Some(actual), parent: ("", actual) }, &mut found);
    found
}

fn compare<'a>(path: &str, expected: &Value, actual: &Actual<'_, 'a>, found: &mut Vec<Difference<'a>>) {
    match (expected, actual.value) {
        (Value::Null, None | Some(Value::Null)) => {}
        (Value::Object(members), Some(whole @ Value::Object(actual))) => {
            for (key, value) in members {
                let actual = Actual { value: actual.get(key), parent: (path, whole) };
                compare(&below(path, key), value, &actual, found);
            }
        }
        (Value::Array(items), Some(whole @ Value::Array(actual))) => {
            compare_lists(path, items, (actual, whole), found);
        }
        (expected, Some(actual)) if expected == actual => {}
        (expected, value) => {
            let found_value = value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            let place = if path.is_empty() { "the value" } else { path };
            let (parent, lacking) = actual.parent;
            // If a whole map is missing, the fields next to it do not explain more.
            let is_small = !expected.is_object() || lacking.is_array();
            found.push(Difference {
                text: format!("{place}: expected {expected}, found {found_value}"),
                lacking: value.is_none().then(|| (parent.to_owned(), lacking)).filter(|_| is_small),
            });
        }
    }
}

/// Matches each expected item with the first unmatched item that contains it.
///
/// A missing item is compared with the item at its position, because this is most likely the item that the author
/// meant.
fn compare_lists<'a>(
    path: &str,
    expected: &[Value],
    (actual, whole): (&'a [Value], &'a Value),
    found: &mut Vec<Difference<'a>>,
) {
    let mut next = 0;
    for (place, item) in expected.iter().enumerate() {
        if let Some(position) = position_from(next, item, actual) {
            next = position + 1;
        } else {
            let actual = Actual { value: actual.get(place), parent: (path, whole) };
            compare(&format!("{path}[{place}]"), item, &actual, found);
        }
    }
    if expected.is_empty() && !actual.is_empty() {
        let text = format!("{path}: expected an empty list, found {} items", actual.len());
        found.push(Difference { text, lacking: None });
    }
}

/// Returns the first position from `next` whose item contains `expected`.
fn position_from(next: usize, expected: &Value, actual: &[Value]) -> Option<usize> {
    (next..actual.len())
        .find(|&candidate| actual.get(candidate).is_some_and(|it| differences(expected, it).is_empty()))
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
    fn item_that_is_compared_with_an_item_of_another_name_is_misplaced() {
        let actual = json!({"c": [{"name": "web", "v": 1}, {"name": "proxy", "v": 1}]});
        let expected = json!({"c": [{"name": "proxy", "v": 2}]});
        assert_eq!(misplaced(&expected, &actual), [("c".to_owned(), "proxy")]);
        assert_eq!(misplaced(&json!({"c": [{"name": "proxy", "v": 1}]}), &actual), []);
        assert_eq!(misplaced(&json!({"c": [{"name": "web", "v": 2}]}), &actual), []);
    }

    #[test]
    fn empty_list_matches_only_an_empty_list() {
        check(json!({"c": []}), json!({"c": [1]}), &["c: expected an empty list, found 1 items"]);
    }
}
