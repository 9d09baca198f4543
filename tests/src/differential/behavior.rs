//! Generates random webhook behaviors, in the format of `case.yaml`.

use serde_json::{Value, json};

use super::situation::Generator;
use super::webhooks::Leave;

const WARNINGS: [&str; 7] = ["one", "two", "say \"please\"", "", "drei ä", " padded ", "a\tb"];

/// The faults in the catalog that respond immediately, and in the same way to every call.
///
/// Faults that deny the request are in [`REFUSALS`], because only some webhooks may reject requests.
const FAULTS: [&str; 36] = [
    "H09-404",
    "H09-413",
    "H10",
    "H11-202",
    "H11-204",
    "H11-299",
    "H12-404",
    "H12-date",
    "H13-302",
    "H14-307",
    "H15",
    "H16",
    "H17-other-type",
    "H17-broken-type",
    "H17-gzip",
    "H17-bom",
    "H18",
    "H19",
    "E01-list",
    "E01-two-documents",
    "E02-null",
    "E02-response-null",
    "E03-kind",
    "E04-v1beta1",
    "E05-kind",
    "E06",
    "E07-missing",
    "E09-text",
    "E10-response",
    "E11-unknown-fields",
    "E11-duplicate-keys",
    "E12-no-uid",
    "E13-code",
    "E13-annotation",
    "E14",
    "E12-no-kind",
];
/// The faults that respond immediately and reject the request regardless of the failure policy.
const REFUSALS: [&str; 9] = [
    "E08-missing",
    "E08-null",
    "E10-allowed",
    "E20-code",
    "E20-success",
    "E21",
    "E22-reason",
    "E22-nothing",
    "E23",
];
/// The faults in patches, for mutating webhooks that respond immediately.
const PATCHES: [&str; 26] = [
    "P01-no-patch-type",
    "P01-no-patch",
    "P01-empty-patch-type",
    "P02-merge-patch",
    "P03-not-base64",
    "P03-unpadded",
    "P03-url-safe",
    "P04-line-breaks",
    "P04-numbers",
    "P05",
    "P06-undecodable",
    "P06-object",
    "P07-empty",
    "P07-null",
    "P08-missing",
    "P08-unknown",
    "P09-no-path",
    "P09-no-slash",
    "P09-remove",
    "P09-test",
    "P10-replace",
    "P11",
    "P15-name",
    "P15-namespace",
    "P16-test",
    "P16-no-change",
];

/// Returns a random behavior for one webhook.
pub(crate) fn behavior(generator: &mut Generator<'_>, is_mutating: bool, leave: Leave) -> Value {
    if generator.random.chance(10) {
        let count = generator.random.between(2, 3);
        return json!({"sequence": (0..count).map(|_| single(generator, is_mutating, leave)).collect::<Vec<_>>()});
    }
    single(generator, is_mutating, leave)
}

