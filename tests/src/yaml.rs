//! Writes recordings as YAML. Every string is a JSON string, and short values are on one line.

use serde_json::Value;

const WIDTH: usize = 110;

/// Formats the document as YAML. Equal documents have equal text.
pub(crate) fn write(document: &Value) -> String {
    let mut text = String::new();
    block(document, 0, &mut text);
    text
}

fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str(&plain_key(key));
                text.push(':');
                nested(member, indent, indent + 2, key.len() + 2, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(&" ".repeat(indent));
                }
                text.push('-');
                if fits(item, indent + 2) {
                    text.push(' ');
                    text.push_str(&flow(item));
                    text.push('\n');
                } else {
                    text.push(' ');
                    block(item, indent + 2, text);
                }
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            text.push_str(&flow(value));
            text.push('\n');
        }
    }
}

fn nested(value: &Value, indent: usize, deeper: usize, used: usize, text: &mut String) {
    if fits(value, indent + used) {
        text.push(' ');
        text.push_str(&flow(value));
        text.push('\n');
        return;
    }
    // A list has the same indentation as its key.
    let depth = if value.is_array() { indent } else { deeper };
    text.push('\n');
    text.push_str(&" ".repeat(depth));
    block(value, depth, text);
}

fn fits(value: &Value, column: usize) -> bool {
    match value {
        Value::Object(members) if !members.is_empty() => column + flow(value).len() <= WIDTH,
        Value::Array(items) if !items.is_empty() => column + flow(value).len() <= WIDTH,
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => true,
    }
}

/// Formats JSON with a space after each colon and comma, as YAML requires after plain keys.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, member)| format!("{}: {}", plain_key(key), flow(member))).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn plain_key(key: &str) -> String {
    let is_plain = key.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "_./-".contains(letter))
        && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
            .contains(&key.to_lowercase().as_str());
    if is_plain { key.to_owned() } else { Value::from(key).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: &Value) {
        let text = write(value);
        let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(&read, value, "{text}");
    }

    #[test]
    fn written_yaml_is_read_again() {
        let long = "x: \"y\"\n# \u{7}é".repeat(20);
        check(
            &json!({"a": {"b": [1, {"c": null, "d": [], "e": {}}], "yes": "yes", "": "1"}, "z": [[long, [true]]]}),
        );
        check(&json!([[["a".repeat(120)], {"k": ["b".repeat(120), {"l": "c".repeat(120)}]}]]));
        check(&json!({"metrics": {"name{a=\"b\"}": 1, "long".repeat(30): {"x": long}}}));
    }
}
