//! Builds objects from text that usually stays valid if a fuzzer changes a byte.
//!
//! The first line is the kind of an object in `documents.yaml`, or JSON. Each following line is an edit: a JSON
//! pointer, a space, and the new value, or only a pointer to remove a value. A value that is not JSON is a string, and
//! `@1000 VALUE` is a list of a thousand values in which `%` is replaced by the index.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The separator of the parts of an input, on its own line.
const SEPARATOR: &str = "---";

/// The maximum number of items that one edit creates.
const MAX_ITEMS: usize = 2_000;

/// The example objects of many kinds, with most of their fields.
static EXAMPLES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_saphyr::from_multiple(include_str!("documents.yaml"))
        .unwrap_or_else(|error| panic!("documents.yaml: {error}"))
});

/// Splits an input into its parts. Missing parts are empty.
pub(super) fn parts<const COUNT: usize>(text: &str) -> [String; COUNT] {
    let mut parts = [const { String::new() }; COUNT];
    let mut current = 0;
    for line in text.split('\n') {
        if line == SEPARATOR && current + 1 < COUNT {
            current += 1;
        } else if let Some(part) = parts.get_mut(current) {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts
}

/// Parses an object; returns `None` if the first line is neither JSON nor a known kind.
pub(super) fn object(text: &str) -> Option<Value> {
    let (first, edits) = text.split_once('\n').unwrap_or((text, ""));
    let mut object = match example(first) {
        Some(example) => example.clone(),
        None => serde_json::from_str(first).ok()?,
    };
    for line in edits.lines().filter(|line| line.starts_with('/')) {
        edit(&mut object, line);
    }
    Some(object)
}

fn example(kind: &str) -> Option<&'static Value> {
    EXAMPLES.iter().find(|example| example.get("kind").is_some_and(|found| found == kind))
}

fn edit(object: &mut Value, line: &str) {
    let (pointer, value) = match line.split_once(' ') {
        Some((pointer, value)) => (pointer, Some(value)),
        None => (line, None),
    };
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    let key = key.replace("~1", "/").replace("~0", "~");
    let Some(parent) = object.pointer_mut(parent) else { return };
    let index = key.parse::<usize>().unwrap_or(usize::MAX);
    match (parent, value) {
        (Value::Object(members), Some(value)) => {
            members.insert(key, self::value(value));
        }
        (Value::Object(members), None) => {
            members.remove(&key);
        }
        (Value::Array(items), Some(value)) => match items.get_mut(index) {
            Some(item) => *item = self::value(value),
            None => items.push(self::value(value)),
        },
        (Value::Array(items), None) if index < items.len() => {
            items.remove(index);
        }
        // A value that is not a container becomes one.
        (parent @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)), Some(value)) => {
            *parent = Value::Object(Map::from_iter([(key, self::value(value))]));
        }
        (_, None) => {}
    }
}

fn value(text: &str) -> Value {
    let single = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    let repeated = text.strip_prefix('@').and_then(|rest| rest.split_once(' '));
    match repeated.and_then(|(count, item)| Some((count.parse::<usize>().ok()?, item))) {
        Some((count, item)) => {
            (0..count.min(MAX_ITEMS)).map(|index| single(&item.replace('%', &index.to_string()))).collect()
        }
        None => single(text),
    }
}

#[cfg(test)]
mod tests {

    use harness::attributes::GroupVersionKind;
    use harness::chain::{Chain, Request};
    use harness::server::Options;
    use serde_json::json;

    use super::*;

    #[test]
    fn edits_change_an_example() {
        let text = "ConfigMap\n/data @2 v%\n/metadata/labels {\"a\":\"b\"}\n/metadata/labels/x/y 1\n/metadata/name\n/kind/z";
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": ["v0", "v1"],
            "metadata": {"namespace": "default", "labels": {"a": "b"}},
        });
        assert_eq!(object(text), Some(expected));
        assert_eq!(object("{\"a\": []}\n/a/- 1\n/a/0 x\n/a/5 2\n/a/1"), Some(json!({"a": ["x"]})));
        assert_eq!(object("Nothing"), None);
    }

    /// The server must accept every example, because rejected objects are not useful seeds.
    #[tokio::test]
    async fn the_server_takes_every_example() {
        let chain = Chain::new(Options::default());
        for example in EXAMPLES.iter() {
            let kind = GroupVersionKind::from_object(example).kind;
            // These are sent to subresources, or contain a request.
            if ["Scale", "Eviction", "AdmissionReview"].contains(&kind.as_str()) {
                continue;
            }
            let sent = chain.send(&Request::create(example.clone())).await.unwrap();
            assert_eq!(sent.code, 201, "{kind}: {}", sent.body);
            assert!(sent.warnings.is_empty(), "{kind}: {:?}", sent.warnings);
            if kind.ends_with("WebhookConfiguration") {
                // The server would call the webhooks of this configuration.
                assert_eq!(chain.send(&Request::delete(example)).await.unwrap().code, 200);
            }
        }
    }

    #[test]
    fn parts_end_at_lines_of_three_dashes() {
        assert_eq!(parts("a\nb\n---\nc\n---\nd"), ["a\nb\n".to_owned(), "c\n---\nd\n".to_owned()]);
        assert_eq!(parts::<2>("a"), ["a\n".to_owned(), String::new()]);
    }
}
