//! Generates random schemas of custom resources, and objects that match them or nearly match them.
//!
//! At most one value of an object is invalid, and only one part of a schema has rules: kube-apiserver reports the
//! errors of several fields in any order.

mod rules;

use harness::chain::Chain;
use harness::server::Options;
use serde_json::{Map, Value, json};

use super::situation::{GROUP, Generator};
use crate::names::Names;

/// The string formats, each with a matching value.
const FORMATS: [(&str, &str); 8] = [
    ("date-time", "2026-01-02T03:04:05Z"),
    ("date", "2026-01-02"),
    ("duration", "1h30m"),
    ("ipv4", "10.0.0.1"),
    ("ipv6", "fd00::1"),
    ("uuid", "9a1c6d3e-3c5a-4d0b-8d0e-1d6a3c5b7f00"),
    ("byte", "YWI="),
    ("hostname", "a.example.com"),
];
/// The names of the fields of every object in a schema.
const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

/// Returns a definition with a random schema, and requests for its objects.
///
/// If admit rejects the definition, returns only a request that creates the definition in a dry run.
pub(super) fn situation(generator: &mut Generator<'_>) -> (Option<Value>, Vec<Value>) {
    let mut spec = object(generator, 3);
    rules::add(generator, &mut spec);
    let mut status = object(generator, 1);
    // The documentation describes how admit differs in this case.
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
    if !is_accepted(&definition) {
        let request = json!({
            "verb": "create", "resource": "apiextensions.k8s.io/v1/customresourcedefinitions", "dryRun": true,
            "body": definition,
        });
        return (None, vec![request]);
    }
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
    (Some(definition), requests)
}

fn is_accepted(definition: &Value) -> bool {
    let text = Names::random().expand(&definition.to_string());
    serde_json::from_str(&text).is_ok_and(|definition| Chain::new(Options::default()).put(definition).is_ok())
}

/// Returns a random schema of an object.
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
        5 => array(generator, depth - 1),
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
    let (name, bound, default) = match (schema["type"].as_str(), generator.random.below(4)) {
        (Some("integer"), 0) => ("maximum", json!(5), json!(2)),
        (Some("integer"), 1) => ("multipleOf", json!(2), json!(4)),
        (Some("integer"), _) => ("enum", json!([1, 2, 4]), json!(1)),
        (Some("number"), 0) => ("minimum", json!(0.5), json!(1.5)),
        (Some("number"), _) => ("exclusiveMinimum", json!(false), json!(2.5)),
        (Some("string"), 0) => ("maxLength", json!(3), json!("ab")),
        (Some("string"), 1) => ("pattern", json!("^[a-c]*$"), json!("abc")),
        (Some("string"), 2) => ("format", json!(generator.random.one_of(&FORMATS).0), Value::Null),
        (Some("string"), _) => ("enum", json!(["ab", "abc", ""]), json!("ab")),
        (Some("boolean"), _) => ("description", json!("a flag"), json!(true)),
        (Some("array"), 0) => ("maxItems", json!(2), Value::Null),
        (Some("array"), 1) => ("minItems", json!(1), Value::Null),
        (Some("array"), _) => ("description", json!("a list"), Value::Null),
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

/// Returns a random schema of a list: atomic, a set of scalars, or a map with one or two keys.
fn array(generator: &mut Generator<'_>, depth: usize) -> Value {
    match generator.random.below(4) {
        0 => {
            let scalar = generator.random.one_of(&["integer", "string"]);
            json!({"type": "array", "items": {"type": scalar}, "x-kubernetes-list-type": "set"})
        }
        1 => {
            let value = schema(generator, depth);
            let items = json!({"type": "object", "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": value}});
            json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
        }
        _ => {
            let items = schema(generator, depth);
            json!({"type": "array", "items": items})
        }
    }
}

/// Returns a random value for a schema. If `wrong` is set, the value has one error.
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
            let mut items: Vec<Value> = Vec::new();
            let count = generator.random.between(1, 2);
            for index in 0..count {
                let mut item = value(generator, &schema["items"], wrong && index == 0);
                let list_type = schema["x-kubernetes-list-type"].as_str().unwrap_or_default();
                // Duplicate items are an error.
                if list_type == "set" && items.contains(&item) {
                    continue;
                }
                if list_type == "map" && item.is_object() && !(wrong && index == 0) {
                    item["k"] = json!(format!("k{index}"));
                }
                items.push(item);
            }
            if wrong && generator.random.chance(20) {
                items.extend(items.first().cloned());
            }
            items.into()
        }
        Some("integer") if schema.get("multipleOf").is_some() => json!(2),
        Some("integer") => generator.random.one_of(&[json!(1), json!(2), json!(4)]),
        Some("number") => generator.random.one_of(&[json!(1), json!(2.5), json!(3)]),
        Some("boolean") => generator.random.one_of(&[json!(true), json!(false)]),
        Some(_) => match FORMATS.iter().find(|(format, _)| schema["format"] == *format) {
            Some((_, example)) => json!(example),
            None => generator.random.one_of(&[json!("ab"), json!("abc"), json!("")]),
        },
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
