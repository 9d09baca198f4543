//! Extracts parts of objects for steps with `contains:`.

use harness::verify::comparison::key;
use serde_json::{Map, Value, json};

use crate::steps::contains;

/// The fields that the server generates, with a new value for each object.
const GENERATED: [&str; 5] = ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"];

/// Returns the first part of `whole` that `other` does not contain, or `None` if `other` contains everything.
pub(super) fn missing(whole: &Value, other: &Value) -> Option<Value> {
    let part = part(whole, other)?;
    (contains(&part, whole) && !contains(&part, other)).then_some(part)
}

fn part(whole: &Value, other: &Value) -> Option<Value> {
    match (whole, other) {
        (Value::Object(members), Value::Object(others)) => {
            let named = members
                .iter()
                .filter(|(name, value)| !GENERATED.contains(&name.as_str()) && !value.is_null());
            named.into_iter().find_map(|(name, value)| {
                let part = match others.get(name) {
                    Some(other) => part(value, other)?,
                    None => value.clone(),
                };
                Some(json!({ name.as_str(): part }))
            })
        }
        (Value::Array(items), Value::Array(others)) if items.iter().all(|item| key(item).is_some()) => {
            items.iter().find_map(|item| {
                let same = others.iter().find(|other| key(other) == key(item));
                let Some(same) = same else { return Some(json!([item])) };
                let mut part = part(item, same)?;
                // Identifies the item.
                if let (Some(members), Some(name)) = (part.as_object_mut(), item.get("name")) {
                    members.entry("name").or_insert_with(|| name.clone());
                }
                Some(json!([part]))
            })
        }
        (whole, other) => (whole != other).then(|| whole.clone()),
    }
}

/// Returns an object that contains only `value`, at the JSON pointer of an `add` operation.
pub(super) fn at(pointer: &str, value: &Value) -> Value {
    let segments: Vec<String> =
        pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect();
    segments.iter().rev().fold(value.clone(), |value, segment| match segment.as_str() {
        "-" => json!([value]),
        name => Value::Object(Map::from_iter([(name.to_owned(), value)])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(whole: &Value, other: &Value, expected: Option<&Value>) {
        assert_eq!(missing(whole, other).as_ref(), expected);
    }

    #[test]
    fn the_first_part_that_is_missing_or_another_is_found() {
        let pod = json!({"metadata": {"uid": "a", "labels": {"a": "b"}}, "spec": {"containers": [
            {"name": "app", "env": [{"name": "A", "value": "1"}]}, {"name": "proxy"}], "args": ["x"]}});
        check(&pod, &pod, None);
        let mut other = pod.clone();
        other["metadata"]["uid"] = json!("b");
        check(&pod, &other, None);
        other["spec"]["containers"] = json!([{"name": "proxy"}, {"name": "app", "env": []}]);
        let part = json!({"spec": {"containers": [{"name": "app", "env": [{"name": "A", "value": "1"}]}]}});
        check(&pod, &other, Some(&part));
        other = pod.clone();
        other["spec"]["args"] = json!(["y"]);
        check(&pod, &other, Some(&json!({"spec": {"args": ["x"]}})));
        other["metadata"] = json!({});
        check(&pod, &other, Some(&json!({"metadata": {"labels": {"a": "b"}}})));
    }

    #[test]
    fn other_order_of_keyed_items_is_not_a_missing_part() {
        let (one, other) = (json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "b"}, {"name": "a"}]));
        check(&one, &other, None);
    }

    #[test]
    fn a_pointer_becomes_the_object_around_its_value() {
        assert_eq!(at("/metadata/labels/a~1b", &json!("x")), json!({"metadata": {"labels": {"a/b": "x"}}}));
        assert_eq!(
            at("/spec/volumes/-", &json!({"name": "v"})),
            json!({"spec": {"volumes": [{"name": "v"}]}})
        );
    }
}
