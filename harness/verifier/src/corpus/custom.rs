//! Custom resources from the structural schema of their definition.

use serde_json::{Map, Value, json};

/// How many objects there are of each version.
pub(super) const COUNT: usize = 12;
/// How deep a schema is followed: it may contain itself by way of `x-kubernetes-preserve-unknown-fields`.
const DEEPEST: usize = 12;

/// How much of what a schema allows is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// Only what is required.
    Least,
    /// Everything, lists with one item.
    Most,
    /// What is required, and of the rest every other.
    Half(usize),
}

/// The served versions of a definition: `apiVersion`, kind and schema.
pub(super) fn versions(definition: &Value) -> Vec<(String, String, Value)> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions
        .filter(|version| version["served"] == true)
        .map(|version| {
            let name = version["name"].as_str().unwrap_or_default();
            let schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
            (format!("{}/{name}", text("/spec/group")), text("/spec/names/kind").to_owned(), schema)
        })
        .collect()
}

/// The object number `index` of a version.
pub(super) fn object((api_version, kind, schema): &(String, String, Value), index: usize) -> Value {
    let amount = match index % 3 {
        0 => Amount::Most,
        1 => Amount::Least,
        _ => Amount::Half(index / 3),
    };
    let mut object = value(schema, amount, 0);
    if !object.is_object() {
        object = json!({});
    }
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    super::complete(&mut object, api_version, kind, index);
    object
}

/// A value that `schema` allows.
///
/// Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/types_jsonschema.go`.
fn value(schema: &Value, amount: Amount, depth: usize) -> Value {
    for given in ["default", "example"] {
        if let Some(value) = schema.get(given) {
            return value.clone();
        }
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|all| all.first()) {
        return first.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match schema["type"].as_str() {
        Some("object") => object_value(schema, amount, depth),
        Some("array") => array(schema, amount, depth),
        Some("boolean") => json!(true),
        Some("integer") => integer(schema),
        Some("number") => json!(number(schema)),
        Some("string") => string(schema).into(),
        _ => json!({}),
    }
}

fn object_value(schema: &Value, amount: Amount, depth: usize) -> Value {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut members = Map::new();
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (position, (name, property)) in properties.enumerate() {
        let wanted = match amount {
            Amount::Least => false,
            Amount::Most => depth < DEEPEST,
            Amount::Half(offset) => depth < DEEPEST && (position + offset).is_multiple_of(2),
        };
        if wanted || required.contains(&name.as_str()) {
            members.insert(name.clone(), value(property, amount, depth + 1));
        }
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|schema| schema.is_object())
        && amount != Amount::Least
    {
        members.insert("key".to_owned(), value(additional, amount, depth + 1));
    }
    Value::Object(members)
}

fn array(schema: &Value, amount: Amount, depth: usize) -> Value {
    let least = usize::from(amount != Amount::Least && depth < DEEPEST);
    let count = schema["minItems"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let items = &schema["items"];
    let mut made: Vec<Value> = Vec::new();
    for index in 0..count.max(least) {
        let mut item = value(items, amount, depth + 1);
        // Keys of a list map must differ.
        for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
            if let Some(Value::String(text)) = key.as_str().and_then(|key| item.get_mut(key))
                && index > 0
            {
                text.push_str(&index.to_string());
            }
        }
        made.push(item);
    }
    made.into()
}

/// The smallest whole number that is allowed, or one.
fn integer(schema: &Value) -> Value {
    let limit = |name: &str| schema.get(name).and_then(Value::as_i64);
    let above = i64::from(schema["exclusiveMinimum"] == true);
    let number = limit("minimum").map_or(1, |least| least + above);
    limit("maximum").map_or(number, |most| number.min(most)).into()
}

/// The smallest number that is allowed, or one.
fn number(schema: &Value) -> f64 {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let above = if schema["exclusiveMinimum"] == true { 1.0 } else { 0.0 };
    let number = limit("minimum").map_or(1.0, |least| least + above);
    limit("maximum").map_or(number, |most| number.min(most))
}

fn string(schema: &Value) -> String {
    let formatted = match schema["format"].as_str() {
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("duration") => "30s",
        Some("byte") => "AAEC",
        Some("uuid") => "6f3d1d2e-0000-4000-8000-000000000001",
        Some("ipv4" | "ip") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("cidr") => "192.0.2.0/24",
        Some("uri") => "https://example.com/",
        Some("email") => "a@example.com",
        Some("hostname") => "example.com",
        _ => "text",
    };
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let mut text = formatted.to_owned();
    while text.len() < limit("minLength").unwrap_or(0).min(1024) {
        text.push('x');
    }
    if let Some(most) = limit("maxLength") {
        text.truncate(most);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(schema: &Value) -> Value {
        json!({"spec": {"group": "example.com", "names": {"kind": "Widget"}, "versions": [
            {"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}},
            {"name": "v0", "served": false, "schema": {"openAPIV3Schema": schema}},
        ]}})
    }

    #[test]
    fn required_fields_are_always_there_and_the_rest_now_and_then() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 3},
                "mode": {"type": "string", "enum": ["fast", "slow"]},
                "list": {"type": "array", "minItems": 2, "items": {"type": "object", "required": ["name"],
                    "properties": {"name": {"type": "string"}}}, "x-kubernetes-list-map-keys": ["name"]},
            }},
            "status": {"type": "object"},
        }, "required": ["spec"]});
        let versions = versions(&definition(&schema));
        assert_eq!(versions.len(), 1);
        let objects: Vec<Value> = (0..COUNT).map(|index| object(&versions[0], index)).collect();
        assert!(objects.iter().all(|object| object["spec"]["size"] == 3), "{objects:?}");
        assert!(objects.iter().all(|object| object.get("status").is_none()));
        assert!(objects.iter().any(|object| object["spec"]["mode"] == "fast"));
        assert!(objects.iter().any(|object| object["spec"].get("mode").is_none()));
        assert_eq!(objects[0]["spec"]["list"], json!([{"name": "text"}, {"name": "text1"}]));
        assert_eq!(objects[0]["apiVersion"], "example.com/v1");
    }

    #[test]
    fn limits_are_kept() {
        for (schema, expected) in [
            (json!({"type": "string", "minLength": 6}), json!("textxx")),
            (json!({"type": "string", "maxLength": 2}), json!("te")),
            (json!({"type": "number", "maximum": 0.5}), json!(0.5)),
            (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}), json!(2)),
            (json!({"type": "string", "format": "date-time"}), json!("2026-01-01T00:00:00Z")),
            (json!({"x-kubernetes-int-or-string": true}), json!(1)),
            (json!({"type": "string", "default": "d"}), json!("d")),
        ] {
            assert_eq!(value(&schema, Amount::Most, 0), expected, "{schema}");
        }
    }
}
