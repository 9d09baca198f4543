//! Generates random object fields for server-side apply, for each kind and version.
//!
//! The lists have all types that server-side apply supports. There are only a few values, so that the fields of
//! different managers overlap.

use serde_json::{Map, Value, json};

use super::situation::{self, GROUP};
use crate::random::Random;

/// The kinds, with their weights.
pub(super) const KINDS: [(usize, &str); 10] = [
    (16, "configmaps"),
    (24, "widgets"),
    (8, "gadgets"),
    (16, "deployments"),
    (10, "services"),
    (8, "horizontalpodautoscalers"),
    (5, "serviceaccounts"),
    (4, "secrets"),
    (4, "poddisruptionbudgets"),
    (5, "pods"),
];

/// Returns the API version and kind for a resource, in one of its served versions.
pub(super) fn version_and_kind(random: &mut Random, resource: &str) -> (String, &'static str) {
    let (group, kind) = match resource {
        "widgets" => (GROUP, "Widget"),
        "gadgets" => (GROUP, "Gadget"),
        "deployments" => ("apps", "Deployment"),
        "services" => ("", "Service"),
        "horizontalpodautoscalers" => ("autoscaling", "HorizontalPodAutoscaler"),
        "serviceaccounts" => ("", "ServiceAccount"),
        "secrets" => ("", "Secret"),
        "poddisruptionbudgets" => ("policy", "PodDisruptionBudget"),
        "pods" => ("", "Pod"),
        _ => ("", "ConfigMap"),
    };
    let version = match resource {
        "widgets" | "horizontalpodautoscalers" => random.one_of(&["v1", "v2"]),
        _ => "v1",
    };
    (if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }, kind)
}

/// Returns the fields of an object without its metadata. If `whole` is set, the object is valid on its own.
pub(super) fn fields(random: &mut Random, resource: &str, api_version: &str, whole: bool) -> Value {
    match resource {
        "widgets" => json!({"spec": of_a_widget(random)}),
        "gadgets" => {
            json!({"spec": {"k": value(random), "list": random.some_of(&["a", "b"])}, "more": {"a": value(random)}})
        }
        "deployments" => json!({"spec": of_a_deployment(random, whole)}),
        "services" => json!({"spec": of_a_service(random, whole)}),
        "horizontalpodautoscalers" => json!({"spec": of_an_autoscaler(random, api_version)}),
        "serviceaccounts" => json!({
            "secrets": list(random, &["a", "b", "c"], |_, name| json!({"name": name})),
            "imagePullSecrets": list(random, &["a", "b"], |_, name| json!({"name": name})),
            "automountServiceAccountToken": random.chance(50),
        }),
        "secrets" => random.one_of(&[
            json!({"data": {"a": "YQ==", "b": "Yg=="}}),
            json!({"data": {"a": "Yg=="}}),
            json!({"stringData": {"a": "c"}}),
            json!({"type": "Opaque", "data": {"b": "YQ=="}}),
        ]),
        "poddisruptionbudgets" => json!({"spec": of_a_budget(random)}),
        "pods" => json!({"spec": of_a_pod_alone(random, whole)}),
        _ => {
            let members = json!({"data": some(random, &["a", "b", "c"]), "binaryData": {"z": "YQ=="}});
            drawn(random, 65, members)
        }
    }
}

/// Returns a status for a write to the status subresource; `None` if the resource does not have a status.
pub(super) fn status(random: &mut Random, resource: &str) -> Option<Value> {
    let conditions = list(random, &["A", "B"], |random, name| {
        json!({
            "type": name, "status": random.one_of(&["True", "False"]), "reason": "R", "message": "",
            "lastTransitionTime": "2020-01-01T00:00:00Z",
        })
    });
    Some(match resource {
        "widgets" => json!({"conditions": conditions, "replicas": random.below(3)}),
        "deployments" => json!({"conditions": conditions, "observedGeneration": random.below(2)}),
        "services" => json!({"conditions": conditions}),
        _ => return None,
    })
}

fn value(random: &mut Random) -> &'static str {
    random.one_of(&["1", "2", "3"])
}

/// Returns some of the `keys`, with random values.
pub(super) fn some(random: &mut Random, keys: &[&str]) -> Map<String, Value> {
    random.some_of(keys).into_iter().map(|key| (key.to_owned(), json!(value(random)))).collect()
}

/// Returns an entry for each of some random names, in the given order or reversed.
fn list(random: &mut Random, names: &[&str], entry: impl Fn(&mut Random, &str) -> Value) -> Vec<Value> {
    let mut names = random.some_of(names);
    if random.chance(30) {
        names.reverse();
    }
    names.into_iter().map(|name| entry(random, name)).collect()
}

