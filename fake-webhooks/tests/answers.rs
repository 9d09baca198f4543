//! Tests the responses of behaviors without a socket.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Answer, Behavior, Reply, answer};
use serde_json::{Value, json};

fn behavior(yaml: &str) -> Behavior {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{yaml}\n{error}"))
}

fn review(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "7", "operation": "CREATE", "object": object},
    })
}

fn reply(yaml: &str, nth: u64, review: &Value) -> Reply {
    match answer(&behavior(yaml), nth, review) {
        Answer::Reply(reply) => reply,
        other @ (Answer::Never | Answer::Closed { .. } | Answer::Bytes { .. }) => panic!("{other:?}"),
    }
}

fn config_map() -> Value {
    json!({"metadata": {"name": "one"}})
}

/// Returns the `response` of the review that a behavior returns for `object`.
fn response(yaml: &str, object: &Value) -> Value {
    let reply = reply(yaml, 0, &review(object));
    assert_eq!((reply.status, reply.content_type), (http::StatusCode::OK, "application/json".into()));
    let mut answer: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], "7");
    answer["response"].take()
}

#[track_caller]
fn responds(yaml: &str, expected: &Value) {
    assert_eq!(&response(yaml, &config_map()), expected, "{yaml}");
}

/// Returns the object after the given number of calls, each with the result of the previous one.
fn after(yaml: &str, calls: u64, object: &Value) -> Value {
    let mut object = object.clone();
    for _ in 0..calls {
        let response = response(yaml, &object);
        assert_eq!(response["allowed"], true);
        if let Some(patch) = response["patch"].as_str() {
            assert_eq!(response["patchType"], "JSONPatch");
            let operations = STANDARD.decode(patch).unwrap();
            json_patch::patch(
                &mut object,
                &serde_json::from_slice::<json_patch::Patch>(&operations).unwrap(),
            )
            .unwrap();
        }
    }
    object
}

#[track_caller]
fn mutates(yaml: &str, calls: u64, object: &Value, expected: &Value) {
    assert_eq!(&after(yaml, calls, object), expected, "{yaml} after {calls} calls");
}

fn pod(containers: &Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"containers": containers}})
}

#[test]
fn allow_returns_its_parameters() {
    responds("allow", &json!({"uid": "7", "allowed": true}));
    responds(
        "allow: {warnings: [careful], auditAnnotations: {why: because}}",
        &json!({"uid": "7", "allowed": true, "warnings": ["careful"], "auditAnnotations": {"why": "because"}}),
    );
}

#[test]
fn deny_returns_only_its_parameters() {
    responds("deny", &json!({"uid": "7", "allowed": false, "status": {}}));
    responds(
        "deny: {code: 409, reason: Conflict, message: no, warnings: [w], auditAnnotations: {a: b}}",
        &json!({
            "uid": "7", "allowed": false, "warnings": ["w"], "auditAnnotations": {"a": "b"},
            "status": {"code": 409, "reason": "Conflict", "message": "no"},
        }),
    );
}

#[test]
fn patch_sends_operations_unchanged() {
    let operations = r#"[{"op":"nonsense"},7]"#;
    responds(
        "patch: {operations: [{op: nonsense}, 7], warnings: [w]}",
        &json!({
            "uid": "7", "allowed": true, "warnings": ["w"],
            "patchType": "JSONPatch", "patch": STANDARD.encode(operations),
        }),
    );
}

#[test]
fn always_mutate_sets_existing_values_and_creates_parents() {
    let labeled = json!({"metadata": {"name": "one", "labels": {"always-mutate": "yes"}}});
    for (yaml, calls) in [("always-mutate", 1), ("always-mutate", 2), ("always-mutate: {}", 1)] {
        mutates(yaml, calls, &config_map(), &labeled);
    }
    assert!(response("always-mutate", &labeled)["patch"].is_string());
    let other = json!({"metadata": {"labels": {"a": "b"}, "annotations": null}});
    mutates(
        "always-mutate: {labels: {x.io/y: z}, annotations: {t~1: u}}",
        2,
        &other,
        &json!({"metadata": {"labels": {"a": "b", "x.io/y": "z"}, "annotations": {"t~1": "u"}}}),
    );
}

