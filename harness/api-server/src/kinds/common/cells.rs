//! Computes the cells of a table row.

use jiff::Timestamp;
use kubernetes_types::json::{at, text};
use kubernetes_types::quantity;
use kubernetes_types::selector::Selector;
use serde_json::Value;

use crate::kinds::common::age;

/// The data, in addition to the object, from which cells are computed.
pub(crate) struct Context<'a> {
    pub(crate) now: Timestamp,
    /// The name of the default `StorageClass` in the list; empty if there is none.
    pub(crate) default_class: &'a str,
}

/// A function that returns the cells of an object, one for each column.
pub(crate) type Cells = fn(&Value, &Context<'_>) -> Vec<Value>;

/// Builds the cells of a row from values of several types.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}
pub(crate) use row;

/// Returns the cells of the default columns: the name and the creation time.
///
/// Source: apiserver pkg/registry/rest/table.go, `ConvertToTable`.
pub(crate) fn name_and_creation(object: &Value, _: &Context<'_>) -> Vec<Value> {
    row![name(object), created(object)]
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

/// Returns the creation time of an object in RFC 3339 format; the first instant of year 1 if absent.
pub(crate) fn created(object: &Value) -> &str {
    match text(object, &["metadata", "creationTimestamp"]) {
        "" => "0001-01-01T00:00:00Z",
        time => time,
    }
}

pub(crate) fn age_of(object: &Value, context: &Context<'_>) -> String {
    age::since(context.now, at(object, &["metadata", "creationTimestamp"]))
}

/// Returns the number at a path; zero if absent.
pub(crate) fn number(object: &Value, path: &[&str]) -> i64 {
    at(object, path).as_i64().unwrap_or_default()
}

pub(crate) fn is_true(object: &Value, path: &[&str]) -> bool {
    at(object, path).as_bool().unwrap_or_default()
}

/// Returns the items at a path; empty if the value is not a list.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).as_array().map_or(&[], Vec::as_slice)
}

/// Returns the string at a path; `other` if absent or empty.
pub(crate) fn text_or<'a>(object: &'a Value, path: &[&str], other: &'a str) -> &'a str {
    match text(object, path) {
        "" => other,
        text => text,
    }
}

/// Returns the string at a path, even if it is empty; `other` if absent.
pub(crate) fn present_or<'a>(object: &'a Value, path: &[&str], other: &'a str) -> &'a str {
    at(object, path).as_str().unwrap_or(other)
}

/// Joins the strings at `path` in each item with commas.
pub(crate) fn joined(items: &[Value], path: &[&str]) -> String {
    items.iter().map(|item| text(item, path)).collect::<Vec<_>>().join(",")
}

/// Returns the number of members of an object or items of a list.
pub(crate) fn count(value: &Value) -> usize {
    value.as_object().map_or_else(|| value.as_array().map_or(0, Vec::len), serde_json::Map::len)
}

/// Formats a quantity as Go does; `0` if absent.
pub(crate) fn amount(value: &Value) -> String {
    quantity::from_value(value).map_or_else(|| "0".to_owned(), |amount| amount.to_string())
}

/// Formats labels as `a=b,c=d`; `<none>` if there are no labels.
///
/// Source: apimachinery pkg/labels/labels.go, `FormatLabels`.
pub(crate) fn labels(value: &Value) -> String {
    let pairs: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// Formats a `LabelSelector`; `<none>` if it does not have requirements, `<error>` if it is invalid.
///
/// Source: apimachinery pkg/apis/meta/v1/helpers.go, `FormatLabelSelector`.
pub(crate) fn label_selector(value: &Value) -> String {
    match selector(value) {
        None => "<error>".to_owned(),
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
    }
}

/// Formats a `LabelSelector`; `None` if it is invalid.
///
/// Source: apimachinery pkg/labels/selector.go, `String`.
pub(crate) fn selector(value: &Value) -> Option<String> {
    if value.is_null() {
        return Some(String::new());
    }
    Selector::parse(value).ok()?;
    let mut requirements = Vec::new();
    for (key, value) in at(value, &["matchLabels"]).as_object().into_iter().flatten() {
        requirements.push((key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in items(value, &["matchExpressions"]) {
        let key = text(expression, &["key"]);
        let mut values: Vec<&str> = items(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        requirements.push((
            key,
            match text(expression, &["operator"]) {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => return None,
            },
        ));
    }
    requirements.sort_by_key(|(key, _)| *key);
    Some(requirements.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","))
}

/// Returns the names and the images of containers.
pub(crate) fn containers(containers: &[Value]) -> (String, String) {
    (joined(containers, &["name"]), joined(containers, &["image"]))
}

/// Joins at most `most` items and appends the number of omitted items; `<unset>` for an empty list.
///
/// Source: kubernetes pkg/printers/internalversion/printers.go, `listWithMoreString`.
pub(crate) fn at_most(list: &[String], most: usize) -> String {
    let shown = list.get(..most).unwrap_or(list).join(",");
    match list.len().checked_sub(most) {
        Some(more) if more > 0 => format!("{shown} + {more} more..."),
        _ if shown.is_empty() => "<unset>".to_owned(),
        _ => shown,
    }
}

/// Returns the first condition of the type `kind`.
pub(crate) fn condition<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| text(condition, &["type"]) == kind)
}

/// Returns the status of a condition; `None` if the condition does not exist.
pub(crate) fn status_of<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    condition(items(object, &["status", "conditions"]), kind).map(|condition| text(condition, &["status"]))
}

pub(crate) fn name_and_age(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), age_of(object, context)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_sorted_by_key() {
        let expressions = json!([
            {"key": "b", "operator": "NotIn", "values": ["y", "x"]},
            {"key": "a", "operator": "Exists"},
            {"key": "d", "operator": "DoesNotExist"},
        ]);
        let value = json!({"matchLabels": {"c": "1"}, "matchExpressions": expressions});
        assert_eq!(label_selector(&value), "a,b notin (x,y),c=1,!d");
        assert_eq!(label_selector(&json!({})), "<none>");
        assert_eq!(label_selector(&json!({"matchExpressions": [{"key": "a", "operator": "No"}]})), "<error>");
    }

    #[test]
    fn truncated_list_says_how_many_more_there_are() {
        let list = |count: usize| (1..=count).map(|number| number.to_string()).collect::<Vec<_>>();
        for (count, expected) in [(0, "<unset>"), (3, "1,2,3"), (4, "1,2,3 + 1 more...")] {
            assert_eq!(at_most(&list(count), 3), expected);
        }
    }
}
