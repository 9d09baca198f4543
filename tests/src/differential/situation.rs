//! Random situations: a case that nobody wrote.
//!
//! What a real server does is a matter of luck in two places, which are avoided: of several validating webhooks that may
//! refuse each waits a different time, and no webhook sees the cluster-scoped objects of other situations.

use serde_json::{Map, Value, json};

use super::behaviour;
use super::random::Random;

/// A kind of object that situations are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    ConfigMap,
    Secret,
    Deployment,
    Autoscaler,
    Widget,
}

/// The document of a situation, as a case has it.
pub(crate) fn situation(random: &mut Random) -> Value {
    let subject = match random.below(100) {
        0..55 => Subject::ConfigMap,
        55..65 => Subject::Secret,
        65..80 => Subject::Deployment,
        80..88 => Subject::Autoscaler,
        _ => Subject::Widget,
    };
    let mut cluster = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "<ns>", "labels": labels(random),
    }})];
    let has_second = random.chance(30);
    if has_second {
        cluster.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "b-<id>", "labels": labels(random),
        }}));
    }
    if subject == Subject::Widget {
        cluster.push(definition());
    }
    let mut risky = 0;
    let count = random.between(1, 6);
    let webhooks: Vec<Value> =
        (0..count).map(|number| webhook(random, number, subject, &mut risky)).collect();
    let count = random.between(2, 6);
    let requests: Vec<Value> =
        (0..count).map(|number| request(random, number, subject, has_second)).collect();
    json!({"version": 1, "cluster": cluster, "webhooks": webhooks, "requests": requests})
}

const KEYS: [&str; 3] = ["a", "b", "c"];
const VALUES: [&str; 3] = ["1", "2", ""];

pub(super) fn labels(random: &mut Random) -> Value {
    let count = random.below(3);
    let labels: Map<String, Value> =
        (0..count).map(|_| (random.pick(&KEYS).to_owned(), json!(random.pick(&VALUES)))).collect();
    Value::Object(labels)
}

fn selector(random: &mut Random) -> Value {
    if random.chance(40) {
        return json!({"matchLabels": labels(random)});
    }
    let count = random.between(1, 2);
    let expressions: Vec<Value> = (0..count)
        .map(|_| {
            let key = random.pick(&KEYS);
            match random.below(4) {
                0 => json!({"key": key, "operator": "In", "values": [random.pick(&VALUES)]}),
                1 => json!({"key": key, "operator": "NotIn", "values": [random.pick(&VALUES)]}),
                2 => json!({"key": key, "operator": "Exists"}),
                _ => json!({"key": key, "operator": "DoesNotExist"}),
            }
        })
        .collect();
    json!({"matchExpressions": expressions})
}

fn webhook(random: &mut Random, number: usize, subject: Subject, risky: &mut u64) -> Value {
    let is_mutating = random.chance(60);
    let (behaviour, is_risky) = behaviour::behaviour(random, is_mutating);
    let behaviour = if is_risky && !is_mutating {
        let wait = *risky * 250;
        *risky += 1;
        if wait == 0 {
            behaviour
        } else {
            json!({"timeout": {"hang": format!("{wait}ms"), "then": behaviour}})
        }
    } else {
        behaviour
    };
    let count = if random.chance(80) { 1 } else { 2 };
    let rules: Vec<Value> = (0..count).map(|_| rule(random, subject)).collect();
    let mut webhook = json!({
        "name": format!("w{number}"),
        "type": if is_mutating { "mutating" } else { "validating" },
        "configuration": random.pick(&["a", "b", "c"]),
        "behaviour": behaviour,
        "rules": rules,
    });
    if random.chance(50) {
        webhook["failurePolicy"] = json!("Ignore");
    }
    if random.chance(30) {
        webhook["matchPolicy"] = json!("Exact");
    }
    if is_mutating && random.chance(60) {
        webhook["reinvocationPolicy"] = json!("IfNeeded");
    }
    if random.chance(30) {
        webhook["objectSelector"] = selector(random);
    }
    if random.chance(20) {
        webhook["namespaceSelector"] = selector(random);
    }
    if random.chance(20) {
        webhook["admissionReviewVersions"] =
            random.pick(&[&["v1beta1"][..], &["v1beta1", "v1"], &["v9", "v1"]]).into();
    }
    if random.chance(20) {
        webhook["sideEffects"] = json!("NoneOnDryRun");
    }
    if random.chance(20) {
        webhook["timeoutSeconds"] = json!(random.between(5, 30));
    }
    if random.chance(5) {
        webhook["connection"] = json!("refused");
        webhook["behaviour"] = json!("allow");
        // It refuses as soon as it is called, so that it is the first if it is the only one.
        if !is_mutating {
            webhook["failurePolicy"] = json!("Ignore");
        }
    }
    webhook
}

