//! Finds the fields in which the API server considers two objects different.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::equality::same;
use kubernetes_types::schema::Type;

/// A field in which two objects differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The path of the field, such as `spec.containers[app].env[TZ].value`. Keys identify list items where possible.
    pub path: String,
    /// The expected or former value; `None` if the field is expected to be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// The actual value; `None` if the field is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Value>,
}

/// Whether the order of list items is significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it counts or not")]
pub enum Order {
    /// The order of every list is significant.
    Counts,
    /// Lists of objects are compared as sets, because two webhooks may append in either order.
    Free,
}

/// Returns the fields in which `expected` and `found` differ, or an empty list if the API server considers them equal.
///
/// Custom resources are equal only if their JSON values are equal.
pub fn differences(
    expected: &Value,
    found: &Value,
    kind: &GroupVersionKind,
    order: Order,
) -> Vec<Difference> {
    let of = Type::for_kind(kind);
    let (expected, found) = match order {
        Order::Counts => (expected.clone(), found.clone()),
        Order::Free => (sorted(expected), sorted(found)),
    };
    if same(&expected, &found, of) {
        return Vec::new();
    }
    let mut walk = Walk { differences: Vec::new() };
    walk.values(&mut Vec::new(), Some(&expected), Some(&found), of);
    if walk.differences.is_empty() {
        // Equality compares whole objects; a single field may not show the difference.
        walk.differences.push(Difference {
            path: String::new(),
            expected: Some(expected),
            found: Some(found),
        });
    }
    walk.differences
}

/// Returns `value` with every list of objects sorted by the keys of its items.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            if items.iter().all(Value::is_object) {
                items.sort_by_cached_key(|item| (key(item), item.to_string()));
            }
            Value::Array(items)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The fields that can identify a list item, in order of preference.
pub(super) const KEYS: [&str; 9] =
    ["name", "mountPath", "devicePath", "containerPort", "port", "topologyKey", "uid", "ip", "key"];

/// Returns the value that identifies an item in its list, or `None` if the item has no known key.
pub fn key(item: &Value) -> Option<String> {
    let (name, value) = KEYS.iter().find_map(|name| Some((*name, item.get(*name)?)))?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // Ports are also identified by their protocol.
    match item.get("protocol").and_then(Value::as_str) {
        Some(protocol) if name.ends_with("ort") => Some(format!("{text}/{protocol}")),
        _ => Some(text),
    }
}

/// Returns the keys of a list's items, or `None` unless every item has a unique key.
pub(super) fn keys(items: &[Value]) -> Option<Vec<String>> {
    let keys: Vec<String> = items.iter().map(key).collect::<Option<_>>()?;
    let unique: std::collections::BTreeSet<&String> = keys.iter().collect();
    (unique.len() == keys.len()).then_some(keys)
}

struct Walk {
    differences: Vec<Difference>,
}

