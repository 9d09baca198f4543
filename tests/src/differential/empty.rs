//! Generates requests with empty lists, empty maps, and nulls.
//!
//! Servers store, merge, and track the ownership of each of these in different ways.
//!
//! Each situation writes one object repeatedly: by server-side apply of two managers, updates, and patches of all
//! formats. The emptied fields are declared in the types of the API, and may be nested at any depth.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::{self, Field, KNOWN, Step, Subject};
use super::situation::{self, GROUP, Situation, namespace};
use super::validation::is_left_alone;
use crate::random::Random;

const NAME: &str = "o-<id>";
/// The resources that situations do not write.
///
/// kube-apiserver stores a new version of some of them although nothing changed, for an unknown reason. Others are
/// changed by the server itself or by the controller of another kind.
const EXCLUDED: [&str; 4] =
    ["persistentvolumeclaims", "namespaces", "events", "apiextensions.k8s.io/v1/customresourcedefinitions"];
const EMPTIES: [&str; 4] = ["[]", "{}", "null", "\"\""];

impl Situation {
    /// Creates a situation about empty lists and maps from `seed` and the situation's `number`.
    pub fn of_empty(seed: u64, number: u64) -> Self {
        Self { case: case(&mut Random::new(seed, number)), left_out: BTreeMap::new() }
    }
}

fn case(random: &mut Random) -> Value {
    let mut cluster = vec![namespace("<ns>", Map::new())];
    let is_custom = random.chance(35);
    let requests = if is_custom {
        cluster.push(widgets(random));
        of_a_widget(random)
    } else {
        of_a_built_in(random)
    };
    json!({"version": 1, "managedFields": true, "cluster": cluster, "requests": requests})
}

/// Returns requests for an object of a built-in kind.
fn of_a_built_in(random: &mut Random) -> Vec<Value> {
    let subjects: Vec<&Subject> =
        KNOWN.1.iter().filter(|subject| !EXCLUDED.contains(&subject.resource.as_str())).collect();
    let subject = random.one_of(&subjects);
    let message = fields::message(&subject.object);
    let with_empties = |random: &mut Random| {
        let mut object = subject.object.clone();
        for _ in 0..random.between(1, 4) {
            let (steps, text) = place(random, &object, message);
            fields::set(&mut object, &steps, empty(random, &text));
        }
        object
    };
    let base = subject.object.clone();
    requests(random, base, with_empties, &|verb, body| fields::request(subject, verb, NAME, body))
}

/// Returns the path of a field to empty, and its type. The parents of the field exist.
fn place(random: &mut Random, object: &Value, message: &str) -> (Vec<Step>, String) {
    let (mut steps, mut message, mut value) = (Vec::new(), message.to_owned(), object.clone());
    loop {
        let all = fields::fields(&message);
        let candidates: Vec<&&Field> = all
            .iter()
            .filter(|field| !is_left_alone(&steps, &field.1))
            .filter(|field| is_emptied(&field.2) || value.get(&field.1).is_some())
            .collect();
        let Some(field) = (!candidates.is_empty()).then(|| random.one_of(&candidates)) else {
            return (
                vec![Step::Member("metadata".to_owned()), Step::Member("labels".to_owned())],
                "{}".to_owned(),
            );
        };
        let text = field.2.trim_start_matches('!').to_owned();
        let base = text.trim_start_matches(['?', '[', ']', '{', '}']).to_owned();
        steps.push(Step::Member(field.1.clone()));
        let mut next = value.get(&field.1).cloned();
        if text.starts_with("[]") {
            next = next.and_then(|list| list.get(0).cloned());
        }
        let is_deeper = KNOWN.0.messages.get(&base).is_some_and(|fields| !fields.is_empty());
        match next {
            Some(next) if is_deeper && next.is_object() && !text.starts_with("{}") && random.chance(70) => {
                if text.starts_with("[]") {
                    steps.push(Step::Item);
                }
                (message, value) = (base, next);
            }
            _ => return (steps, text),
        }
    }
}

/// Returns whether a field of this type can be emptied: a list, a map, or an object.
fn is_emptied(text: &str) -> bool {
    let text = text.trim_start_matches('!');
    let base = text.trim_start_matches('?');
    text.starts_with("[]") || text.starts_with("{}") || KNOWN.0.messages.contains_key(base)
}

fn empty(random: &mut Random, text: &str) -> Value {
    if random.chance(25) {
        return Value::Null;
    }
    match text {
        _ if text.starts_with("[]") && random.chance(90) => json!([]),
        _ if text.starts_with("[]") => json!([null]),
        _ if text.starts_with("{}") || is_emptied(text) => json!({}),
        _ => Value::Null,
    }
}