fn of_a_budget(random: &mut Random) -> Value {
    let selector = json!({"matchLabels": {"a": value(random)}});
    random.one_of(&[
        json!({"minAvailable": 1, "selector": selector}),
        json!({"minAvailable": "50%", "selector": selector}),
        json!({"selector": selector}),
        json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"}),
        json!({"unhealthyPodEvictionPolicy": "IfHealthyBudget"}),
    ])
}

/// Returns the mutable fields of a Pod and, if `whole` is set, the required fields.
fn of_a_pod_alone(random: &mut Random, whole: bool) -> Value {
    let mut container = json!({"name": "c0"});
    if whole || random.chance(50) {
        container["image"] = json!(random.one_of(&["example.com/c:1", "example.com/c:2"]));
    }
    json!({"containers": [container]})
}

/// Returns a random selection of `members`, each with a probability of `percent`.
fn drawn(random: &mut Random, percent: usize, members: Value) -> Value {
    let Value::Object(members) = members else { return members };
    Value::Object(members.into_iter().filter(|_| random.chance(percent)).collect())
}

fn of_a_widget(random: &mut Random) -> Value {
    let members = json!({
        "replicas": random.below(3),
        "set": list(random, &["a", "b", "c"], |_, name| json!(name)),
        "numbers": list(random, &["1", "2", "3"], |_, name| json!(name.parse::<u8>().unwrap_or_default())),
        "map": list(random, &["x", "y", "z"], entry),
        "atomic": list(random, &["a", "b"], |_, name| json!({"a": name})),
        "plain": list(random, &["a", "b"], |_, name| json!(name)),
        "whole": some(random, &["a", "b"]),
        "labels": some(random, &["a", "b", "c"]),
        "free": {"f": some(random, &["a", "b"]), "list": random.some_of(&[1, 2])},
        "any": random.one_of(&[json!(1), json!("a"), json!({"a": 1, "b": {"c": 2}}), json!([1]), json!([{"name": "a"}])]),
        "port": random.one_of(&[json!(80), json!("80")]),
        "text": value(random),
        "nullable": random.one_of(&[json!(null), json!("a"), json!("b")]),
        "nested": {"inner": list(random, &["x", "y"], |random, name| json!({
            "name": name, "set": random.some_of(&["a", "b"]), "labels": some(random, &["a", "b"]),
        }))},
        "embedded": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e", "labels": some(random, &["a", "b"])},
            "data": some(random, &["a", "b"]),
        },
    });
    drawn(random, 22, members)
}

/// Returns an entry of a list that has two keys. One key has a default.
fn entry(random: &mut Random, name: &str) -> Value {
    let mut entry = json!({"name": name});
    if random.chance(35) {
        entry["kind"] = json!(random.one_of(&["usual", "other"]));
    }
    if random.chance(60) {
        entry["value"] = json!(random.below(3));
    }
    if random.chance(30) {
        entry["list"] = json!(random.some_of(&["a", "b"]));
    }
    entry
}

/// Returns the definition of the widgets: two versions with equal schemas that have lists and maps of every type.
pub(super) fn widgets(random: &mut Random) -> Value {
    let stored = random.one_of(&["v1", "v2"]);
    let text = json!({"type": "string"});
    let texts = |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "items": text});
    let of_texts = json!({"type": "object", "additionalProperties": text});
    let spec = json!({
        "replicas": {"type": "integer"},
        "set": texts("set"),
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "map": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "kind"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": text, "kind": {"type": "string", "default": "usual"}, "value": {"type": "integer"},
                "list": {"type": "array", "items": text},
            }},
        },
        "atomic": {
            "type": "array", "x-kubernetes-list-type": "atomic",
            "items": {"type": "object", "properties": {"a": text}},
        },
        "plain": {"type": "array", "items": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text, "b": text}},
        "labels": of_texts,
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "port": {"x-kubernetes-int-or-string": true},
        "text": {"type": "string", "default": "default"},
        "nullable": {"type": "string", "nullable": true},
        "nested": {"type": "object", "properties": {"inner": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": text, "set": texts("set"), "labels": of_texts,
            }},
        }}},
        "embedded": {
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        },
    });
    let status = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "conditions": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {
                "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text,
            }},
        },
    }});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": status}});
    let has_status = random.chance(75);
    let has_scale = random.chance(50);
    let version = |name: &str| {
        let mut version = json!({
            "name": name, "served": true, "storage": name == stored, "schema": {"openAPIV3Schema": schema},
        });
        if has_status {
            version["subresources"]["status"] = json!({});
        }
        if has_scale {
            version["subresources"]["scale"] =
                json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
        }
        version
    };
    situation::widgets(&[version("v1"), version("v2")])
}