fn rule(random: &mut Random, subject: Subject) -> Value {
    let operations = match random.below(6) {
        0..3 => json!(["*"]),
        3 => json!(["CREATE"]),
        4 => json!(["UPDATE", "DELETE"]),
        _ => json!(["CREATE", "UPDATE"]),
    };
    let (group, versions, resource) = match subject {
        Subject::ConfigMap => ("", &["v1", "v1", "*", "v2"][..], "configmaps"),
        Subject::Secret => ("", &["v1", "*"][..], "secrets"),
        Subject::Deployment => ("apps", &["v1", "*"][..], "deployments"),
        Subject::Autoscaler => ("autoscaling", &["v1", "v2", "*"][..], "horizontalpodautoscalers"),
        Subject::Widget => ("<id>.example.com", &["v1", "v2", "v3", "*"][..], "widgets"),
    };
    let resources = match random.below(10) {
        0..5 => json!([resource]),
        5 => json!(["*"]),
        6 => json!(["*/*"]),
        7 => json!([format!("{resource}/*")]),
        8 => json!([resource, format!("{resource}/status"), format!("{resource}/scale")]),
        _ => json!(["pods", resource]),
    };
    let mut rule = json!({
        "operations": operations, "apiGroups": [group], "apiVersions": [random.pick(versions)], "resources": resources,
    });
    if random.chance(20) {
        rule["scope"] = json!(random.pick(&["Namespaced", "Cluster", "*"]));
    }
    rule
}

fn request(random: &mut Random, number: usize, subject: Subject, has_second: bool) -> Value {
    let (resource, api_version, kind) = match subject {
        Subject::ConfigMap => ("configmaps", "v1", "ConfigMap"),
        Subject::Secret => ("secrets", "v1", "Secret"),
        Subject::Deployment => ("apps/v1/deployments", "apps/v1", "Deployment"),
        Subject::Autoscaler if random.chance(50) => {
            ("autoscaling/v1/horizontalpodautoscalers", "autoscaling/v1", "HorizontalPodAutoscaler")
        }
        Subject::Autoscaler => {
            ("autoscaling/v2/horizontalpodautoscalers", "autoscaling/v2", "HorizontalPodAutoscaler")
        }
        Subject::Widget if random.chance(50) => {
            ("<id>.example.com/v1/widgets", "<id>.example.com/v1", "Widget")
        }
        Subject::Widget => ("<id>.example.com/v2/widgets", "<id>.example.com/v2", "Widget"),
    };
    let name = random.pick(&["x", "y"]);
    let mut request = json!({"verb": "create", "resource": resource, "name": name});
    let object = || json!({"apiVersion": api_version, "kind": kind});
    let full = |random: &mut Random| {
        let mut object = object();
        object["metadata"] = json!({"labels": labels(random), "annotations": labels(random)});
        contents(random, subject, &mut object);
        object
    };
    match if number == 0 { 0 } else { random.below(10) } {
        0..4 => {
            request["body"] = full(random);
            if random.chance(10) {
                request["body"]["metadata"]["generateName"] = json!("made-");
                request["name"] = json!("");
            }
        }
        4 => {
            request["verb"] = json!("update");
            request["body"] = full(random);
            request["body"]["metadata"]["name"] = json!(name);
        }
        5 | 6 => {
            request["verb"] = json!("patch");
            if random.chance(50) {
                request["patch"] = json!("merge");
                request["body"] = json!({"metadata": {"labels": {random.pick(&KEYS): random.pick(&VALUES)}}});
            } else {
                request["patch"] = json!("json");
                let path = format!("/metadata/labels/{}", random.pick(&KEYS));
                request["body"] =
                    json!([{"op": random.pick(&["add", "remove", "replace"]), "path": path, "value": "1"}]);
            }
        }
        7 if subject == Subject::Deployment || subject == Subject::Widget => {
            request["verb"] = json!("patch");
            request["patch"] = json!("merge");
            request["subresource"] = json!("status");
            request["body"] = json!({"status": {"observedGeneration": random.between(1, 3)}});
        }
        7 if random.chance(30) => {
            request["verb"] = json!("deletecollection");
            request["unordered"] = json!(true);
            request["name"] = json!("");
        }
        _ => request["verb"] = json!("delete"),
    }
    if random.chance(10) {
        request["dryRun"] = json!(true);
    }
    if random.chance(10) {
        request["user"] = json!({"name": "bob", "groups": ["system:masters", "devs"]});
    }
    if has_second && random.chance(40) {
        request["namespace"] = json!("b-<id>");
    }
    request
}

fn contents(random: &mut Random, subject: Subject, object: &mut Value) {
    match subject {
        Subject::ConfigMap => object["data"] = labels(random),
        Subject::Secret => object["stringData"] = labels(random),
        Subject::Deployment => {
            object["spec"] = json!({
                "replicas": random.below(3),
                "selector": {"matchLabels": {"app": "d"}},
                "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}},
            });
        }
        Subject::Autoscaler => {
            object["spec"] = json!({
                "maxReplicas": random.between(1, 4),
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            });
        }
        Subject::Widget => object["spec"] = json!({"size": random.below(3), "parts": [labels(random)]}),
    }
}

fn definition() -> Value {
    let version = |name: &str, served: bool, storage: bool| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.<id>.example.com"},
        "spec": {
            "group": "<id>.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", true, true), version("v2", true, false), version("v3", false, false)],
        },
    })
}