impl Walk {
    fn values(&mut self, path: &mut Vec<String>, expected: Option<&Value>, found: Option<&Value>, of: Type) {
        if expected == found {
            return;
        }
        match (expected, found) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => self.members(path, a, b, of),
            (Some(Value::Array(a)), Some(Value::Array(b))) => self.items(path, a, b, of.item()),
            _ => self.leaf(path, expected, found, of),
        }
    }

    fn members(
        &mut self,
        path: &mut Vec<String>,
        expected: &Map<String, Value>,
        found: &Map<String, Value>,
        of: Type,
    ) {
        let added = found.keys().filter(|name| !expected.contains_key(*name));
        for name in expected.keys().chain(added) {
            path.push(name.clone());
            self.values(path, expected.get(name), found.get(name), of.member(name));
            path.pop();
        }
    }

    fn items(&mut self, path: &mut Vec<String>, expected: &[Value], found: &[Value], of: Type) {
        let (Some(a), Some(b)) = (keys(expected), keys(found)) else {
            for index in 0..expected.len().max(found.len()) {
                path.push(format!("[{index}]"));
                self.values(path, expected.get(index), found.get(index), of);
                path.pop();
            }
            return;
        };
        let of_expected: HashMap<&String, &Value> = a.iter().zip(expected).collect();
        let of_found: HashMap<&String, &Value> = b.iter().zip(found).collect();
        let added = b.iter().filter(|key| !of_expected.contains_key(key));
        for key in a.iter().chain(added) {
            path.push(format!("[{key}]"));
            self.values(path, of_expected.get(key).copied(), of_found.get(key).copied(), of);
            path.pop();
        }
        let common = |keys: &[String], others: &HashMap<&String, &Value>| -> Vec<Value> {
            keys.iter().filter(|key| others.contains_key(key)).map(|key| key.clone().into()).collect()
        };
        let (a, b) = (common(&a, &of_found), common(&b, &of_expected));
        if a != b {
            path.push("[order]".to_owned());
            self.differences.push(Difference {
                path: written(path),
                expected: Some(a.into()),
                found: Some(b.into()),
            });
            path.pop();
        }
    }

    /// Records a difference unless the values are equal for the field's type, such as the quantities `500m` and `0.5`.
    fn leaf(&mut self, path: &[String], expected: Option<&Value>, found: Option<&Value>, of: Type) {
        // An absent value equals an empty one, except for a map entry and in custom resources.
        let is_there = expected.is_some() == found.is_some();
        let counts = !is_there && matches!(of, Type::Free | Type::Item(_));
        let value = |value: Option<&'_ Value>| value.cloned().unwrap_or_default();
        if counts || !same(&value(expected), &value(found), of) {
            self.differences.push(Difference {
                path: written(path),
                expected: expected.cloned(),
                found: found.cloned(),
            });
        }
    }
}

fn written(path: &[String]) -> String {
    let mut text = String::new();
    for name in path {
        if !text.is_empty() && !name.starts_with('[') {
            text.push('.');
        }
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers}})
    }

    #[track_caller]
    fn check(expected: &Value, found: &Value, order: Order, paths: &[&str]) {
        let differences = differences(expected, found, &GroupVersionKind::new("", "v1", "Pod"), order);
        let found: Vec<&str> = differences.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(found, paths, "{differences:?}");
    }

    #[test]
    fn items_are_named_by_their_key() {
        let expected = pod(&json!([{"name": "app", "env": [{"name": "A", "value": "1"}]}]));
        let found = pod(&json!([{"name": "app", "env": [{"name": "A", "value": "2"}]}, {"name": "proxy"}]));
        let paths = ["spec.containers[app].env[A].value", "spec.containers[proxy]"];
        check(&expected, &found, Order::Counts, &paths);
        check(&expected, &expected, Order::Counts, &[]);
    }

    #[test]
    fn list_order_is_significant_only_on_request() {
        let (one, other) = (json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "b"}, {"name": "a"}]));
        check(&pod(&one), &pod(&other), Order::Counts, &["spec.containers[order]"]);
        check(&pod(&one), &pod(&other), Order::Free, &[]);
    }

    #[test]
    fn values_equal_to_the_server_do_not_differ() {
        let cpu = |cpu: &str| pod(&json!([{"name": "a", "resources": {"limits": {"cpu": cpu}}}]));
        check(&cpu("500m"), &cpu("0.5"), Order::Counts, &[]);
        let mut changed = cpu("0.5");
        changed["metadata"] = json!({"labels": {"a": "b"}});
        let mut before = cpu("500m");
        before["metadata"] = json!({});
        check(&before, &changed, Order::Counts, &["metadata.labels"]);
    }

    #[test]
    fn items_with_the_same_key_are_identified_by_position() {
        let doubled = pod(&json!([{"name": "a"}, {"name": "a"}]));
        check(&pod(&json!([{"name": "a"}])), &doubled, Order::Counts, &["spec.containers[1]"]);
    }

    #[test]
    fn custom_resources_are_compared_exactly() {
        let custom = GroupVersionKind::new("example.com", "v1", "Pod");
        let of = |value: Value| json!({"spec": value});
        assert_eq!(differences(&of(json!({})), &of(Value::Null), &custom, Order::Counts).len(), 1);
    }
}
