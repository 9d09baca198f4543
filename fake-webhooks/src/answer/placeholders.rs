//! Replaces placeholders in strings.

use serde_json::Value;

use super::circumstances::Circumstances;
use crate::{Write, random};

/// Returns a string with its placeholders replaced.
///
/// The placeholders are `{uid}` (the UID of the review), `{call}` (the number of the call, from 1), `{timestamp}`,
/// `{random}` or `{random:SEED}` (five letters or digits), `{operation}`, `{namespace}`, `{name}`, `{user}`, and
/// `{/a/pointer}` (a value of the object). Other text in braces is kept.
fn filled(text: &str, at: &Circumstances, review: &Value) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let found =
            after.split_once('}').and_then(|(name, after)| Some((value_of(name, at, review)?, after)));
        if let Some((value, after)) = found {
            filled.push_str(&value);
            rest = after;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

/// Returns a value with the placeholders in all its strings replaced.
pub(super) fn filled_value(value: &Value, at: &Circumstances, review: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(filled(text, at, review)),
        Value::Array(entries) => entries.iter().map(|entry| filled_value(entry, at, review)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled_value(value, at, review))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Returns a side effect's request with the placeholders in its URL and body replaced.
pub(super) fn filled_write(write: &Write, at: &Circumstances, review: &Value) -> Write {
    Write {
        url: write.url.map(|url| filled(url, at, review)),
        body: filled_value(&write.body, at, review),
        ..write.clone()
    }
}

fn value_of(name: &str, at: &Circumstances, review: &Value) -> Option<String> {
    let request = &review["request"];
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    };
    Some(match name {
        "uid" | "operation" | "namespace" | "name" => text(&request[name]),
        "user" => text(request.pointer("/userInfo/username").unwrap_or(&Value::Null)),
        "call" => (at.nth + 1).to_string(),
        "timestamp" => at.time.to_string(),
        "random" => random::letters(0, at.nth),
        _ if name.starts_with('/') => text(request["object"].pointer(name).unwrap_or(&Value::Null)),
        _ => random::letters(name.strip_prefix("random:")?.parse().ok()?, at.nth),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_replaced_and_other_braces_are_kept() {
        let review = json!({"request": {
            "uid": "u", "operation": "CREATE", "namespace": "n", "name": "",
            "userInfo": {"username": "jo"}, "object": {"metadata": {"generateName": "web-"}, "replicas": 2},
        }});
        let at = Circumstances::for_call(4);
        for (text, expected) in [
            ("{uid} {operation} {namespace}{name} {user}", "u CREATE n jo"),
            ("{call} {timestamp}", "5 1970-01-01T00:00:00Z"),
            ("{/metadata/generateName}{/replicas}{/missing}!", "web-2!"),
            ("{\"a\": {x} {", "{\"a\": {x} {"),
            ("{random:x} {{uid}}", "{random:x} {u}"),
        ] {
            assert_eq!(filled(text, &at, &review), expected);
        }
        assert_ne!(filled("{random}", &at, &review), filled("{random:1}", &at, &review));
        assert_eq!(filled_value(&json!([{"a": "{uid}"}, 1]), &at, &review), json!([{"a": "u"}, 1]));
    }
}
