//! Sets values in JSON documents.

use serde_json::{Map, Value};

/// Sets the member of `document` at `path`; the first name in `path` is the outermost.
///
/// Values on the path that are not objects are replaced with objects.
pub(crate) fn set(document: &mut Value, path: &[&str], value: impl Into<Value>) {
    set_value(document, path, value.into());
}

fn set_value(document: &mut Value, path: &[&str], value: Value) {
    let Some((name, rest)) = path.split_first() else {
        *document = value;
        return;
    };
    if let Value::Object(members) = document {
        set_value(members.entry(*name).or_insert(Value::Null), rest, value);
    } else {
        let mut member = Value::Null;
        set_value(&mut member, rest, value);
        *document = Value::Object(Map::from_iter([((*name).to_owned(), member)]));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(mut document: Value, path: &[&str], expected: &Value) {
        set(&mut document, path, 1);
        assert_eq!(document, *expected);
    }

    #[test]
    fn member_is_set_whatever_the_document_contains() {
        check(json!({"a": 2, "b": 3}), &["a"], &json!({"a": 1, "b": 3}));
        check(json!({"a": {"b": 2, "c": 3}}), &["a", "b"], &json!({"a": {"b": 1, "c": 3}}));
        check(json!({"a": {}}), &["a", "b", "c"], &json!({"a": {"b": {"c": 1}}}));
        check(Value::Null, &["a", "b"], &json!({"a": {"b": 1}}));
        check(json!({"a": [2], "b": 3}), &["a", "0"], &json!({"a": {"0": 1}, "b": 3}));
        check(json!("a"), &[], &json!(1));
    }
}
