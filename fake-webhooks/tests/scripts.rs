//! Tests sequences, conditions, random numbers, and delays.

use std::time::Duration;

use fake_webhooks::{Act, Answer, Behavior, Circumstances, Effect, Reply, act};
use serde_json::{Value, json};

fn behavior(yaml: &str) -> Behavior {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{yaml}\n{error}"))
}

fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "subResource": "scale",
            "operation": "UPDATE",
            "namespace": "demo",
            "userInfo": {"username": "jo"},
            "dryRun": true,
            "object": {
                "metadata": {"name": "web", "labels": {"team": "blue", "a": "b"}, "annotations": {"note": "x"}},
                "spec": {"replicas": 2, "volumes": [{"name": "token"}]},
            },
        },
    })
}

fn reply(act: Act) -> Reply {
    let Answer::Reply(reply) = act.answer else { panic!("{act:?}") };
    reply
}

fn said(yaml: &str, calls: u64) -> Vec<String> {
    let behavior = behavior(yaml);
    (0..calls).map(|nth| reply(act(&behavior, &Circumstances::for_call(nth), &review())).summary).collect()
}

#[track_caller]
fn holds(condition: &str, expected: bool, at: &Circumstances, review: &Value) {
    let yaml = format!("when: {{if: {{{condition}}}, then: deny}}");
    let summary = reply(act(&behavior(&yaml), at, review)).summary;
    assert_eq!(summary, if expected { "denied" } else { "allowed" }, "{condition}");
}

#[test]
fn conditions_are_evaluated() {
    let at = Circumstances { seen: 1, ..Circumstances::for_call(2) };
    for (condition, expected) in [
        ("present: /spec/replicas", true),
        ("absent: /spec/replicas", false),
        ("equals: {/spec/replicas: 2, /metadata/name: web}", true),
        ("equals: {/spec/replicas: 2, /metadata/name: other}", false),
        ("entry: {list: /spec/volumes, name: token}", true),
        ("entry: {list: /spec/volumes, name: other}", false),
        ("entry: {list: /spec/none, name: token}", false),
        ("label: {team: blue, a: b}", true),
        ("label: {team: blue, a: c}", false),
        ("annotation: {note: x}", true),
        ("annotation: {team: blue}", false),
        ("operations: [CREATE, UPDATE]", true),
        ("operations: ['*']", true),
        ("operations: [DELETE]", false),
        ("namespaces: [other, demo]", true),
        ("namespaces: []", false),
        ("resources: [deployments/scale]", true),
        ("resources: [deployments]", false),
        ("api-versions: [apps/v1]", true),
        ("api-versions: [v1]", false),
        ("review-version: v1", true),
        ("review-version: v1beta1", false),
        ("in-review: /request/uid", true),
        ("in-review: /request/admitUnknown", false),
        ("users: [jo]", true),
        ("users: [system:admin]", false),
        ("dry-run: true", true),
        ("dry-run: false", false),
        ("call: 3", true),
        ("call: 2", false),
        ("every: 3", true),
        ("every: 2", false),
        ("round: second", true),
        ("round: first", false),
        ("all: [{call: 3}, {dry-run: true}]", true),
        ("all: [{call: 3}, {dry-run: false}]", false),
        ("any: [{call: 4}, {dry-run: true}]", true),
        ("any: []", false),
        ("not: {call: 3}", false),
    ] {
        holds(condition, expected, &at, &review());
    }
}

#[test]
fn label_conditions_use_the_old_object_of_a_deletion() {
    let mut review = review();
    review["request"]["oldObject"] = review["request"]["object"].take();
    let at = Circumstances::for_call(0);
    holds("label: {team: blue}", true, &at, &review);
    holds("present: /metadata", false, &at, &review);
}

#[test]
fn behaviors_depend_on_the_call_number() {
    for (yaml, expected) in [
        ("cycle: [allow, deny]", "allowed denied allowed denied allowed"),
        ("first: {calls: 2, of: deny}", "denied denied allowed allowed allowed"),
        (
            "first: {calls: 1, of: deny, then: {sequence: [allow, deny]}}",
            "denied allowed denied denied denied",
        ),
        ("sequence: [deny, {cycle: [allow, deny]}]", "denied allowed denied allowed denied"),
        ("cycle: [{sequence: [allow, deny]}, deny]", "allowed denied denied denied denied"),
        ("when: {if: {every: 2}, then: deny}", "allowed denied allowed denied allowed"),
    ] {
        assert_eq!(said(yaml, 5).join(" "), expected, "{yaml}");
    }
}

#[test]
fn rate_is_approximated_and_reproducible() {
    let denied = |yaml: &str| said(yaml, 2_000).iter().filter(|summary| *summary == "denied").count();
    assert_eq!(denied("rate: {of: deny, probability: 0}"), 0);
    assert_eq!(denied("rate: {of: deny, probability: 1}"), 2_000);
    assert!((350..450).contains(&denied("rate: {of: deny, probability: 0.2, seed: 7}")));
    let calls = |seed: u64| said(&format!("rate: {{of: deny, probability: 0.5, seed: {seed}}}"), 50);
    assert_eq!(calls(7), calls(7));
    assert_ne!(calls(7), calls(8));
}

#[test]
fn delays_are_within_their_bounds() {
    let delays = |yaml: &str| -> Vec<Duration> {
        let behavior = behavior(yaml);
        (0..500).map(|nth| reply(act(&behavior, &Circumstances::for_call(nth), &review())).after).collect()
    };
    let millis = Duration::from_millis;
    assert!(delays("delay: {for: {fixed: 100ms}}").iter().all(|delay| *delay == millis(100)));
    let uniform = delays("delay: {for: {uniform: {from: 10ms, to: 20ms}}, seed: 3}");
    assert!(uniform.iter().all(|delay| (millis(10)..=millis(20)).contains(delay)));
    assert!(
        uniform.iter().any(|delay| *delay < millis(12)) && uniform.iter().any(|delay| *delay > millis(18))
    );
    let exponential = delays("delay: {for: {exponential: {mean: 50ms, most: 200ms}}}");
    assert!(exponential.iter().all(|delay| *delay <= millis(200)) && exponential.contains(&millis(200)));
    let mean = exponential.iter().sum::<Duration>() / 500;
    assert!((millis(42)..millis(58)).contains(&mean), "{mean:?}");
}

#[test]
fn side_effects_contain_placeholder_values() {
    let yaml =
        "side-effect: {write: {url: 'http://127.0.0.1:1/{namespace}', body: {name: 'x-{uid}'}}, then: deny}";
    let Act { answer, effects } = act(&behavior(yaml), &Circumstances::for_call(0), &review());
    let [Effect::SideEffect(Some(write))] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((write.url.as_str(), &write.body), ("http://127.0.0.1:1/demo", &json!({"name": "x-7"})));
    assert!(matches!(answer, Answer::Reply(reply) if reply.summary == "denied"));
}

#[test]
fn side_effects_happen_only_for_the_chosen_behavior() {
    let yaml = "when: {if: {dry-run: true}, then: allow, otherwise: side-effect}";
    assert_eq!(act(&behavior(yaml), &Circumstances::for_call(0), &review()).effects, []);
    let mut real = review();
    real["request"]["dryRun"] = json!(false);
    assert_eq!(act(&behavior(yaml), &Circumstances::for_call(0), &real).effects, [Effect::SideEffect(None)]);
}
