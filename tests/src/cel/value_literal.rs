//! Converts values in answers to CEL expressions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Returns an expression of the static type `dyn` for a value of an [answer](super::Answer).
///
/// Returns `None` for values that do not equal any literal, such as NaN and authorizer values.
pub(crate) fn literal(value: &Value) -> Option<String> {
    let (name, inner) = value.as_object()?.iter().next()?;
    let text = inner.as_str();
    let written = match name.as_str() {
        "null" => "null".to_owned(),
        "bool" => inner.to_string(),
        "int" => text?.to_owned(),
        "uint" => format!("{}u", text?),
        "double" => match text? {
            "NaN" => return None,
            number => format!("double('{number}')"),
        },
        "string" => quoted(text?),
        "bytes" => {
            let bytes = STANDARD.decode(text?).ok()?;
            let escaped: Vec<String> = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("b'{}'", escaped.concat())
        }
        "timestamp" => format!("timestamp('{}')", text?),
        "duration" => format!("duration('{}ns')", text?),
        "type" if !text?.contains('.') => text?.to_owned(),
        "url" | "quantity" | "ip" | "cidr" | "semver" => format!("{name}({})", quoted(text?)),
        "list" => {
            let elements: Option<Vec<String>> = inner.as_array()?.iter().map(literal).collect();
            format!("[{}]", elements?.join(", "))
        }
        "map" => {
            // A key that is not a scalar is not found in another map.
            let is_scalar =
                |key: &Value| ["bool", "int", "uint", "string"].iter().any(|it| key.get(it).is_some());
            if !inner.as_array()?.iter().all(|entry| is_scalar(&entry[0])) {
                return None;
            }
            let entry = |entry: &Value| Some(format!("{}: {}", literal(&entry[0])?, literal(&entry[1])?));
            let entries: Option<Vec<String>> = inner.as_array()?.iter().map(entry).collect();
            format!("{{{}}}", entries?.join(", "))
        }
        "optional" if inner.is_null() => "optional.none()".to_owned(),
        "optional" => format!("optional.of({})", literal(inner)?),
        _ => return None,
    };
    Some(format!("dyn({written})"))
}

/// Returns a string literal. All characters except ASCII letters and digits are escaped.
fn quoted(text: &str) -> String {
    let escaped = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' => character.to_string(),
        other => format!("\\U{:08x}", u32::from(other)),
    };
    let characters: Vec<String> = text.chars().map(escaped).collect();
    format!("'{}'", characters.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_written_as_an_expression() {
        let check = |value: Value, expected: &str| assert_eq!(literal(&value).as_deref(), Some(expected));
        check(json!({"int": "-3"}), "dyn(-3)");
        check(json!({"string": "a b"}), "dyn('a\\U00000020b')");
        check(json!({"list": [{"null": null}, {"uint": "1"}]}), "dyn([dyn(null), dyn(1u)])");
        check(json!({"map": [[{"string": "a"}, {"bool": true}]]}), "dyn({dyn('a'): dyn(true)})");
        check(json!({"optional": {"duration": "5"}}), "dyn(optional.of(dyn(duration('5ns'))))");
        assert_eq!(literal(&json!({"double": "NaN"})), None);
        assert_eq!(literal(&json!({"list": [{"object": "kubernetes.authorization.Decision"}]})), None);
    }
}
