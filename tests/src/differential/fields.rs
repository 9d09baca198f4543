//! Generates random fields in objects of every kind, as clients and webhooks may set them.
//!
//! A field at any depth is null, empty, zero, valid, of a wrong type, or unknown.
//!
//! Stored objects must be valid, and admit does not check this completely. In most situations, a webhook therefore
//! rejects the object after the other webhooks have seen it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::situation::{Generator, Situation, namespace};
use crate::names::CASE_LABEL;
use crate::random::Random;

/// The Protobuf messages of the API's types. `harness/tools/messages.sh` describes the format.
const TYPES: &str = include_str!("../../../harness/types/src/schema/messages.json");
const OBJECTS: &str = include_str!("objects.yaml");

#[derive(Debug, Deserialize)]
pub(super) struct Types {
    /// The name of the message for each kind, by `apiVersion kind`.
    pub(super) kinds: BTreeMap<String, String>,
    pub(super) messages: BTreeMap<String, Vec<Field>>,
    /// The messages that are not serialized as JSON objects.
    pub(super) values: BTreeMap<String, Vec<Field>>,
}

/// A field of a message: its number, name, type, and additional attributes.
#[derive(Debug, Deserialize)]
pub(super) struct Field(
    serde::de::IgnoredAny,
    pub(super) String,
    pub(super) String,
    #[serde(default)] serde::de::IgnoredAny,
);

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Subject {
    pub(super) resource: String,
    pub(super) namespace: Option<String>,
    pub(super) object: Value,
}

/// The types, and an object of each kind.
pub(super) static KNOWN: LazyLock<(Types, Vec<Subject>)> = LazyLock::new(|| {
    let types = serde_json::from_str(TYPES).unwrap_or_else(|error| panic!("messages.json: {error}"));
    let subjects = serde_saphyr::from_str(OBJECTS).unwrap_or_else(|error| panic!("objects.yaml: {error}"));
    (types, subjects)
});

/// The number of objects in each situation.
const OBJECTS_EACH: usize = 8;
/// The fields that a server converts into other fields.
///
/// admit converts them as soon as a webhook has set them, but kube-apiserver only after all webhooks have run: see the
/// case `mutation/what-is-converted-shows-once-all-webhooks-have-run`.
const CONVERTED: [&str; 6] = ["stringData", "podCIDR", "podCIDRs", "podIP", "podIPs", "hostIPs"];
/// The field of custom resource definitions in which the server adds defaults.
const COMPLETED: &str = "names";
/// The resources for which kube-apiserver stores a new version although nothing changed, for an unknown reason.
const UNSTEADY: [&str; 1] = ["persistentvolumeclaims"];
/// The fields that the server writes, or that identify the object or its owner.
const LEFT_ALONE: [&str; 7] =
    ["name", "namespace", "labels", "generateName", "managedFields", "resourceVersion", "uid"];

impl Situation {
    /// Creates a situation about the fields of one kind from `seed` and the situation's `number`.
    pub fn of_fields(seed: u64, number: u64) -> Self {
        let none = BTreeSet::new();
        let mut generator = Generator::new(seed, number, &none);
        let case = case(&mut generator);
        Self { case, left_out: BTreeMap::new() }
    }
}

fn case(generator: &mut Generator<'_>) -> Value {
    let subject = &KNOWN.1[generator.random.below(KNOWN.1.len())];
    let mut object = subject.object.clone();
    object["metadata"]["labels"] = json!({CASE_LABEL: "<id>"});
    let random = &mut generator.random;
    let (webhooks, requests) = if !UNSTEADY.contains(&subject.resource.as_str()) && random.chance(25) {
        stored(random, subject, &object)
    } else {
        refused(random, subject, &object)
    };
    json!({"version": 1, "cluster": [namespace("<ns>", Map::new())], "webhooks": webhooks, "requests": requests})
}

