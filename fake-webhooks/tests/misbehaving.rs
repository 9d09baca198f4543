//! Tests the effects of misbehaving webhooks on concrete objects.
#![expect(clippy::indexing_slicing, reason = "a wrong index fails the test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_webhooks::{Act, Answer, Behavior, Circumstances, Effect, Family, Reply, act, catalog};
use serde_json::{Value, json};

/// Returns the behavior of a fault by ID or name.
fn fault(id: &str) -> Behavior {
    serde_json::from_value(json!({"fault": id})).unwrap()
}

fn review(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7", "operation": "CREATE", "namespace": "demo",
            "kind": {"group": "", "version": "v1", "kind": object["kind"]},
            "object": object,
        },
    })
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "other", "image": "other:1"}]},
    })
}

fn reply(act: Act) -> Reply {
    let Answer::Reply(reply) = act.answer else { panic!("{act:?}") };
    reply
}

fn response(act: Act) -> Value {
    serde_json::from_slice::<Value>(&reply(act).body).unwrap()["response"].take()
}

/// Returns the object after the patch in a response has been applied.
fn patched(response: &Value, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = response["patch"].as_str() {
        let operations = STANDARD.decode(patch).unwrap();
        json_patch::patch(&mut object, &serde_json::from_slice::<json_patch::Patch>(&operations).unwrap())
            .unwrap();
    }
    object
}

/// Returns the object after the given number of calls, each with the result of the previous one.
fn after(id: &str, calls: u64, object: &Value) -> Value {
    (0..calls).fold(object.clone(), |object, nth| {
        let response = response(act(&fault(id), &Circumstances::for_call(nth), &review(&object)));
        assert_eq!(response["allowed"], true, "{id}");
        patched(&response, &object)
    })
}

/// Returns the changes between two objects as a merge patch.
fn difference(before: &Value, after: &Value) -> Value {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let gone =
                before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
            let other =
                after.iter().filter(|(key, value)| before.get(*key) != Some(value)).map(|(key, value)| {
                    (key.clone(), difference(before.get(key).unwrap_or(&Value::Null), value))
                });
            gone.chain(other).collect()
        }
        _ => after.clone(),
    }
}

