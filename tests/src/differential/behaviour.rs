//! What the webhooks of a random situation do.

use serde_json::{Value, json};

use super::random::Random;
use super::situation::labels;

/// A behaviour, and whether it may refuse a request.
pub(super) fn behaviour(random: &mut Random, is_mutating: bool) -> (Value, bool) {
    match random.below(100) {
        0..25 => (json!({"allow": remarks(random)}), false),
        25..35 => (deny(random), true),
        35..47 => (misanswer(random), true),
        47..52 => {
            let (one, is_one_risky) = plain(random, is_mutating);
            let (other, is_other_risky) = plain(random, is_mutating);
            (json!({"sequence": [one, other]}), is_one_risky || is_other_risky)
        }
        _ if is_mutating => mutation(random),
        _ => (json!("allow"), false),
    }
}

fn plain(random: &mut Random, is_mutating: bool) -> (Value, bool) {
    match random.below(4) {
        0 => (deny(random), true),
        1 if is_mutating => mutation(random),
        2 => (misanswer(random), true),
        _ => (json!("allow"), false),
    }
}

fn mutation(random: &mut Random) -> (Value, bool) {
    match random.below(10) {
        0 | 1 => (json!({"always-mutate": {"labels": labels(random), "annotations": labels(random)}}), false),
        2..4 => (json!({"non-idempotent": {"annotation": random.pick(&["a", "n"])}}), false),
        4 => {
            let pointer = format!("/metadata/labels/{}", random.pick(&["a", "b"]));
            let question = if random.chance(50) { "present" } else { "absent" };
            let then = json!({"patch": {"operations": [operation(random)]}});
            (json!({"when": {"if": {question: pointer}, "then": then}}), true)
        }
        _ => {
            let count = random.between(1, 3);
            let operations: Vec<Value> = (0..count).map(|_| operation(random)).collect();
            let mut patch = remarks(random);
            patch["operations"] = json!(operations);
            (json!({"patch": patch}), true)
        }
    }
}

fn operation(random: &mut Random) -> Value {
    let key = random.pick(&["a", "b", "c"]);
    let value = random.pick(&["1", "2", "x"]);
    match random.below(10) {
        0..3 => json!({"op": "add", "path": "/metadata/labels", "value": {key: value}}),
        3 => json!({"op": "add", "path": format!("/metadata/labels/{key}"), "value": value}),
        4 => json!({"op": "add", "path": "/metadata/annotations", "value": {key: value}}),
        5 => json!({"op": "replace", "path": format!("/metadata/labels/{key}"), "value": value}),
        6 => json!({"op": "remove", "path": format!("/metadata/labels/{key}")}),
        7 => json!({"op": "test", "path": format!("/metadata/labels/{key}"), "value": value}),
        8 => json!({"op": "add", "path": "/metadata/finalizers", "value": [format!("example.com/{key}")]}),
        _ => json!({"op": "add", "path": "/metadata/annotations", "value": {}}),
    }
}

fn remarks(random: &mut Random) -> Value {
    let mut remarks = json!({});
    if random.chance(30) {
        remarks["warnings"] = json!([random.pick(&["one", "two", "two \"words\""])]);
    }
    if random.chance(30) {
        let key = random.pick(&["key", "other", "bad key", "a/b"]);
        remarks["auditAnnotations"] = json!({key: random.pick(&["1", "2"])});
    }
    remarks
}

fn deny(random: &mut Random) -> Value {
    let mut deny = remarks(random);
    if random.chance(60) {
        deny["code"] = json!(random.pick(&[0, 200, 399, 400, 403, 409, 422, 500, 599, 601]));
    }
    if random.chance(50) {
        deny["reason"] = json!(random.pick(&["Forbidden", "Odd", "Conflict"]));
    }
    if random.chance(60) {
        deny["message"] = json!(random.pick(&["not today", "say \"please\"", "é"]));
    }
    json!({"deny": deny})
}

fn misanswer(random: &mut Random) -> Value {
    if random.chance(30) {
        return json!({"bad-response": {"status": random.pick(&[204, 301, 400, 401, 403, 404, 418, 429, 500, 503])}});
    }
    json!({"bad-response": random.pick(&[
        "not-json",
        "empty",
        "no-response",
        "wrong-uid",
        "wrong-kind",
        "wrong-version",
        "patch-without-patch-type",
        "undecodable-patch",
        "patch-that-does-not-apply",
    ])})
}