fn webhook(subject: &Subject, name: &str, behavior: &Value) -> Value {
    let parts: Vec<&str> = subject.resource.split('/').collect();
    let (group, version, resource) = match parts.as_slice() {
        [group, version, resource] => (*group, *version, *resource),
        _ => ("", "v1", subject.resource.as_str()),
    };
    json!({
        "name": name, "type": "mutating", "behavior": behavior, "reach": "as-written",
        "rules": [{"operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": [resource]}],
        "objectSelector": {"matchLabels": {CASE_LABEL: "<id>"}}, "matchPolicy": "Exact",
        "reinvocationPolicy": "IfNeeded",
    })
}

pub(super) fn request(subject: &Subject, verb: &str, name: &str, body: &Value) -> Value {
    let mut request = bodiless(subject, verb, name);
    request["body"] = body.clone();
    request
}

/// Returns a request for an object of the subject, without a body.
pub(super) fn bodiless(subject: &Subject, verb: &str, name: &str) -> Value {
    let mut request = json!({"verb": verb, "resource": subject.resource, "name": name});
    if let Some(namespace) = &subject.namespace {
        request["namespace"] = json!(namespace);
    }
    request
}

/// Returns webhooks and requests: one webhook patches the object, another one sees it, and the last one rejects it.
fn refused(random: &mut Random, subject: &Subject, object: &Value) -> (Vec<Value>, Vec<Value>) {
    let (mut patches, mut requests) = (Vec::new(), Vec::new());
    for number in 0..OBJECTS_EACH {
        let mut body = object.clone();
        let is_clients = random.chance(40);
        if is_clients {
            change(random, &mut body, false);
        }
        let mut after = body.clone();
        patches.push(if is_clients && random.chance(50) {
            json!("allow")
        } else {
            let steps = change(random, &mut after, false);
            json!({"patch": {"operations": [operation(random, &body, &after, &steps)]}})
        });
        let mut request = request(subject, "create", &format!("o{number}-<id>"), &body);
        if random.chance(30) {
            request["query"]["fieldValidation"] = json!(random.one_of(&["Strict", "Ignore"]));
        }
        requests.push(request);
    }
    let webhooks = vec![
        webhook(subject, "a-patches", &json!({"sequence": patches})),
        webhook(subject, "b-sees", &json!("allow")),
        webhook(subject, "c-refuses", &json!({"deny": {"code": 403, "message": "seen"}})),
    ];
    (webhooks, requests)
}

/// Returns webhooks that are reinvoked, and requests that create an object and then update it.
///
/// The update may leave the object unchanged.
fn stored(random: &mut Random, subject: &Subject, object: &Value) -> (Vec<Value>, Vec<Value>) {
    let name = "o-<id>";
    let mut requests = vec![request(subject, "create", name, object)];
    for _ in 0..3 {
        let mut changed = object.clone();
        let steps = change(random, &mut changed, true);
        let is_merge = random.chance(50) && !steps.contains(&Step::Item);
        let body = if is_merge {
            merge(&changed, &steps)
        } else {
            json!([operation(random, object, &changed, &steps)])
        };
        let mut patch = request(subject, "patch", name, &body);
        patch["patch"] = json!(if is_merge { "merge" } else { "json" });
        requests.push(patch);
    }
    let mut patched = object.clone();
    let steps = change(random, &mut patched, true);
    let operation = operation(random, object, &patched, &steps);
    let last = json!({"always-mutate": {"annotations": {"example.com/last": "yes"}}});
    let webhooks = vec![
        webhook(subject, "a-patches", &json!({"patch": {"operations": [operation]}})),
        webhook(subject, "b-sees", &if random.chance(50) { last } else { json!("allow") }),
    ];
    (webhooks, requests)
}

/// One step of the path from the root of an object to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Member(String),
    /// The first item of a list.
    Item,
}

