//! Computes the differences between two objects, field by field.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

/// A field that changed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// The path of the field, such as `spec.containers[1].image` or `metadata.labels["a.b/c"]`.
    ///
    /// The index of a list item is its index in the new list or, for a removed item, in the old list.
    pub(crate) path: String,
    /// The old value; omitted if the field was added.
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Value>,
    /// The new value; omitted if the field was removed.
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Value>,
}

/// Deserializes a field that is present, even if its value is `null`.
fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Returns the changes from `old` to `new`, sorted by field.
pub(crate) fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", old, new, &mut changes);
    changes
}

fn compare(path: &str, old: &Value, new: &Value, changes: &mut Vec<Change>) {
    if old == new {
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => compare_members(path, old, new, changes),
        (Value::Array(old), Value::Array(new)) => compare_items(path, old, new, changes),
        _ => {
            let (from, to) = (Some(old.clone()), Some(new.clone()));
            changes.push(Change { path: path.to_owned(), from, to });
        }
    }
}

fn compare_members(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let mut keys: Vec<&String> = old.keys().chain(added).collect();
    keys.sort();
    for key in keys {
        let path = member(path, key);
        match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) => compare(&path, old, new, changes),
            (from, to) => changes.push(Change { path, from: from.cloned(), to: to.cloned() }),
        }
    }
}

/// Compares lists. Items match if they have the same name or, without names, if they are equal.
fn compare_items(path: &str, old: &[Value], new: &[Value], changes: &mut Vec<Change>) {
    let item = |index: usize| format!("{path}[{index}]");
    let identities = |items: &[Value]| items.iter().map(identity).collect::<Vec<_>>();
    for operation in alignment(&identities(old), &identities(new)) {
        let (tag, old_range, new_range) = operation.as_tag_tuple();
        if let (Some(from), Some(to)) = (old.get(old_range.clone()), new.get(new_range.clone()))
            && from.len() == to.len()
            && (tag == DiffTag::Equal || are_unnamed(from, to))
        {
            for ((from, to), index) in from.iter().zip(to).zip(new_range) {
                compare(&item(index), from, to, changes);
            }
            continue;
        }
        let gone =
            old_range.map(|index| Change { path: item(index), from: old.get(index).cloned(), to: None });
        let come =
            new_range.map(|index| Change { path: item(index), from: None, to: new.get(index).cloned() });
        changes.extend(gone.chain(come));
    }
}

/// The maximum total length of two lists for which the shortest difference is computed. This takes quadratic time.
const MAX_ALIGNED: usize = 5_000;

/// Matches the items of two lists. For long lists, only equal items at the beginning and at the end match.
fn alignment(old: &[String], new: &[String]) -> Vec<DiffOp> {
    if old.len() + new.len() <= MAX_ALIGNED {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let front = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let rest = old.iter().skip(front).rev().zip(new.iter().skip(front).rev());
    let back = rest.take_while(|(old, new)| old == new).count();
    let equal = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
    let between = DiffOp::Replace {
        old_index: front,
        old_len: old.len() - front - back,
        new_index: front,
        new_len: new.len() - front - back,
    };
    vec![equal(0, 0, front), between, equal(old.len() - back, new.len() - back, back)]
}

fn identity(item: &Value) -> String {
    match item.get("name").and_then(Value::as_str) {
        Some(name) => format!("name {name}"),
        None => item.to_string(),
    }
}

/// Returns whether no item has a name. In this case, items at the same index are compared with each other.
fn are_unnamed(old: &[Value], new: &[Value]) -> bool {
    old.iter().chain(new).all(|item| item.get("name").is_none())
}

/// Returns `path.key`, or `path["key"]` if the key is not a plain word.
fn member(path: &str, key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if key.is_empty() || !key.bytes().all(plain) {
        format!("{path}[{}]", Value::from(key))
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(old: &Value, new: &Value, expected: &[&str]) {
        let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
        let found: Vec<String> = changes(old, new)
            .iter()
            .map(|change| format!("{} {} {}", change.path, text(&change.from), text(&change.to)))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn members_come_go_and_change() {
        check(
            &json!({"a": 1, "b": {"c": 1, "d": 2}}),
            &json!({"b": {"c": 2, "d": 2}, "e": null}),
            &["a 1 -", "b.c 1 2", "e - null"],
        );
        check(&json!({"a": 1}), &json!({"a": 1}), &[]);
        check(&json!({"a": 1}), &json!([1]), &[" {\"a\":1} [1]"]);
    }

    #[test]
    fn long_lists_are_compared_in_one_go() {
        let list = |from: usize| (from..from + 100_000).map(|number| number.to_string()).collect::<Vec<_>>();
        let found = changes(&json!(list(0)), &json!(list(1_000_000)));
        assert_eq!((found.len(), found[7].path.as_str()), (100_000, "[7]"));
        let mut longer = list(0);
        longer.insert(50_000, "new".to_owned());
        check(&json!(list(0)), &json!(longer), &[r#"[50000] - "new""#]);
    }

    #[test]
    fn key_with_special_characters_is_quoted() {
        let labels = |value: &str| json!({"metadata": {"labels": {"a.b/c": value}}});
        check(&labels("x"), &labels("y"), &[r#"metadata.labels["a.b/c"] "x" "y""#]);
    }

    #[test]
    fn items_with_names_are_found_wherever_they_stand() {
        let item = |name: &str, image: &str| json!({"name": name, "image": image});
        check(
            &json!([item("a", "1"), item("b", "1")]),
            &json!([item("x", "1"), item("a", "2")]),
            &[
                r#"[0] - {"image":"1","name":"x"}"#,
                r#"[1].image "1" "2""#,
                r#"[1] {"image":"1","name":"b"} -"#,
            ],
        );
    }

    #[test]
    fn items_without_names_are_compared_in_place() {
        check(&json!([1, 2, 3]), &json!([1, 5, 3]), &["[1] 2 5"]);
        check(&json!([1, 2]), &json!([1, 2, 3]), &["[2] - 3"]);
        check(&json!([{"port": 1}, {"port": 2}]), &json!([{"port": 2}]), &[r#"[0] {"port":1} -"#]);
        check(&json!([{"port": 1}]), &json!([{"port": 2}]), &["[0].port 1 2"]);
    }
}