/// Returns the definition of the widgets, with lists and maps of all types that server-side apply supports.
fn widgets(random: &mut Random) -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let entry = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}, "m": texts}});
    let mut keyed = entry.clone();
    keyed["required"] = json!(["k"]);
    let mut spec = json!({
        "atomic": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": keyed},
        "texts": texts,
        "whole": {
            "type": "object", "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "m": texts},
        },
        "inner": entry,
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "maybe": {"type": "object", "nullable": true, "additionalProperties": {"type": "string"}},
    });
    if random.chance(30) {
        spec["embedded"] = json!({
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        });
    }
    if random.chance(30) {
        spec["texts"]["default"] = random.one_of(&[json!({}), json!({"a": "b"})]);
        spec["atomic"]["default"] = random.one_of(&[json!([]), json!(["a"])]);
    }
    let spec = json!({"type": "object", "properties": spec});
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": texts}}},
    });
    if random.chance(40) {
        version["subresources"] = json!({"status": {}});
    }
    situation::widgets(&[version])
}

fn of_a_widget(random: &mut Random) -> Vec<Value> {
    let object = |random: &mut Random| {
        let mut object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {}});
        // Empty `finalizers` and `ownerReferences` in an apply are a known difference: docs/differences/2-objects.yaml.
        let metadata = json!({"labels": {"a": "b"}, "annotations": {"a": "b"}});
        let spec = json!({
            "atomic": ["a"], "set": ["a"], "map": [{"k": "a", "v": "b"}], "texts": {"a": "b"},
            "whole": {"a": "b", "m": {"a": "b"}}, "inner": {"k": "a", "m": {"a": "b"}}, "free": {"a": {"b": []}},
            "maybe": {"a": "b"},
            "embedded": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "e", "labels": {"a": "b"}}, "a": {}},
        });
        for (name, members) in [("metadata", &metadata), ("spec", &spec)] {
            for (field, value) in members.as_object().into_iter().flatten() {
                match random.below(6) {
                    0 | 1 => object[name][field] = value.clone(),
                    2 => object[name][field] = emptied(random, value),
                    _ => {}
                }
            }
        }
        if random.chance(8) {
            object[random.one_of(&["spec", "status"])] =
                serde_json::from_str(random.one_of(&EMPTIES)).unwrap_or_default();
        }
        object
    };
    let base = object(random);
    let resource = format!("{GROUP}/v1/widgets");
    requests(
        random,
        base,
        object,
        &|verb, body| json!({"verb": verb, "resource": resource, "name": NAME, "body": body}),
    )
}

/// Returns null, an empty value, or a value with empty parts, as a replacement for `value`.
fn emptied(random: &mut Random, value: &Value) -> Value {
    match (value, random.below(5)) {
        (_, 0) => Value::Null,
        (Value::Array(items), 1) if items.first().is_some_and(Value::is_object) => {
            json!([{"k": "a", "m": {}}])
        }
        (Value::Array(_), _) => json!([]),
        (Value::Object(members), 1 | 2) => {
            let empty = |value: &Value| match value {
                Value::Object(_) => json!({}),
                Value::Array(_) => json!([]),
                other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other.clone(),
            };
            members.iter().map(|(name, value)| (name.clone(), empty(value))).collect()
        }
        _ => json!({}),
    }
}

/// Returns requests that create an object and write it repeatedly.
fn requests(
    random: &mut Random,
    base: Value,
    with_empties: impl Fn(&mut Random) -> Value,
    request: &dyn Fn(&str, &Value) -> Value,
) -> Vec<Value> {
    let apply = |random: &mut Random, object: &Value, manager: &str| {
        let mut request = request("patch", object);
        request["patch"] = json!("apply");
        request["query"]["fieldManager"] = json!(manager);
        if random.chance(40) {
            request["query"]["force"] = json!("true");
        }
        request
    };
    let first = if random.chance(60) { with_empties(random) } else { base };
    let mut requests =
        vec![if random.chance(50) { apply(random, &first, "a") } else { request("create", &first) }];
    let mut last = first;
    for _ in 0..random.between(3, 7) {
        let is_again = random.chance(30);
        let object = if is_again { last.clone() } else { with_empties(random) };
        last.clone_from(&object);
        let next = match random.below(10) {
            0..=3 => {
                let manager = random.one_of(&["a", "b"]);
                apply(random, &object, manager)
            }
            4 | 5 => request("update", &object),
            6 | 7 => patch(request, "merge", &object),
            8 => patch(request, "strategic", &object),
            _ => {
                // An empty value of another type is an error whose message contains the whole object.
                let (field, empty) = random.one_of(&[
                    ("labels", json!({})),
                    ("annotations", json!({})),
                    ("finalizers", json!([])),
                    ("ownerReferences", json!([])),
                ]);
                let empty = if random.chance(30) { Value::Null } else { empty };
                let operation = json!([{"op": "add", "path": format!("/metadata/{field}"), "value": empty}]);
                patch(request, "json", &operation)
            }
        };
        requests.push(next);
    }
    requests
}

fn patch(request: &dyn Fn(&str, &Value) -> Value, format: &str, body: &Value) -> Value {
    let mut request = request("patch", body);
    request["patch"] = json!(format);
    request
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::of_empty(1, number));
    }
}