/// Sets one field at any depth of the object. Returns its path.
fn change(random: &mut Random, object: &mut Value, is_harmless: bool) -> Vec<Step> {
    let types = &KNOWN.0;
    let mut message = message(object);
    let mut steps = Vec::new();
    loop {
        let fields = fields(message);
        let candidates: Vec<&&Field> = fields
            .iter()
            .filter(|field| {
                let is_named = LEFT_ALONE.contains(&field.1.as_str());
                let is_converted = CONVERTED.contains(&field.1.as_str()) || field.1 == COMPLETED;
                !(is_converted || is_named && steps == [Step::Member("metadata".to_owned())])
            })
            .collect();
        let field = candidates[random.below(candidates.len())];
        let text = field.2.trim_start_matches('!');
        let base = text.trim_start_matches(['?', '[', ']', '{', '}']);
        steps.push(Step::Member(field.1.clone()));
        let depth = steps.len();
        let is_deeper = types.messages.get(base).is_some_and(|fields| !fields.is_empty());
        let is_metadata = depth == 1 && field.1 == "metadata";
        if is_deeper
            && depth < 9
            && (is_metadata || random.chance(72))
            && (!is_harmless || is_there(object, &steps))
        {
            if text.starts_with("[]") {
                steps.push(Step::Item);
                if is_harmless && !is_there(object, &steps) {
                    steps.pop();
                } else {
                    message = base_name(types, base);
                    continue;
                }
            } else {
                if text.starts_with("{}") {
                    steps.push(Step::Member("k".to_owned()));
                }
                message = base_name(types, base);
                continue;
            }
        }
        let value = if is_harmless { nothing(random, text) } else { value(random, text) };
        // The existing value may be required.
        if !(is_harmless && is_there(object, &steps)) {
            set(object, &steps, value);
        }
        return steps;
    }
}

/// Returns the name of the message that describes the kind of an object.
pub(super) fn message(object: &Value) -> &'static String {
    let kind = format!(
        "{} {}",
        object["apiVersion"].as_str().unwrap_or_default(),
        object["kind"].as_str().unwrap_or_default()
    );
    KNOWN.0.kinds.get(&kind).unwrap_or_else(|| panic!("{kind} is not in messages.json"))
}

fn base_name<'a>(types: &'a Types, base: &str) -> &'a String {
    types.messages.get_key_value(base).map_or_else(|| panic!("no message {base}"), |(name, _)| name)
}

/// Returns the fields of a message, including those of embedded messages.
pub(super) fn fields(message: &str) -> Vec<&'static Field> {
    let mut found = Vec::new();
    for field in KNOWN.0.messages.get(message).into_iter().flatten() {
        if field.1.is_empty() {
            found.extend(fields(field.2.trim_start_matches(['!', '?'])));
        } else {
            found.push(field);
        }
    }
    found
}

/// Returns a value that Go decodes in the same way as an absent field.
fn nothing(random: &mut Random, text: &str) -> Value {
    let empty = if text.starts_with("[]") {
        json!([])
    } else if text.starts_with("{}") {
        json!({})
    } else if text.starts_with('?') {
        Value::Null
    } else {
        zero(text)
    };
    random.one_of(&[Value::Null, empty])
}

fn zero(text: &str) -> Value {
    match text.split('=').next().unwrap_or_default() {
        "string" | "bytes" => json!(""),
        "bool" => json!(false),
        "int32" | "int64" | "double" | "int-or-string" => json!(0),
        "quantity" => json!("0"),
        "time" | "micro-time" | "json" => Value::Null,
        message if KNOWN.0.values.contains_key(message) => Value::Null,
        _ => json!({}),
    }
}

fn value(random: &mut Random, text: &str) -> Value {
    let shape = |item: Value| {
        if text.starts_with("[]") {
            json!([item])
        } else if text.starts_with("{}") {
            json!({"k": item})
        } else {
            item
        }
    };
    let base = text.trim_start_matches(['?', '[', ']', '{', '}']);
    match random.below(20) {
        0..=3 => Value::Null,
        4..=6 => random.one_of(&[json!([]), json!({}), json!("")]),
        7..=9 => shape(zero(base)),
        10 => shape(Value::Null),
        11..=13 => random.one_of(&[
            json!(1),
            json!(1.5),
            json!("x"),
            json!(true),
            json!([1]),
            json!({"a": 1}),
            json!(99_999_999_999_i64),
            json!(-1),
            json!("2026-01-01T00:00:00Z"),
            json!(["a", null]),
        ]),
        14 => shape(random.one_of(&[json!(1), json!("!"), json!(false), json!([]), json!({"bogus": 1})])),
        15 => json!({"bogus": 1, "Name": "x", "kind": "K"}),
        _ => shape(sample(random, base)),
    }
}