/// Returns whether a webhook with this behavior may fail, so that its failure policy matters.
pub(crate) fn may_fail(behavior: &Value) -> bool {
    let text = behavior.to_string();
    text.contains("bad-response") || text.contains("\"fault\"")
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
            (5, "bad-response"),
            (6, "fault"),
            (3, "sidecar"),
            (2, "container-env"),
        ]
    } else {
        &[(65, "allow"), (18, "deny"), (9, "bad-response"), (7, "fault"), (3, "patch")]
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
        "fault" => json!({"fault": fault(generator, is_mutating, leave)}),
        name @ ("sidecar" | "container-env") => json!(name),
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

fn fault(generator: &mut Generator<'_>, is_mutating: bool, leave: Leave) -> &'static str {
    let kind = generator.random.weighted(&[(60, "any"), (15, "refusal"), (25, "patch")]);
    match kind {
        "refusal" if leave.refuse => generator.random.one_of(&REFUSALS),
        "patch" if is_mutating => generator.random.one_of(&PATCHES),
        _ => generator.random.one_of(&FAULTS),
    }
}

/// Adds warnings and audit annotations to a response in some cases.
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

/// The part of an object that a patch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Metadata,
    Data,
    Spec,
    /// A field that only some kinds have.
    Anything,
    /// Lists, and edge cases of JSON Patch.
    Odd,
}

fn part(generator: &mut Generator<'_>) -> Part {
    if generator.may("unknown-fields", 8) {
        return Part::Anything;
    }
    generator.random.weighted(&[(62, Part::Metadata), (16, Part::Data), (11, Part::Spec), (11, Part::Odd)])
}

/// Returns a behavior that applies only to objects that have this part. Other objects are allowed.
fn of_those_that_have(part: Part, behavior: &Value) -> Value {
    match part {
        Part::Metadata | Part::Anything | Part::Odd => behavior.clone(),
        Part::Data => json!({"when": {"if": {"present": "/data/k"}, "then": behavior}}),
        Part::Spec => json!({"when": {"if": {"present": "/spec/size"}, "then": behavior}}),
    }
}

fn operations(generator: &mut Generator<'_>, part: Part) -> Vec<Value> {
    let count = generator.random.weighted(&[(5, 0), (65, 1), (22, 2), (8, 3)]);
    (0..count).map(|_| operation(generator, part)).collect()
}

fn operation(generator: &mut Generator<'_>, part: Part) -> Value {
    if part == Part::Odd {
        return odd_operation(generator);
    }
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

/// Returns an operation that is an edge case of RFC 6902 or of upstream's implementation.
///
/// Examples are ends of lists, escapes, values that are missing or have a different type, and paths that do not exist.
fn odd_operation(generator: &mut Generator<'_>) -> Value {
    let value = json!(generator.value());
    let label = format!("/metadata/labels/{}", generator.key().replace('/', "~1"));
    match generator.random.below(19) {
        0 => json!({"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/last"}),
        1 => json!({"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/first"}),
        2 => json!({"op": "remove", "path": "/metadata/finalizers/0"}),
        3 => json!({"op": "replace", "path": "/metadata/finalizers/-1", "value": "example.com/end"}),
        4 => json!({"op": "add", "path": "/metadata/annotations", "value": {"a~b/c": value}}),
        5 => json!({"op": "add", "path": "/metadata/annotations/a~0b~1c", "value": value}),
        6 => json!({"op": "add", "path": label}),
        7 => json!({"op": "add", "path": label, "value": null}),
        8 => json!({"op": "replace", "path": label, "value": value, "extra": true}),
        9 => json!({"op": "test", "path": label}),
        10 => json!({"op": "test", "path": "/metadata/finalizers", "value": null}),
        11 => json!({"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}),
        12 => json!({"op": "move", "from": "/metadata/annotations", "path": "/metadata/labels"}),
        13 => json!({"op": "move", "from": label, "path": label}),
        14 => json!({"op": "add", "path": "/metadata/labels/env/x", "value": value}),
        15 => json!({"op": "replace", "path": "/nowhere/at/all", "value": value}),
        16 => json!({"op": "test", "path": "/metadata/name", "value": "x"}),
        17 => json!({"op": "add", "path": "/metadata/ownerReferences", "value": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"},
        ]}),
        _ => json!({"op": "replace", "path": "/apiVersion", "value": "v1"}),
    }
}

/// Returns a JSON pointer to a value that many objects have.
fn pointer(generator: &mut Generator<'_>, part: Part) -> String {
    let key = generator.key().replace('/', "~1");
    match (part, generator.random.below(8)) {
        (Part::Data, 0..=4) => "/data/k".to_owned(),
        (Part::Spec | Part::Anything, 0..=4) => "/spec/size".to_owned(),
        (_, 0..=4) => format!("/metadata/labels/{key}"),
        (_, 5 | 6) => format!("/metadata/annotations/{key}"),
        _ => "/metadata/labels".to_owned(),
    }
}