/// Checks the Pod after the first call and the changes of the second call, for each fault.
#[test]
fn mutations_of_the_first_and_second_call_are_as_expected() {
    let (web, other) =
        (json!({"name": "web", "image": "web:1"}), json!({"name": "other", "image": "other:1"}));
    let proxy = json!({"name": "proxy", "image": "example.com/proxy:1"});
    let sidecar = |name: &str| json!({"name": name, "image": "example.com/sidecar:1"});
    let containers = |containers: &[&Value]| json!({"spec": {"containers": containers}});
    let annotation = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    let label = |key: &str, value: &str| json!({"metadata": {"labels": {key: value}}});
    let nothing = json!({});
    let mount = json!([{"name": "token", "mountPath": "/var/run/token"}]);
    let mounted = |container: &Value| {
        let mut container = container.clone();
        container["volumeMounts"] = mount.clone();
        container
    };
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-2222-3333-4444-555555555555"});
    for (id, first, second) in [
        ("M01", &nothing, &nothing),
        ("M03", &label("always-mutate", "yes"), &nothing),
        ("M04-text", &annotation("non-idempotent", "x"), &annotation("non-idempotent", "xx")),
        (
            "M04-container",
            &containers(&[&web, &other, &sidecar("sidecar")]),
            &containers(&[&web, &other, &sidecar("sidecar"), &sidecar("sidecar-2")]),
        ),
        ("M05-timestamp", &annotation("injected-at", "1970-01-01T00:00:00Z"), &nothing),
        ("M07-true", &label("duel", "true"), &nothing),
        ("M07-false", &label("duel", "false"), &nothing),
        ("M08", &nothing, &nothing),
        ("M09", &containers(&[&web]), &nothing),
        ("M10-whole", &containers(&[&web, &other, &proxy]), &nothing),
        ("M10-own", &containers(&[&web, &proxy]), &nothing),
        ("M11", &nothing, &nothing),
        ("M12-reversed", &containers(&[&other, &web]), &containers(&[&web, &other])),
        ("M12-sorted", &containers(&[&other, &web]), &nothing),
        ("M13-generated", &nothing, &nothing),
        ("M13-renamed", &json!({"metadata": {"name": "renamed"}}), &nothing),
        ("M14", &label("inject", "true"), &label("inject", "false")),
        ("M15", &json!({"spec": {"priorityClassName": "no-such-class"}}), &nothing),
        (
            "M16",
            &json!({"spec": {
                "containers": [mounted(&web), mounted(&other)], "volumes": [{"name": "token", "emptyDir": {}}],
            }}),
            &nothing,
        ),
        ("M17", &nothing, &nothing),
        ("M18", &label("always-mutate", "yes"), &nothing),
        ("M19", &json!({"metadata": {"annotations": {"one": "1", "two": "2", "three": "3"}}}), &nothing),
        ("M20", &nothing, &nothing),
        ("M21", &nothing, &nothing),
        ("M25", &nothing, &nothing),
        ("M26", &nothing, &nothing),
        ("M27-managed-fields", &nothing, &nothing),
        ("M27-creation-timestamp", &annotation("created", ""), &nothing),
        ("M28", &json!({"status": {"phase": "Running"}}), &nothing),
        ("M29-finalizer", &nothing, &nothing),
        ("M29-deny", &nothing, &nothing),
        (
            "M30-owner-references",
            &json!({"metadata": {"ownerReferences": [owner, owner]}}),
            &json!({"metadata": {"ownerReferences": [owner, owner, owner, owner]}}),
        ),
        (
            "M30-managed-fields",
            &json!({"metadata": {"managedFields": [
                {"manager": "nobody", "operation": "Nothing", "fieldsType": "none"},
            ]}}),
            &nothing,
        ),
    ] {
        let once = after(id, 1, &pod());
        assert_eq!(&difference(&pod(), &once), first, "{id}, first call");
        assert_eq!(&difference(&once, &after(id, 2, &pod())), second, "{id}, second call");
    }
}

/// Calls each fault that depends on the object, with an object that triggers it.
#[test]
fn object_dependent_faults_use_the_object() {
    let labeled = json!({"metadata": {"name": "web", "labels": {"always-mutate": "yes", "inject": "true"}}});
    let managed = json!({"metadata": {
        "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "kubectl"}],
    }});
    let generated = json!({"metadata": {"generateName": "web-"}});
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a"]}});
    let injected = json!({
        "spec": {"containers": [{"name": "late"}], "volumes": [{"name": "token", "emptyDir": {}}]},
    });
    let newer = json!({
        "kind": "Pod",
        "metadata": {"name": "web", "sentinel": 1},
        "spec": {
            "initContainers": [{"name": "a", "restartPolicy": "Always"}],
            "containers": [{"name": "b", "env": [{"name": "X", "new": 1}], "livenessProbe": {"grpc": {"port": 1}}}],
            "schedulingGates": [],
        },
    });
    for (id, object, change) in [
        ("M08", &labeled, json!({"metadata": {"annotations": {"followed": "yes"}}})),
        ("M14", &labeled, json!({"metadata": {"labels": {"inject": "false"}}})),
        ("M27-managed-fields", &managed, json!({"metadata": {"annotations": {"managed-by": "kubectl"}}})),
        (
            "M27-creation-timestamp",
            &managed,
            json!({"metadata": {"annotations": {"created": "2026-01-01T00:00:00Z"}}}),
        ),
        ("M29-finalizer", &deleted, json!({"metadata": {"finalizers": ["a", "example.com/again"]}})),
        ("M16", &injected, json!({})),
        (
            "M11",
            &newer,
            json!({
                "metadata": {"sentinel": null},
                "spec": {
                    "initContainers": [{"name": "a"}],
                    "containers": [{"name": "b", "env": [{"name": "X"}], "livenessProbe": {}}],
                    "schedulingGates": null,
                },
            }),
        ),
    ] {
        assert_eq!(difference(object, &after(id, 1, object)), change, "{id}");
    }
    let name = after("M13-generated", 1, &generated)["metadata"]["name"].clone();
    assert!(name.as_str().unwrap().starts_with("web-") && name.as_str().unwrap().len() == 9, "{name}");
}

