//! Random behaviours of webhooks, as `case.yaml` writes them.

use serde_json::{Value, json};

use super::situation::Generator;
use super::webhooks::Leave;

const WARNINGS: [&str; 5] = ["one", "two", "say \"please\"", "", "drei ä"];

/// What one webhook does.
pub(crate) fn behaviour(generator: &mut Generator<'_>, is_mutating: bool, leave: Leave) -> Value {
    if generator.random.chance(10) {
        let count = generator.random.between(2, 3);
        return json!({"sequence": (0..count).map(|_| single(generator, is_mutating, leave)).collect::<Vec<_>>()});
    }
    single(generator, is_mutating, leave)
}

/// Whether the failure policy matters for this behaviour.
pub(crate) fn may_fail(behaviour: &Value) -> bool {
    behaviour.to_string().contains("bad-response")
}

fn single(generator: &mut Generator<'_>, is_mutating: bool, leave: Leave) -> Value {
    let choices: &[(usize, &str)] = if is_mutating {
        &[
            (18, "allow"),
            (42, "patch"),
            (10, "always-mutate"),
            (6, "non-idempotent"),
            (8, "when"),
            (5, "deny"),
            (6, "bad-response"),
            (3, "sidecar"),
            (2, "container-env"),
        ]
    } else {
        &[(65, "allow"), (18, "deny"), (14, "bad-response"), (3, "patch")]
    };
    match generator.random.weighted(choices) {
        "patch" if is_mutating || leave.refuse => {
            let part = part(generator);
            let parameters = json!({"operations": operations(generator, part)});
            of_those_that_have(part, &json!({"patch": spoken(generator, leave, parameters)}))
        }
        "always-mutate" => json!({"always-mutate": {
            "labels": generator.labels(70), "annotations": {generator.key(): generator.value()},
        }}),
        "non-idempotent" => json!("non-idempotent"),
        "when" => {
            let condition = if generator.random.chance(50) { "present" } else { "absent" };
            let pointer = pointer(generator, Part::Metadata);
            json!({"when": {
                "if": {condition: pointer}, "then": {"patch": {"operations": operations(generator, Part::Metadata)}},
                "otherwise": {"patch": {"operations": operations(generator, Part::Metadata)}},
            }})
        }
        "deny" if leave.refuse => deny(generator, leave),
        "bad-response" => bad_response(generator),
        "sidecar" => json!("sidecar"),
        "container-env" => json!("container-env"),
        _ => json!({"allow": spoken(generator, leave, json!({}))}),
    }
}

fn deny(generator: &mut Generator<'_>, leave: Leave) -> Value {
    let mut deny = json!({});
    if generator.random.chance(60) {
        deny["code"] = json!(generator.random.one_of(&[403, 400, 409, 422, 500, 503, 418, 200, 0, 399, 600]));
    }
    if generator.random.chance(50) {
        deny["message"] = json!(generator.random.one_of(&["not today", "no: <id>", "a\nb"]));
    }
    if generator.random.chance(40) {
        deny["reason"] = json!(generator.random.one_of(&["Forbidden", "NoReason", "Invalid"]));
    }
    json!({"deny": spoken(generator, leave, deny)})
}

fn bad_response(generator: &mut Generator<'_>) -> Value {
    let known = [
        "not-json",
        "empty",
        "no-response",
        "wrong-uid",
        "wrong-kind",
        "wrong-version",
        "patch-without-patch-type",
        "undecodable-patch",
        "patch-that-does-not-apply",
        "status",
    ];
    match generator.random.one_of(&known) {
        "status" => {
            json!({"bad-response": {"status": generator.random.one_of(&[400, 403, 404, 500, 502, 503])}})
        }
        other => json!({"bad-response": other}),
    }
}

/// With warnings and audit annotations, perhaps.
fn spoken(generator: &mut Generator<'_>, leave: Leave, mut parameters: Value) -> Value {
    if leave.warn && generator.random.chance(25) {
        parameters["warnings"] = json!(generator.random.some_of(&WARNINGS));
    }
    if generator.random.chance(25) {
        let keys = ["reason", "a.b", "x_y-z", "Upper"];
        let annotations: serde_json::Map<String, Value> = generator
            .random
            .some_of(&keys)
            .into_iter()
            .map(|key| (key.to_owned(), json!(generator.random.one_of(&["yes", "", "two words"]))))
            .collect();
        parameters["auditAnnotations"] = Value::Object(annotations);
    }
    parameters
}

/// Which part of an object a patch is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Metadata,
    Data,
    Spec,
    /// A field that the kind may not have.
    Anything,
}

fn part(generator: &mut Generator<'_>) -> Part {
    if generator.may("unknown-fields", 8) {
        return Part::Anything;
    }
    generator.random.weighted(&[(70, Part::Metadata), (18, Part::Data), (12, Part::Spec)])
}

/// The behaviour for objects that have this part; the others are allowed.
fn of_those_that_have(part: Part, behaviour: &Value) -> Value {
    match part {
        Part::Metadata | Part::Anything => behaviour.clone(),
        Part::Data => json!({"when": {"if": {"present": "/data/k"}, "then": behaviour}}),
        Part::Spec => json!({"when": {"if": {"present": "/spec/size"}, "then": behaviour}}),
    }
}

fn operations(generator: &mut Generator<'_>, part: Part) -> Vec<Value> {
    let count = generator.random.weighted(&[(5, 0), (65, 1), (22, 2), (8, 3)]);
    (0..count).map(|_| operation(generator, part)).collect()
}

fn operation(generator: &mut Generator<'_>, part: Part) -> Value {
    let value = json!(generator.value());
    let path = pointer(generator, part);
    match generator.random.below(20) {
        0..=5 => json!({"op": "add", "path": "/metadata/labels", "value": generator.labels(90)}),
        6 => json!({"op": "add", "path": "/metadata/annotations", "value": generator.labels(70)}),
        7..=10 => json!({"op": "add", "path": path, "value": value}),
        11 | 12 => json!({"op": "replace", "path": path, "value": value}),
        13 | 14 => json!({"op": "remove", "path": path}),
        15 => json!({"op": "test", "path": path, "value": value}),
        16 => json!({"op": "copy", "from": pointer(generator, part), "path": path}),
        17 => json!({"op": "move", "from": pointer(generator, part), "path": path}),
        18 => json!({"op": "add", "path": "/metadata/finalizers", "value": ["example.com/keep"]}),
        _ => {
            let value = generator.random.one_of(&["a", "b", "not valid"]);
            json!({"op": "add", "path": "/metadata/labels/env", "value": value})
        }
    }
}

/// A place that many objects have.
fn pointer(generator: &mut Generator<'_>, part: Part) -> String {
    let key = generator.key().replace('/', "~1");
    match (part, generator.random.below(8)) {
        (Part::Data, 0..=4) => "/data/k".to_owned(),
        (Part::Spec | Part::Anything, 0..=4) => "/spec/size".to_owned(),
        (_, 0..=4) => format!("/metadata/labels/{key}"),
        (_, 5 | 6) => format!("/metadata/annotations/{key}"),
        _ if generator.widgets && !generator.may("malformed-metadata", 100) => {
            "/metadata/annotations/env".to_owned()
        }
        _ => "/metadata/labels".to_owned(),
    }
}