fn sample(random: &mut Random, base: &str) -> Value {
    match base.split('=').next().unwrap_or_default() {
        "string" => json!(random.one_of(&["a", "Always", "TCP"])),
        "bool" => json!(random.chance(50)),
        "int32" | "int64" | "double" => json!(random.one_of(&[0, 1, 3, -7])),
        "quantity" => random.one_of(&[
            json!("1000m"),
            json!(1),
            json!("1e3"),
            json!("0.5"),
            json!(" 1Ki"),
            json!("-0"),
            json!(0.25),
            json!("1Q"),
        ]),
        "time" => json!(random.one_of(&[
            "2026-01-01T01:00:00+01:00",
            "2026-01-01T00:00:00.5Z",
            "2026-01-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
        ])),
        "micro-time" => json!(random.one_of(&[
            "2026-01-01T01:00:00.123456+01:00",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.000001Z"
        ])),
        "bytes" => {
            random.one_of(&[json!("aGk="), json!([104, 105]), json!("aG\nk="), json!("aG"), json!([256])])
        }
        "int-or-string" => random.one_of(&[json!(1), json!("50%"), json!("http"), json!(1.5)]),
        "json" => json!({"b": 1, "a": [], "c": null}),
        message => match KNOWN.0.values.get(message).map(Vec::as_slice) {
            Some([Field(_, _, text, _)]) if text.starts_with("[]") => json!(["a"]),
            Some(_) => {
                random.one_of(&[json!(true), json!({"a": {}}), json!({"type": "string"}), json!(["a"])])
            }
            None => json!({}),
        },
    }
}

fn at<'a>(object: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(object, |place, step| match step {
        Step::Member(name) => place.get(name),
        Step::Item => place.get(0),
    })
}

fn is_there(object: &Value, steps: &[Step]) -> bool {
    at(object, steps).is_some()
}

/// Sets the value at `steps`, creating missing parents.
pub(super) fn set(object: &mut Value, steps: &[Step], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *object = value;
        return;
    };
    match step {
        Step::Member(name) => {
            if !object.is_object() {
                *object = json!({});
            }
            set(&mut object[name.as_str()], rest, value);
        }
        Step::Item => {
            if object.as_array().is_none_or(Vec::is_empty) {
                *object = json!([null]);
            }
            set(&mut object[0], rest, value);
        }
    }
}

/// Returns the JSON Patch operation that changes `before` to `after`. The values must differ only at `steps`.
fn operation(random: &mut Random, before: &Value, after: &Value, steps: &[Step]) -> Value {
    // The part of the path that existed before, plus one step.
    let there = (0..steps.len()).take_while(|end| is_there(before, &steps[..*end])).count();
    let there = &steps[..there.min(steps.len())];
    let is_new = !is_there(before, there);
    let mut path = String::new();
    for step in there {
        path.push('/');
        match step {
            Step::Member(name) => path.push_str(&name.replace('~', "~0").replace('/', "~1")),
            Step::Item => path.push_str(if is_new && there.last() == Some(step) { "-" } else { "0" }),
        }
    }
    let op = if is_new || random.chance(50) { "add" } else { "replace" };
    let op = if there.last() == Some(&Step::Item) && !is_new { "replace" } else { op };
    json!({"op": op, "path": path, "value": at(after, there)})
}

/// Returns a merge patch that contains only the value at `steps`.
fn merge(after: &Value, steps: &[Step]) -> Value {
    let mut patch = json!({});
    set(&mut patch, steps, at(after, steps).cloned().unwrap_or_default());
    patch
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case_and_all_kinds_are_among_them() {
        let mut kinds = BTreeSet::new();
        cases(400, |number| {
            let situation = Situation::of_fields(1, number);
            kinds.insert(situation.case["requests"][0]["resource"].to_string());
            situation
        });
        assert!(kinds.len() >= 40, "{kinds:?}");
    }
}