fn of_a_deployment(random: &mut Random, whole: bool) -> Value {
    let mut spec = json!({
        "replicas": random.below(3),
        "paused": random.chance(50),
        "minReadySeconds": random.below(2),
        "strategy": random.one_of(&[
            json!({"type": "RollingUpdate"}),
            json!({"type": "Recreate"}),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}),
        ]),
    });
    spec = drawn(random, 40, spec);
    if whole || random.chance(75) {
        let mut template = json!({"spec": of_a_pod(random, whole)});
        if whole {
            template["metadata"]["labels"] = json!({"app": "a"});
        }
        if random.chance(30) {
            template["metadata"]["labels"]["b"] = json!(value(random));
        }
        if random.chance(20) {
            template["metadata"]["annotations"] = json!(some(random, &["a", "b"]));
        }
        spec["template"] = template;
    }
    if whole {
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
    }
    spec
}

fn of_a_pod(random: &mut Random, whole: bool) -> Value {
    let names = if whole { vec!["c0"] } else { random.some_of(&["c0", "c1"]) };
    let containers: Vec<Value> = names.into_iter().map(|name| container(random, name, whole)).collect();
    let members = json!({
        "tolerations": list(random, &["a", "b"], |_, key| json!({"key": key, "operator": "Exists"})),
        "nodeSelector": some(random, &["a", "b"]),
        "hostAliases": [{"ip": "1.2.3.4", "hostnames": random.some_of(&["a", "b"])}],
        "securityContext": {"runAsUser": random.between(1, 3)},
        "volumes": list(random, &["v", "w"], |random, name| random.one_of(&[
            json!({"name": name, "emptyDir": {}}), json!({"name": name, "configMap": {"name": "a"}}),
        ])),
        "terminationGracePeriodSeconds": random.between(1, 2),
    });
    let mut spec = drawn(random, 20, members);
    spec["containers"] = json!(containers);
    spec
}

fn container(random: &mut Random, name: &str, whole: bool) -> Value {
    let members = json!({
        "ports": list(random, &["80", "81"], |random, port| {
            let mut port = json!({"containerPort": port.parse::<u16>().unwrap_or_default()});
            if random.chance(40) {
                port["protocol"] = json!(random.one_of(&["TCP", "UDP"]));
            }
            port
        }),
        "env": list(random, &["A", "B", "C"], |random, name| random.one_of(&[
            json!({"name": name, "value": "1"}), json!({"name": name, "value": "2"}), json!({"name": name}),
            json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
        ])),
        "args": random.some_of(&["a", "b"]),
        "resources": {
            "requests": {"cpu": random.one_of(&[json!("100m"), json!("0.1"), json!("200m")])},
            "limits": {"cpu": random.one_of(&[json!("1"), json!(1), json!("1000m")])},
        },
        "readinessProbe": {"httpGet": {"port": random.one_of(&[json!(80), json!("http")])}},
        "imagePullPolicy": random.one_of(&["Always", "Never"]),
        "securityContext": {"capabilities": {"add": random.some_of(&["A", "B"])}},
    });
    let mut container = drawn(random, 25, members);
    container["name"] = json!(name);
    if whole || random.chance(60) {
        container["image"] = json!(random.one_of(&["example.com/c:1", "example.com/c:1", "example.com/c:2"]));
    }
    container
}

fn of_a_service(random: &mut Random, whole: bool) -> Value {
    let ports = list(random, &["80", "81", "82"], |random, port| {
        let number: u16 = port.parse().unwrap_or_default();
        let mut entry = json!({"port": number, "name": format!("p{port}")});
        if random.chance(50) {
            entry["protocol"] = json!(random.one_of(&["TCP", "UDP"]));
        }
        if random.chance(50) {
            entry["targetPort"] = random.one_of(&[json!(8080), json!("http")]);
        }
        entry
    });
    let members = json!({
        "selector": some(random, &["a", "b"]),
        "sessionAffinity": "None",
        "publishNotReadyAddresses": random.chance(50),
        "internalTrafficPolicy": random.one_of(&["Cluster", "Local"]),
    });
    let mut spec = drawn(random, 35, members);
    if whole || random.chance(75) {
        spec["ports"] = json!(ports);
    }
    if whole || random.chance(20) {
        spec["clusterIP"] = json!("None");
    }
    spec
}

/// Returns the fields of an autoscaler, always including the required fields.
fn of_an_autoscaler(random: &mut Random, api_version: &str) -> Value {
    let mut spec = drawn(random, 50, json!({"minReplicas": 1}));
    let name = random.one_of(&["x", "y"]);
    spec["maxReplicas"] = json!(random.between(2, 4));
    spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    if random.chance(50) {
        if api_version.ends_with("v1") {
            spec["targetCPUUtilizationPercentage"] = json!(random.one_of(&[50, 60]));
        } else {
            let names = random.some_of(&["cpu", "memory"]);
            let metrics = names.into_iter().map(|name| json!({"type": "Resource", "resource": {
                "name": name, "target": {"type": "Utilization", "averageUtilization": random.one_of(&[50, 60])},
            }}));
            spec["metrics"] = metrics.collect();
        }
    }
    spec
}
