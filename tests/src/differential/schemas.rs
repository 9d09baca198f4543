//! Random schemas of custom resources, and objects that fit them, or nearly.
//!
//! At most one value of an object is wrong: kube-apiserver reports the errors of several fields in any order.

use serde_json::{Map, Value, json};

use super::situation::{GROUP, Generator};

/// The fields of every object of a schema.
const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

/// A definition with a random schema, and what is asked of its objects.
pub(super) fn situation(generator: &mut Generator<'_>) -> (Value, Vec<Value>) {
    let spec = object(generator, 3);
    let mut status = object(generator, 1);
    // The README tells of what admit does otherwise then.
    if let Some(members) = status.as_object_mut() {
        members.remove("default");
    }
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": [version],
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        },
    });
    let resource = format!("{GROUP}/v1/things");
    let mut requests = Vec::new();
    for index in 0..generator.random.between(2, 5) {
        let wrong = generator.random.chance(40);
        let value = value(generator, &spec, wrong);
        let request = match generator.random.below(4) {
            0 | 1 => json!({"verb": "create", "resource": resource, "body": {
                "apiVersion": format!("{GROUP}/v1"), "kind": "Thing",
                "metadata": {"name": format!("t{index}")}, "spec": value,
            }}),
            2 => json!({
                "verb": "patch", "resource": resource, "name": "t0", "patch": "merge", "body": {"spec": value},
            }),
            _ => {
                let value = self::value(generator, &status, wrong);
                json!({
                    "verb": "patch", "resource": resource, "subresource": "status", "name": "t0", "patch": "merge",
                    "body": {"status": value},
                })
            }
        };
        requests.push(request);
    }
    requests.push(json!({"verb": "get", "resource": resource, "name": "t0"}));
    (definition, requests)
}

/// A schema of an object.
fn object(generator: &mut Generator<'_>, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in generator.random.some_of(&FIELDS) {
        properties.insert(name.to_owned(), schema(generator, depth));
    }
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    let required = names.first().filter(|_| generator.random.chance(20)).copied();
    let mut object = json!({"type": "object"});
    if let Some(name) = required {
        object["required"] = json!([name]);
    }
    object["properties"] = Value::Object(properties);
    if generator.random.chance(15) {
        object["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if generator.random.chance(20) {
        object["default"] = json!({});
        if object.get("required").is_some() {
            object.as_object_mut().map(|members| members.remove("default"));
        }
    }
    object
}

fn schema(generator: &mut Generator<'_>, depth: usize) -> Value {
    let kinds = if depth == 0 { 5 } else { 9 };
    let mut schema = match generator.random.below(kinds) {
        0 => json!({"type": "integer"}),
        1 => json!({"type": "string"}),
        2 => json!({"type": "boolean"}),
        3 => json!({"type": "number"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => {
            let items = self::schema(generator, depth - 1);
            json!({"type": "array", "items": items})
        }
        6 => {
            let values = self::schema(generator, depth - 1);
            json!({"type": "object", "additionalProperties": values})
        }
        _ => return object(generator, depth - 1),
    };
    if generator.random.chance(20) {
        schema["nullable"] = true.into();
    }
    let bounds = generator.random.chance(40);
    let (name, bound, default) = match (schema["type"].as_str(), generator.random.below(3)) {
        (Some("integer"), 0) => ("maximum", json!(5), json!(2)),
        (Some("integer"), 1) => ("multipleOf", json!(2), json!(4)),
        (Some("integer"), _) => ("enum", json!([1, 2, 4]), json!(1)),
        (Some("number"), 0) => ("minimum", json!(0.5), json!(1.5)),
        (Some("number"), _) => ("exclusiveMinimum", json!(false), json!(2.5)),
        (Some("string"), 0) => ("maxLength", json!(3), json!("ab")),
        (Some("string"), 1) => ("pattern", json!("^[a-c]*$"), json!("abc")),
        (Some("string"), _) => ("enum", json!(["ab", "abc", ""]), json!("ab")),
        (Some("boolean"), _) => ("description", json!("a flag"), json!(true)),
        (Some("array"), 0) => ("maxItems", json!(2), Value::Null),
        (Some("array"), _) => ("minItems", json!(1), Value::Null),
        (Some("object"), _) => ("maxProperties", json!(2), Value::Null),
        _ => ("anyOf", json!([{"type": "integer"}, {"type": "string"}]), json!("x")),
    };
    if bounds {
        schema[name] = bound;
    }
    if generator.random.chance(30) && !default.is_null() {
        schema["default"] = default;
    }
    schema
}

/// A value for a schema; with one fault somewhere if it is to be `wrong`.
fn value(generator: &mut Generator<'_>, schema: &Value, wrong: bool) -> Value {
    if wrong && generator.random.chance(25) {
        return generator.random.one_of(&[
            json!("wrong"),
            json!(-7),
            json!([]),
            json!(true),
            json!(0.25),
            json!(null),
        ]);
    }
    match schema["type"].as_str() {
        Some("object") => members(generator, schema, wrong),
        Some("array") => {
            let mut items = Vec::new();
            let count = generator.random.between(1, 2);
            for index in 0..count {
                items.push(value(generator, &schema["items"], wrong && index == 0));
            }
            items.into()
        }
        Some("integer") => generator.random.one_of(&[json!(1), json!(2), json!(4)]),
        Some("number") => generator.random.one_of(&[json!(1), json!(2.5), json!(3)]),
        Some("boolean") => generator.random.one_of(&[json!(true), json!(false)]),
        Some(_) => generator.random.one_of(&[json!("ab"), json!("abc"), json!("")]),
        None => generator.random.one_of(&[json!("x"), json!(1)]),
    }
}

fn members(generator: &mut Generator<'_>, schema: &Value, wrong: bool) -> Value {
    let mut members = Map::new();
    if let Some(values) = schema.get("additionalProperties") {
        let name = generator.random.one_of(&FIELDS);
        members.insert(name.to_owned(), value(generator, values, wrong));
        return members.into();
    }
    let mut wrong = wrong;
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let is_required =
            schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
        if is_required || generator.random.chance(60) {
            let here = std::mem::take(&mut wrong);
            members.insert(name.clone(), value(generator, property, here));
        }
    }
    if generator.random.chance(15) {
        members.insert("unknown".to_owned(), json!({"x": null}));
    }
    members.into()
}