#[test]
fn non_idempotent_appends_on_every_call() {
    let annotated =
        |text: &str| json!({"metadata": {"name": "one", "annotations": {"non-idempotent": text}}});
    mutates("non-idempotent", 1, &config_map(), &annotated("x"));
    mutates("non-idempotent", 3, &config_map(), &annotated("xxx"));
    let list = "non-idempotent: {list: {path: /spec/deep/list, value: 1}}";
    mutates(list, 2, &json!({}), &json!({"spec": {"deep": {"list": [1, 1]}}}));
}

#[test]
fn null_objects_are_not_mutated() {
    for yaml in ["always-mutate", "non-idempotent", "sidecar", "container-env"] {
        for object in [Value::Null, json!({"container": "web", "stdin": true})] {
            mutates(yaml, 1, &object, &object);
        }
    }
    mutates("non-idempotent: {list: {path: /a, value: 1}}", 1, &Value::Null, &Value::Null);
}

#[test]
fn sidecar_is_added_once_or_on_every_call() {
    let web = json!({"name": "web", "image": "web:1"});
    let sidecar = |name: &str| json!({"name": name, "image": "example.com/sidecar:1"});
    mutates("sidecar", 2, &pod(&json!([web])), &pod(&json!([web, sidecar("sidecar")])));
    mutates(
        "sidecar: {name: s, repeat: every-call}",
        3,
        &pod(&json!([web])),
        &pod(&json!([web, sidecar("s"), sidecar("s-2"), sidecar("s-3")])),
    );
    let deployment = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    mutates("sidecar", 1, &deployment(json!([])), &deployment(json!([sidecar("sidecar")])));
}

#[test]
fn container_env_changes_only_containers_that_lack_it() {
    let variable = json!({"name": "INJECTED", "value": "yes"});
    let before =
        pod(&json!([{"name": "a"}, {"name": "b", "env": [{"name": "X"}]}, {"name": "c", "env": [variable]}]));
    let with = pod(&json!([
        {"name": "a", "env": [variable]},
        {"name": "b", "env": [{"name": "X"}, variable]},
        {"name": "c", "env": [variable]},
    ]));
    mutates("container-env", 1, &before, &with);
    assert_eq!(response("container-env", &with)["patch"], Value::Null);
}

#[test]
fn when_chooses_by_condition() {
    let yaml = "when: {if: {container: web}, then: {deny: {message: has it}}}";
    assert_eq!(response(yaml, &pod(&json!([{"name": "web"}])))["allowed"], false);
    assert_eq!(response(yaml, &pod(&json!([{"name": "other"}])))["allowed"], true);
    let yaml = "when: {if: {present: /metadata/name}, then: allow, otherwise: deny}";
    assert_eq!(response(yaml, &config_map())["allowed"], true);
    assert_eq!(response(yaml, &json!({}))["allowed"], false);
    let yaml = "when: {if: {absent: /metadata/name}, then: allow, otherwise: deny}";
    assert_eq!(response(yaml, &config_map())["allowed"], false);
}

#[test]
fn timeout_never_responds_or_responds_late() {
    let review = review(&config_map());
    for yaml in ["timeout", "timeout: {hang: forever}"] {
        assert_eq!(answer(&behavior(yaml), 0, &review), Answer::Never);
    }
    assert_eq!(reply("timeout: {hang: 2s}", 0, &review).after, Duration::from_secs(2));
    let late = reply("timeout: {hang: 2s, then: {timeout: {hang: 1s, then: deny}}}", 0, &review);
    assert_eq!((late.after, late.summary.as_str()), (Duration::from_secs(3), "denied after 1s after 2s"));
}

#[test]
fn sequence_repeats_the_last_behavior() {
    let yaml = "sequence: [allow, deny, {bad-response: {status: 503}}]";
    let review = review(&config_map());
    let said: Vec<_> = (0..5).map(|nth| reply(yaml, nth, &review).summary).collect();
    let unavailable = "bad response: HTTP status 503";
    assert_eq!(said, ["allowed", "denied", unavailable, unavailable, unavailable]);
}

