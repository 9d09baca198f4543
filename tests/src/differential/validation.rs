//! Generates random objects of built-in kinds with one to three invalid fields, created and updated in dry runs.
//!
//! Features that admit does not support are counted, but do not count as differences.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::{self, Field, KNOWN, Step, Subject};
use super::situation::{Situation, namespace};
use crate::manifests;
use crate::random::Random;

/// The number of objects that a situation creates.
const CREATED: usize = 6;
/// The number of updates of one object in a situation.
const UPDATED: usize = 4;
/// The maximum depth of an invalid field.
const MAX_DEPTH: usize = 9;
const STRINGS: [&str; 22] = [
    "",
    "a",
    "b",
    "A b_",
    "a.b",
    "-a",
    "1",
    "Always",
    "Never",
    "example.com/a",
    "example.com",
    "a/b/c",
    "10.1.2.3",
    "10.1.2.0/24",
    "::1",
    "https://example.com",
    "*",
    "/a",
    "../a",
    "TCP",
    "Exists",
    "None",
];
const NUMBERS: [i64; 9] = [-1, 0, 1, 2, 80, 101, 65_536, 1_000_001, 2_147_483_647];

impl Situation {
    /// Creates a situation about the validation of built-in kinds from `seed` and the situation's `number`.
    pub fn of_validation(seed: u64, number: u64) -> Self {
        Self { case: case(&mut Random::new(seed, number)), left_out: BTreeMap::new() }
    }
}

fn case(random: &mut Random) -> Value {
    let subject = &KNOWN.1[random.below(KNOWN.1.len())];
    let mut requests = vec![fields::request(subject, "create", "o-<id>", &subject.object)];
    for number in 0..CREATED {
        let body = wrong(random, subject);
        let mut request = fields::request(subject, "create", &format!("o{number}-<id>"), &body);
        request["dryRun"] = json!(true);
        requests.push(request);
    }
    for _ in 0..UPDATED {
        let mut body = wrong(random, subject);
        if body["metadata"].is_null() || body["metadata"].is_object() {
            body["metadata"]["resourceVersion"] = json!("<resourceVersion of request 1>");
        }
        let mut request = fields::request(subject, "update", "o-<id>", &body);
        request["dryRun"] = json!(true);
        requests.push(request);
    }
    json!({"version": 1, "cluster": [namespace("<ns>", Map::new())], "requests": requests})
}

/// Returns the object of a subject with one to three invalid fields.
fn wrong(random: &mut Random, subject: &Subject) -> Value {
    let mut object = subject.object.clone();
    for _ in 0..random.weighted(&[(50, 1), (30, 2), (20, 3)]) {
        if random.chance(30) {
            let variants = manifests::variants(&object);
            if !variants.is_empty() {
                object = random.one_of(&variants).1;
            }
        } else {
            set_one(random, &mut object);
        }
    }
    object
}

/// Sets one field, at any depth of the object, to a value of its type.
fn set_one(random: &mut Random, object: &mut Value) {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let kind = format!("{} {}", text("apiVersion"), text("kind"));
    let types = &KNOWN.0;
    let Some(mut message) = types.kinds.get(&kind).map(String::as_str) else { return };
    let mut steps = Vec::new();
    loop {
        let candidates: Vec<&Field> =
            fields::fields(message).into_iter().filter(|field| !is_left_alone(&steps, &field.1)).collect();
        if candidates.is_empty() {
            return;
        }
        let field = random.one_of(&candidates);
        steps.push(Step::Member(field.1.clone()));
        let text = field.2.trim_start_matches('!');
        let base = text.trim_start_matches(['?', '[', ']', '{', '}']);
        let has_fields = types.messages.get(base).is_some_and(|fields| !fields.is_empty());
        if !has_fields || steps.len() >= MAX_DEPTH || random.chance(12) {
            let value = value(random, text, base);
            fields::set(object, &steps, value);
            return;
        }
        if text.starts_with("[]") {
            steps.push(Step::Item);
        } else if text.starts_with("{}") {
            steps.push(Step::Member("k".to_owned()));
        }
        message = base;
    }
}

/// Returns whether the server writes the field, or whether the field identifies the object.
pub(super) fn is_left_alone(steps: &[Step], field: &str) -> bool {
    match steps {
        [] => ["apiVersion", "kind"].contains(&field),
        [Step::Member(metadata)] if metadata == "metadata" => {
            ["name", "namespace", "managedFields", "resourceVersion", "uid", "generateName"].contains(&field)
        }
        _ => false,
    }
}

fn value(random: &mut Random, text: &str, base: &str) -> Value {
    if random.chance(8) {
        return Value::Null;
    }
    if text.contains("[]") {
        let count = random.weighted(&[(15, 0), (60, 1), (25, 2)]);
        let items: Vec<Value> = (0..count).map(|_| scalar(random, base)).collect();
        return json!(items);
    }
    if text.contains("{}") {
        let key = random.one_of(&STRINGS);
        return json!({key: scalar(random, base)});
    }
    scalar(random, base)
}

/// Returns a valid or invalid value of a scalar type.
fn scalar(random: &mut Random, base: &str) -> Value {
    match base.split('=').next().unwrap_or_default() {
        "string" if random.chance(5) => json!("a".repeat(300)),
        "string" => json!(random.one_of(&STRINGS)),
        "bool" => json!(random.chance(50)),
        "int32" | "int64" => json!(random.one_of(&NUMBERS)),
        "double" => random.one_of(&[json!(0.5), json!(-1), json!(0)]),
        "quantity" => json!(random.one_of(&["0", "-1", "1", "100m", "1Gi", "1e3", "1n"])),
        "time" => json!("2026-01-01T00:00:00Z"),
        "micro-time" => json!("2026-01-01T00:00:00.000000Z"),
        "bytes" => json!(random.one_of(&["", "dmFsdWU="])),
        "int-or-string" => random.one_of(&[
            json!(0),
            json!(-1),
            json!(1),
            json!(70_000),
            json!(""),
            json!("50%"),
            json!("200%"),
            json!("http"),
            json!("A b_"),
        ]),
        "json" => json!({"a": 1}),
        message => match KNOWN.0.values.get(message).map(Vec::as_slice) {
            Some([field]) if field.2.starts_with("[]") => json!([random.one_of(&STRINGS)]),
            _ => json!({}),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case_and_all_kinds_are_among_them() {
        let mut kinds = BTreeSet::new();
        cases(400, |number| {
            let situation = Situation::of_validation(1, number);
            kinds.insert(situation.case["requests"][0]["resource"].to_string());
            situation
        });
        assert!(kinds.len() >= 40, "{kinds:?}");
    }
}
