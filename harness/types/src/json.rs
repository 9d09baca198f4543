//! Reads and writes members of JSON documents. Does not use indexing, which panics for missing members.

use serde_json::{Map, Value};

/// Returns the value at `path`, a list of member names from the outermost to the innermost; null if it does not exist.
pub fn at<'a>(document: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().try_fold(document, |place, name| place.get(name)).unwrap_or(&Value::Null)
}

/// Returns the string at `path`; empty if the value does not exist or is not a string.
pub fn text<'a>(document: &'a Value, path: &[&str]) -> &'a str {
    at(document, path).as_str().unwrap_or_default()
}

/// Writes `value` at `path`, creating objects as needed, and returns whether it succeeded.
///
/// If a value on the path is not an object, `document` is unchanged: users and webhooks can send objects of any shape.
pub fn set(document: &mut Value, path: &[&str], value: impl Into<Value>) -> bool {
    let mut place = document;
    for name in path {
        if place.is_null() {
            *place = Map::new().into();
        }
        let Some(members) = place.as_object_mut() else { return false };
        place = members.entry(*name).or_insert(Value::Null);
    }
    *place = value.into();
    true
}

/// Restores a member of `object` from `old`, or removes it if `old` does not have it.
pub fn keep(object: &mut Value, old: &Value, name: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match old.get(name) {
        Some(value) => members.insert(name.to_owned(), value.clone()),
        None => members.remove(name),
    };
}

/// Returns the name of a value's type in Go's errors, such as `string` in `cannot unmarshal string into …`.
///
/// Source: Go encoding/json/decode.go, `UnmarshalTypeError`.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_members_are_null_or_empty() {
        let document = json!({"a": {"b": "text"}, "l": ["x"]});
        assert_eq!((at(&document, &["a"]), at(&document, &[])), (&document["a"], &document));
        assert_eq!((text(&document, &["a", "b"]), text(&document, &["a"])), ("text", ""));
        for path in [&["c", "d"][..], &["l", "0"], &["a", "b", "c"]] {
            assert_eq!(at(&document, path), &Value::Null, "{path:?}");
        }
    }

    #[test]
    fn a_member_is_written_unless_a_parent_is_not_an_object() {
        let mut object = json!({"a": {"b": 1}, "n": null, "l": [1], "t": "text"});
        assert!(set(&mut object, &["a", "b"], 2));
        assert!(set(&mut object, &["n", "new", "deep"], "x"));
        assert!(!set(&mut object, &["l", "0"], 2));
        assert!(!set(&mut object, &["t", "x", "y"], 2));
        assert_eq!(object, json!({"a": {"b": 2}, "n": {"new": {"deep": "x"}}, "l": [1], "t": "text"}));
    }
}