/// Checks the complete body of a bad response.
#[track_caller]
fn misanswers(yaml: &str, expected: &Value) {
    let reply = reply(yaml, 0, &review(&config_map()));
    assert_eq!(reply.status, http::StatusCode::OK);
    assert_eq!(&serde_json::from_slice::<Value>(&reply.body).unwrap(), expected, "{yaml}");
}

#[test]
fn bad_response_has_a_single_defect() {
    let around = |response: Value| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let allowed = json!({"uid": "7", "allowed": true});
    misanswers(
        "bad-response: no-response",
        &json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
    );
    misanswers(
        "bad-response: wrong-uid",
        &around(json!({"uid": "not-the-uid-of-the-request", "allowed": true})),
    );
    misanswers(
        "bad-response: wrong-kind",
        &json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionResponse", "response": allowed}),
    );
    misanswers(
        "bad-response: wrong-version",
        &json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": allowed}),
    );
    misanswers("bad-response: no-uid", &around(json!({"allowed": true})));
    misanswers("raw: {response: {uid: '{uid}', allowed: 1}}", &around(json!({"uid": "7", "allowed": 1})));
    let asked = review(&config_map());
    let mut echoed = around(allowed.clone());
    echoed["request"] = asked["request"].clone();
    misanswers("bad-response: echoed-request", &echoed);
    let patched = |patch: &str| json!({"uid": "7", "allowed": true, "patch": STANDARD.encode(patch)});
    let typed = |patch: &str| {
        let mut response = patched(patch);
        response["patchType"] = json!("JSONPatch");
        around(response)
    };
    misanswers(
        "bad-response: patch-without-patch-type",
        &around(patched(r#"[{"op":"add","path":"/metadata/labels","value":{}}]"#)),
    );
    misanswers("bad-response: undecodable-patch", &typed("this is not a JSON Patch"));
    misanswers(
        "bad-response: patch-that-does-not-apply",
        &typed(r#"[{"op":"remove","path":"/no/object/has/this"}]"#),
    );
}

#[test]
fn upper_case_uid_is_that_of_the_request() {
    let mut asked = review(&config_map());
    asked["request"]["uid"] = json!("0a-b");
    let answer: Value =
        serde_json::from_slice(&reply("bad-response: uid-in-capitals", 0, &asked).body).unwrap();
    assert_eq!(answer["response"]["uid"], "0A-B");
}

#[test]
fn non_review_response_is_sent_for_any_request() {
    for review in [Value::Null, review(&config_map())] {
        let status = reply("bad-response: {status: 302}", 0, &review);
        assert_eq!(status.status, http::StatusCode::FOUND);
        assert_eq!(reply("bad-response: not-json", 0, &review).body, "this is not JSON");
        assert_eq!(reply("bad-response: empty", 0, &review).body, "");
        assert_eq!(
            answer(&behavior("bad-response: closed"), 0, &review),
            Answer::Closed { after: Duration::ZERO }
        );
    }
}

#[track_caller]
fn is_no_review(review: &Value, fault: &str) {
    for yaml in ["allow", "bad-response: wrong-uid"] {
        let reply = reply(yaml, 0, review);
        assert_eq!(reply.status, http::StatusCode::BAD_REQUEST);
        assert!(String::from_utf8_lossy(&reply.body).contains(fault), "{reply:?}");
    }
}

#[test]
fn non_review_request_is_rejected_with_the_missing_field() {
    is_no_review(&Value::Null, "`apiVersion`");
    is_no_review(&json!({"apiVersion": "v1", "kind": "Pod"}), "`kind`");
    is_no_review(&json!({"apiVersion": "v1", "kind": "AdmissionReview"}), "`request.uid`");
}

#[test]
fn response_has_the_version_of_the_review() {
    let mut asked = review(&config_map());
    asked["apiVersion"] = json!("admission.k8s.io/v1beta1");
    let answer: Value = serde_json::from_slice(&reply("allow", 0, &asked).body).unwrap();
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
}
