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
            let parameters = json!({"operations": operations(generator)});
            json!({"patch": spoken(generator, leave, parameters)})
        }
        "always-mutate" => json!({"always-mutate": {
            "labels": generator.labels(70), "annotations": {generator.key(): generator.value()},
        }}),
        "non-idempotent" => json!("non-idempotent"),
        "when" => {
            let condition = if generator.random.chance(50) { "present" } else { "absent" };
            let pointer = pointer(generator);
            json!({"when": {
                "if": {condition: pointer}, "then": {"patch": {"operations": operations(generator)}},
                "otherwise": {"patch": {"operations": operations(generator)}},
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

fn operations(generator: &mut Generator<'_>) -> Vec<Value> {
    (0..generator.random.weighted(&[(5, 0), (65, 1), (22, 2), (8, 3)]))
        .map(|_| operation(generator))
        .collect()
}

fn operation(generator: &mut Generator<'_>) -> Value {
    let value = json!(generator.value());
    match generator.random.below(20) {
        0..=4 => json!({"op": "add", "path": "/metadata/labels", "value": generator.labels(90)}),
        5 => json!({"op": "add", "path": "/metadata/annotations", "value": generator.labels(70)}),
        6..=8 => json!({"op": "add", "path": pointer(generator), "value": value}),
        9 | 10 => json!({"op": "replace", "path": pointer(generator), "value": value}),
        11 => json!({"op": "remove", "path": pointer(generator)}),
        12 => json!({"op": "test", "path": pointer(generator), "value": value}),
        13 => json!({"op": "copy", "from": pointer(generator), "path": pointer(generator)}),
        14 => json!({"op": "move", "from": pointer(generator), "path": pointer(generator)}),
        15 | 16 => json!({"op": "add", "path": "/data", "value": {"k": value}}),
        17 => json!({"op": "add", "path": "/spec", "value": {"size": generator.random.below(3)}}),
        18 => json!({"op": "add", "path": "/metadata/finalizers", "value": ["example.com/keep"]}),
        _ => {
            json!({"op": "add", "path": "/metadata/labels/env", "value": generator.random.one_of(&["a", "b", "not valid"])})
        }
    }
}

/// A place that many objects have.
fn pointer(generator: &mut Generator<'_>) -> String {
    let key = generator.key().replace('/', "~1");
    match generator.random.below(8) {
        0..=3 => format!("/metadata/labels/{key}"),
        4 => format!("/metadata/annotations/{key}"),
        5 => "/data/k".to_owned(),
        6 => "/spec/size".to_owned(),
        _ => "/metadata/labels".to_owned(),
    }
}
