//! Finds values of an object that a webhook overwrites.

use std::collections::HashMap;

use serde_json::Value;

use crate::comparison;
use crate::shape::escaped;

/// The fields that this module skips: V18 checks the identity, and the server sets the status.
const ELSEWHERE: [&str; 3] = ["apiVersion", "kind", "status"];
/// The metadata fields that users write.
const METADATA: [&str; 2] = ["labels", "annotations"];

/// A value that a webhook overwrote.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Overwritten {
    /// The JSON pointer of the value before the change.
    pub(super) before: String,
    /// The JSON pointer of the value after the change.
    pub(super) after: String,
    /// Whether the value is a member of an object, so that a client may omit it to get the default.
    pub(super) is_member: bool,
}

/// Returns the scalar, non-null values of `before` that differ in `after`.
///
/// List items are matched by their keys. A list without keys is compared by position if its length is unchanged.
pub(super) fn overwritten(before: &Value, after: &Value) -> Vec<Overwritten> {
    let mut found = Vec::new();
    walk(
        before,
        after,
        &Overwritten { before: String::new(), after: String::new(), is_member: true },
        &mut found,
    );
    found
}

fn walk(before: &Value, after: &Value, place: &Overwritten, found: &mut Vec<Overwritten>) {
    if before == after || before.is_null() {
        return;
    }
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, before) in a {
                let is_elsewhere = match place.before.as_str() {
                    "" => ELSEWHERE.contains(&name.as_str()),
                    "/metadata" => !METADATA.contains(&name.as_str()),
                    _ => false,
                };
                if let Some(after) = b.get(name).filter(|_| !is_elsewhere) {
                    let name = escaped(name);
                    walk(before, after, &place.below(&name, &name, true), found);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            let numbered = b.iter().enumerate();
            let others: Vec<Option<(usize, &Value)>> = match (comparison::keys(a), comparison::keys(b)) {
                (Some(keys), Some(others)) => {
                    let others: HashMap<String, (usize, &Value)> = others.into_iter().zip(numbered).collect();
                    keys.iter().map(|key| others.get(key).copied()).collect()
                }
                _ if a.len() == b.len() => numbered.map(Some).collect(),
                _ => Vec::new(),
            };
            for (index, (before, other)) in a.iter().zip(others).enumerate() {
                if let Some((other, after)) = other {
                    let place = place.below(&index.to_string(), &other.to_string(), false);
                    walk(before, after, &place, found);
                }
            }
        }
        (Value::Object(_) | Value::Array(_), _) => {}
        _ => found.push(place.clone()),
    }
}

impl Overwritten {
    fn below(&self, before: &str, after: &str, is_member: bool) -> Self {
        Self {
            before: format!("{}/{before}", self.before),
            after: format!("{}/{after}", self.after),
            is_member,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: &Value, after: &Value, expected: &[&str]) {
        let found = overwritten(before, after);
        let found: Vec<String> = found.iter().map(|it| format!("{} {}", it.before, it.after)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_existing_values_are_overwritten() {
        let before = json!({"metadata": {"name": "a", "labels": {"a/b": "c"}}, "spec": {"x": 1, "y": null}});
        let after =
            json!({"metadata": {"name": "b", "labels": {"a/b": "d", "e": "f"}}, "spec": {"y": 2, "z": 3}});
        check(&before, &after, &["/metadata/labels/a~1b /metadata/labels/a~1b"]);
        check(&before, &before, &[]);
    }

    #[test]
    fn reordered_items_are_matched_by_key() {
        let before = json!({"containers": [{"name": "app", "image": "a"}], "args": ["x", "y"]});
        let after = json!({"containers": [{"name": "proxy"}, {"name": "app", "image": "b"}], "args": ["z", "x", "y"]});
        check(&before, &after, &["/containers/0/image /containers/1/image"]);
        check(&before, &json!({"args": ["x", "z"]}), &["/args/1 /args/1"]);
    }
}
