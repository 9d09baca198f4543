//! What is wrong with a custom resource by the structural schema of its definition.
//!
//! Looked at: types, required and unknown fields, enums, limits of numbers, texts and lists, keys of list maps and
//! sets. Not looked at: `pattern`, `format`, `not`, `allOf`, `anyOf`, `oneOf` and CEL rules.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong: in words that do not depend on the object, and where.
pub(super) type Fault = (&'static str, String);

/// A field that the schema does not have.
pub(super) const UNKNOWN_FIELD: &str = "unknown field";

/// Everything that is wrong with `object`.
///
/// Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/types_jsonschema.go`; pkg/apiserver/schema/pruning.
pub(super) fn faults(schema: &Value, object: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    // These are the server's own at the root, whatever the schema says of them.
    let own = ["apiVersion", "kind", "metadata"];
    members(schema, object, "", &own, &mut faults);
    faults
}

fn walk(schema: &Value, value: &Value, path: &str, faults: &mut Vec<Fault>) {
    if value.is_null() && (schema["nullable"] == true || schema.get("type").is_none()) {
        return;
    }
    if !schema.is_object() || schema["x-kubernetes-embedded-resource"] == true {
        return;
    }
    if !has_type(schema, value) {
        faults.push(("wrong type", path.to_owned()));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        faults.push(("value not allowed", path.to_owned()));
    }
    if !is_within_limits(schema, value) {
        faults.push(("beyond a limit", path.to_owned()));
    }
    match value {
        Value::Object(_) => members(schema, value, path, &[], faults),
        Value::Array(list) => items(schema, list, path, faults),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn members(schema: &Value, object: &Value, path: &str, own: &[&str], faults: &mut Vec<Fault>) {
    let Some(members) = object.as_object() else { return };
    let place = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            faults.push(("required field missing", place(name)));
        }
    }
    let additional = &schema["additionalProperties"];
    let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true || *additional == true;
    for (name, member) in members {
        match schema["properties"].get(name) {
            _ if own.contains(&name.as_str()) => {}
            Some(schema) => walk(schema, member, &place(name), faults),
            None if additional.is_object() => walk(additional, member, &place(name), faults),
            None if keeps_unknown => {}
            None => faults.push((UNKNOWN_FIELD, place(name))),
        }
    }
}

fn items(schema: &Value, list: &[Value], path: &str, faults: &mut Vec<Fault>) {
    for item in list {
        walk(&schema["items"], item, &format!("{path}[]"), faults);
    }
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let identity = |item: &Value| match schema["x-kubernetes-list-type"].as_str() {
        Some("map") => Some(keys.iter().map(|key| item[*key].to_string()).collect::<Vec<_>>().join(",")),
        Some("set") => Some(item.to_string()),
        _ => None,
    };
    let identities: Vec<String> = list.iter().filter_map(identity).collect();
    if identities.iter().collect::<BTreeSet<_>>().len() < identities.len() {
        faults.push(("key twice in a list", path.to_owned()));
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_i64() || value.is_u64() || value.is_string();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("number") => value.is_number(),
        _ => true,
    }
}

fn is_within_limits(schema: &Value, value: &Value) -> bool {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let is_between = |size: f64, least: &str, most: &str| {
        limit(least).is_none_or(|least| size >= least) && limit(most).is_none_or(|most| size <= most)
    };
    // A list or text of 2^52 items is not met.
    #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
    let count = |count: usize| count as f64;
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let is_at = |name: &str| limit(name).is_some_and(|limit| (limit - number).abs() < f64::EPSILON);
            is_between(number, "minimum", "maximum")
                && !(schema["exclusiveMinimum"] == true && is_at("minimum"))
                && !(schema["exclusiveMaximum"] == true && is_at("maximum"))
        }
        Value::String(text) => is_between(count(text.chars().count()), "minLength", "maxLength"),
        Value::Array(items) => is_between(count(items.len()), "minItems", "maxItems"),
        Value::Object(members) => is_between(count(members.len()), "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, value: &Value, expected: &[Fault]) {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let object = json!({"apiVersion": "v1", "kind": "K", "metadata": {}, "spec": value});
        assert_eq!(faults(&schema, &object), expected, "{value}");
    }

    fn at(what: &'static str, path: &str) -> Fault {
        (what, path.to_owned())
    }

    #[test]
    fn types_and_limits_are_kept() {
        let schema = json!({"type": "integer", "minimum": 1, "maximum": 3, "exclusiveMaximum": true});
        check(&schema, &json!(2), &[]);
        check(&schema, &json!("2"), &[at("wrong type", "spec")]);
        check(&schema, &json!(0), &[at("beyond a limit", "spec")]);
        check(&schema, &json!(3), &[at("beyond a limit", "spec")]);
        check(&json!({"type": "string", "enum": ["a"]}), &json!("b"), &[at("value not allowed", "spec")]);
        check(&json!({"type": "string", "nullable": true}), &Value::Null, &[]);
        check(&json!({"x-kubernetes-int-or-string": true}), &json!("80%"), &[]);
        check(&json!({"type": "array", "maxItems": 0}), &json!([1]), &[at("beyond a limit", "spec")]);
    }

    #[test]
    fn fields_are_required_or_unknown() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        check(&schema, &json!({"a": "x"}), &[]);
        check(
            &schema,
            &json!({"b": 1}),
            &[at("required field missing", "spec.a"), at("unknown field", "spec.b")],
        );
        let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        check(&map, &json!({"b": 1, "c": "x"}), &[at("wrong type", "spec.c")]);
        check(
            &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            &json!({"b": 1}),
            &[],
        );
    }

    #[test]
    fn keys_of_list_maps_and_items_of_sets_are_unique() {
        let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]});
        check(&map, &json!([{"a": 1, "b": 1}, {"a": 1, "b": 2}]), &[]);
        check(&map, &json!([{"a": 1, "b": 1}, {"a": 1, "b": 1}]), &[at("key twice in a list", "spec")]);
        let set = json!({"type": "array", "x-kubernetes-list-type": "set"});
        check(&set, &json!(["a", "a"]), &[at("key twice in a list", "spec")]);
        check(&json!({"type": "array"}), &json!(["a", "a"]), &[]);
    }
}