#[track_caller]
fn says(id: &str, at: &Circumstances, review: &Value, expected: &str) {
    assert_eq!(reply(act(&fault(id), at, review)).summary, expected, "{id}");
}

#[test]
fn verdicts_depend_on_the_documented_properties() {
    let first = Circumstances::for_call(0);
    says("M02", &first, &review(&pod()), "denied");
    says("M06", &first, &review(&after("M06", 1, &pod())), "denied: it is injected already");
    let mut old = review(&pod());
    old["apiVersion"] = json!("admission.k8s.io/v1beta1");
    says("M20", &first, &old, "denied: not in v1beta1");
    let mut scaler = review(&pod());
    scaler["request"]["kind"] =
        json!({"group": "autoscaling", "version": "v1", "kind": "HorizontalPodAutoscaler"});
    says("M21", &first, &scaler, "denied: not in autoscaling/v1");
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    says("M29-deny", &first, &review(&deleted), "denied: it is being deleted");
}

#[test]
fn slow_flaky_and_recovering_faults_depend_on_the_call_number() {
    let pod = review(&pod());
    let calls = |id: &str, count: u64| -> Vec<String> {
        let summary = |nth| reply(act(&fault(id), &Circumstances::for_call(nth), &pod)).summary;
        (0..count).map(summary).collect()
    };
    assert_eq!(calls("M22", 4), ["allowed", "allowed", "allowed after 1.5s", "allowed"]);
    let error = "bad response: HTTP status 500";
    assert_eq!(calls("M24", 4), [error, error, "allowed", "allowed"]);
    let flaky = calls("M23", 1_000);
    assert!((450..550).contains(&flaky.iter().filter(|summary| *summary == "allowed").count()));
    assert_eq!(flaky, calls("M23", 1_000));
}

#[test]
fn random_names_and_orders_differ_between_calls() {
    let random = |nth| {
        let response =
            response(act(&fault("M05-random-name"), &Circumstances::for_call(nth), &review(&pod())));
        patched(&response, &pod())["spec"]["containers"][2]["name"].clone()
    };
    assert!(random(0).as_str().unwrap().starts_with("proxy-"));
    assert_ne!(random(0), random(1));
    let orders: std::collections::BTreeSet<_> = (0..50)
        .map(|nth| {
            response(act(&fault("M19"), &Circumstances::for_call(nth), &review(&pod())))["patch"].to_string()
        })
        .collect();
    assert_eq!(orders.len(), 6);
}

#[test]
fn side_effects_and_mixed_up_uids_are_returned_with_the_response() {
    let act_of = |id: &str, at: &Circumstances| act(&fault(id), at, &review(&pod()));
    let first = Circumstances::for_call(0);
    for id in ["M17", "M18"] {
        assert_eq!(act_of(id, &first).effects, [Effect::SideEffect(None)], "{id}");
    }
    assert_eq!(act_of("M25", &first).effects, [Effect::Leak { bytes: 65_536, most: 16_777_216 }]);
    assert_eq!(response(act_of("M26", &first))["uid"], "7");
    let second = Circumstances { other_uid: Some("8".to_owned()), ..first };
    assert_eq!(response(act_of("M26", &second))["uid"], "8");
}

#[test]
fn misbehavior_is_deterministic() {
    let mut seen = 0;
    for fault in catalog() {
        let Ok(behavior) = serde_json::from_value::<Behavior>(json!({"fault": fault.id})) else {
            assert!(
                ![Family::Misbehaving, Family::Envelope, Family::Denials, Family::Patch]
                    .contains(&fault.family)
            );
            continue;
        };
        for nth in 0..5 {
            let at = Circumstances { seen: nth % 2, ..Circumstances::for_call(nth) };
            assert_eq!(
                act(&behavior, &at, &review(&pod())),
                act(&behavior, &at, &review(&pod())),
                "{}",
                fault.id
            );
        }
        seen += 1;
    }
    assert!(seen > 120, "{seen}");
}
