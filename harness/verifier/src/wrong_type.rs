//! Finds the field whose value has the wrong type, because the API server's message does not contain list positions.

use kubernetes_types::json::json_type;
use serde_json::Value;

/// Returns the path of the first field below `path` in `object` that `message` is about, or `None` if it is not found.
///
/// The message is the API server's, such as `cannot unmarshal bool into Go struct field ServiceReference.webhooks.
/// clientConfig.service.name of type string`. `path` is the path of `object`; the message contains it, too.
pub(super) fn field(object: &Value, path: &str, message: &str) -> Option<String> {
    let (found, rest) = message.split_once("cannot unmarshal ")?.1.split_once(" into Go struct field ")?;
    let (_, field) = rest.split_once(" of type ")?.0.split_once('.')?;
    let outer = path.split('[').next().unwrap_or_default();
    let field = if outer.is_empty() { field } else { field.strip_prefix(outer)?.strip_prefix('.')? };
    let names: Vec<&str> = field.split('.').collect();
    find(object, &names, found.split(' ').next().unwrap_or_default(), path)
}

/// Returns the path of the first value of the type `found` at `names` below `value`, in any item of a list.
fn find(value: &Value, names: &[&str], found: &str, path: &str) -> Option<String> {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (value, names) {
        (value, []) if json_type(value) == found => Some(path.to_owned()),
        (Value::Array(items), names) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| find(item, names, found, &format!("{path}[{index}]"))),
        (Value::Object(members), [name, rest @ ..]) => match members.get(*name) {
            Some(value) => find(value, rest, found, &below(name)),
            // An embedded Go struct, such as `Rule`, is not a field of the object.
            None if name.starts_with(char::is_uppercase) => find(value, rest, found, path),
            None => None,
        },
        // The message about a value of a map does not name its key.
        (Value::Object(members), []) => {
            members.iter().find_map(|(name, value)| find(value, &[], found, &below(name)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_field_has_the_position_in_each_list() {
        let message = |found: &str, path: &str| {
            format!("json: cannot unmarshal {found} into Go struct field Type.{path} of type string")
        };
        let webhooks = json!([{"clientConfig": {"service": {"name": "a"}}, "rules": [{"operations": ["CREATE"]}]},
            {"clientConfig": {"service": {"name": true}}, "rules": [{"operations": ["CREATE", 1]}]}]);
        let object = json!({"metadata": {"labels": {"a": "b", "on": true}}, "webhooks": webhooks});
        for (found, path, expected) in [
            ("bool", "webhooks.clientConfig.service.name", Some("webhooks[1].clientConfig.service.name")),
            ("number", "webhooks.rules.operations", Some("webhooks[1].rules[0].operations[1]")),
            ("number", "webhooks.rules.Rule.operations", Some("webhooks[1].rules[0].operations[1]")),
            ("bool", "metadata.labels", Some("metadata.labels.on")),
            ("number", "metadata.labels", None),
        ] {
            assert_eq!(field(&object, "", &message(found, path)).as_deref(), expected, "{path}");
        }
        let message = message("bool", "webhooks.clientConfig.service.name");
        let found = field(&object["webhooks"][1], "webhooks[1]", &message);
        assert_eq!(found.as_deref(), Some("webhooks[1].clientConfig.service.name"));
    }
}
