//! Encodes managed fields as upstream stores them: as JSON whose members are sorted by path element.

use kubernetes_managed_fields::PathElement;
use serde_json::{Map, Value};

/// Encodes a set of fields.
///
/// Source: structured-merge-diff fieldpath/serialize.go, `emitContentsV1`.
pub(super) fn encode(fields: &Value) -> String {
    let mut text = String::new();
    write(&mut text, fields);
    text
}

fn write(text: &mut String, fields: &Value) {
    let Value::Object(members) = fields else {
        text.push_str(&fields.to_string());
        return;
    };
    text.push('{');
    for (index, (name, fields)) in sorted(members).into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        write(text, fields);
    }
    text.push('}');
}

/// Returns the members in order: the field itself (`.`) first, then its parts.
fn sorted(members: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut sorted: Vec<_> = members
        .iter()
        .map(|(name, fields)| (PathElement::parse(name).ok().flatten(), &**name, fields))
        .collect();
    // The sort is stable. The field itself, `.`, is not a path element and comes first.
    sorted.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    sorted.into_iter().map(|(_, name, fields)| (name, fields)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_in_the_order_of_path_elements() {
        let key = |port: i32| format!("k:{{\"containerPort\":{port},\"protocol\":\"TCP\"}}");
        let fields = json!({
            key(80): {".": {}}, key(443): {}, key(8080): {}, ".": {}, "v:10": {}, "v:9": {}, "f:<": {},
        });
        assert_eq!(
            encode(&fields),
            concat!(
                r#"{".":{},"f:<":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{}},"#,
                r#""k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{},"#,
                r#""k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{},"v:9":{},"v:10":{}}"#,
            )
        );
    }
}
