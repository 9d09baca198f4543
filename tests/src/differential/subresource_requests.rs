//! Generates random requests for subresources of all kinds.
//!
//! The requests use all verbs, including those that a subresource does not support.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fields::{self, KNOWN, Subject};
use super::situation::{self, GROUP, Situation, namespace};
use crate::names::CASE_LABEL;
use crate::random::Random;

const NAME: &str = "o-<id>";
/// The resources that situations do not write.
///
/// kube-apiserver stores a new version of some of them although nothing changed, for an unknown reason. Others are
/// changed by other components.
const EXCLUDED: [&str; 3] =
    ["persistentvolumeclaims", "namespaces", "apiextensions.k8s.io/v1/customresourcedefinitions"];
/// The resources that have a scale subresource.
const SCALED: [&str; 4] =
    ["apps/v1/deployments", "apps/v1/replicasets", "apps/v1/statefulsets", "replicationcontrollers"];

impl Situation {
    /// Creates a situation about subresources from `seed` and the situation's `number`.
    pub fn of_subresources(seed: u64, number: u64) -> Self {
        Self { case: case(&mut Random::new(seed, number)), left_out: BTreeMap::new() }
    }
}

/// Returns a request without a body for a subresource or, if it is empty, for the object.
fn bodiless(subject: &Subject, verb: &str, subresource: &str) -> Value {
    let mut request = fields::bodiless(subject, verb, NAME);
    if !subresource.is_empty() {
        request["subresource"] = json!(subresource);
    }
    request
}

fn case(random: &mut Random) -> Value {
    let mut cluster = vec![namespace("<ns>", Map::new())];
    let subject = if random.chance(30) {
        cluster.push(widgets(random));
        Subject {
            resource: format!("{GROUP}/v1/widgets"),
            namespace: None,
            object: json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "spec": {"size": 1, "k": "a"}}),
        }
    } else {
        let subjects: Vec<&Subject> =
            KNOWN.1.iter().filter(|subject| !EXCLUDED.contains(&subject.resource.as_str())).collect();
        let scaled: Vec<&Subject> =
            subjects.iter().copied().filter(|it| SCALED.contains(&it.resource.as_str())).collect();
        let pods: Vec<&Subject> = subjects.iter().copied().filter(|it| it.resource == "pods").collect();
        let chosen = match random.below(10) {
            0..=2 => random.one_of(&scaled),
            3 | 4 => random.one_of(&pods),
            _ => random.one_of(&subjects),
        };
        chosen.clone()
    };
    let mut created = fields::request(&subject, "create", NAME, &subject.object);
    created["body"]["metadata"]["labels"] = json!({CASE_LABEL: "<id>"});
    let mut requests = if random.chance(90) { vec![created] } else { Vec::new() };
    for _ in 0..random.between(3, 7) {
        let mut next = request(random, &subject);
        if random.chance(12) {
            next["dryRun"] = json!(true);
        }
        requests.push(next);
    }
    if random.chance(50) {
        requests.push(bodiless(&subject, "get", ""));
    }
    json!({"version": 1, "managedFields": true, "cluster": cluster, "requests": requests})
}

/// Returns the definition of the widgets, with both subresources, one of them, or none.
fn widgets(random: &mut Random) -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}},
    });
    if random.chance(80) {
        version["subresources"]["status"] = json!({});
    }
    if random.chance(70) {
        version["subresources"]["scale"] = random.one_of(&[
            json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}),
            json!({
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            }),
        ]);
    }
    situation::widgets(&[version])
}

fn request(random: &mut Random, subject: &Subject) -> Value {
    let is_pod = subject.resource == "pods";
    match random.below(20) {
        0..=8 => write(random, subject, "status"),
        9..=13 => write(random, subject, "scale"),
        14 if is_pod => write(random, subject, "ephemeralcontainers"),
        15 if is_pod => write(random, subject, "resize"),
        16 if is_pod => eviction(random, subject),
        14 | 15 => {
            let subresource =
                random.one_of(&["status", "scale", "approval", "finalize", "bogus", "status/x", "token"]);
            let verb = random.one_of(&["get", "create", "delete", "update", "patch"]);
            let mut request = bodiless(subject, verb, subresource);
            if ["create", "update", "patch"].contains(&verb) {
                request["body"] = json!({"metadata": {"name": NAME}});
            }
            if verb == "patch" {
                request["patch"] = json!("merge");
            }
            request
        }
        16 => bodiless(subject, "get", random.one_of(&["status", "scale"])),
        _ => write(random, subject, ""),
    }
}

fn eviction(random: &mut Random, subject: &Subject) -> Value {
    let mut request = bodiless(subject, "create", "eviction");
    let name = random.one_of(&[NAME, NAME, "", "other"]);
    request["body"] = json!({
        "apiVersion": random.one_of(&["policy/v1", "policy/v1beta1", "v1"]), "kind": "Eviction",
        "metadata": {"name": name},
    });
    if random.chance(40) {
        request["body"]["deleteOptions"] = random.one_of(&[
            json!({"gracePeriodSeconds": 0}),
            json!({"dryRun": ["All"]}),
            json!({"preconditions": {"uid": "other"}}),
            json!({"propagationPolicy": "Orphan"}),
        ]);
    }
    request
}

/// Returns an update, a patch, or a read of a subresource or, if it is empty, of the object.
fn write(random: &mut Random, subject: &Subject, subresource: &str) -> Value {
    let body = if subresource == "scale" { scale(random) } else { body(random, subject, subresource) };
    let verb = random.weighted(&[(10, "get"), (25, "update"), (62, "patch"), (3, "delete")]);
    // Deleting an object, or a Pod, is a subject of its own.
    let verb = if subresource.is_empty() && verb == "delete" { "get" } else { verb };
    let mut request = bodiless(subject, verb, subresource);
    match verb {
        "update" => {
            request["body"] = if subresource == "scale" {
                body
            } else {
                let mut whole = subject.object.clone();
                merge(&mut whole, &body);
                whole
            };
        }
        "patch" => {
            let format = random.weighted(&[(35, "merge"), (20, "strategic"), (20, "json"), (25, "apply")]);
            request["patch"] = json!(format);
            request["body"] = match format {
                "json" => operations(random, &body),
                _ => body,
            };
            if format == "apply" {
                if subresource != "scale" {
                    for field in ["apiVersion", "kind"] {
                        request["body"][field] = subject.object[field].clone();
                    }
                }
                request["query"]["fieldManager"] = json!(random.one_of(&["a", "b"]));
                if random.chance(60) {
                    request["query"]["force"] = json!("true");
                }
            }
        }
        _ => {}
    }
    request
}

fn merge(place: &mut Value, value: &Value) {
    match (place.as_object_mut(), value.as_object()) {
        (Some(place), Some(value)) => {
            for (name, value) in value {
                merge(place.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        _ => place.clone_from(value),
    }
}

/// Returns a JSON Patch that adds the members of the body.
fn operations(random: &mut Random, body: &Value) -> Value {
    let members = body
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    let mut operations: Vec<Value> = members
        .map(|(name, value)| {
            let op = random.one_of(&["add", "add", "replace", "test"]);
            json!({"op": op, "path": format!("/{name}"), "value": value})
        })
        .collect();
    if random.chance(20) || operations.is_empty() {
        operations.push(json!({"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}));
    }
    json!(operations)
}

fn scale(random: &mut Random) -> Value {
    // A Scale of another version, and a number of a wrong type, are errors whose messages contain the whole object.
    let replicas = random.one_of(&[json!(0), json!(2), json!(3), json!(-1), json!(null)]);
    let mut scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": random.one_of(&[NAME, NAME, NAME, "other"])}, "spec": {"replicas": replicas},
    });
    if random.chance(15) {
        scale["metadata"]["resourceVersion"] = json!(random.one_of(&["1", "0", "x"]));
    }
    if random.chance(10) {
        scale["metadata"]["uid"] = json!("other");
    }
    if random.chance(15) {
        scale["metadata"]["labels"] = json!({"a": "b"});
    }
    if random.chance(15) {
        scale["status"] = json!({"replicas": 5, "selector": "a=b"});
    }
    if random.chance(10)
        && let Some(members) = scale.as_object_mut()
    {
        members.remove("spec");
    }
    scale
}

/// Returns the fields to change: the status, and sometimes metadata and the spec.
///
/// A subresource may ignore some of these fields.
fn body(random: &mut Random, subject: &Subject, subresource: &str) -> Value {
    let mut body = json!({"metadata": {"name": NAME}});
    if subresource.is_empty() || random.chance(25) {
        body["metadata"]["labels"] = json!({CASE_LABEL: "<id>", "a": random.one_of(&["1", "2"])});
    }
    if random.chance(15) {
        body["metadata"]["annotations"] = json!({"a": random.one_of(&["1", "2"])});
    }
    if random.chance(8) {
        body["metadata"]["finalizers"] = json!(["example.com/keep"]);
    }
    if random.chance(8) {
        body["metadata"]["resourceVersion"] = json!(random.one_of(&["1", "0", "x", ""]));
    }
    if random.chance(5) {
        body["metadata"]["uid"] = json!("other");
    }
    match subresource {
        "ephemeralcontainers" => {
            let containers = json!([{"name": random.one_of(&["d", "e", "c0"]), "image": "example.com/d:1"}]);
            body["spec"] = json!({"ephemeralContainers": containers});
        }
        "resize" => {
            let cpu = random.one_of(&["1", "100m", "2"]);
            body["spec"] = json!({"containers": [{"name": "c0", "resources": {"requests": {"cpu": cpu}}}]});
        }
        _ => {
            if random.chance(80) {
                body["status"] = status(random);
            }
            if random.chance(15) && subject.resource.ends_with("widgets") {
                body["spec"] = json!({"size": random.below(4), "k": "b"});
            }
        }
    }
    body
}

fn status(random: &mut Random) -> Value {
    let condition = json!({
        "type": random.one_of(&["A", "B"]), "status": random.one_of(&["True", "False"]), "reason": "R", "message": "m",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    });
    random.one_of(&[
        json!({"conditions": [condition]}),
        json!({"conditions": []}),
        json!({"replicas": 1}),
        json!({"observedGeneration": 1}),
        json!({"phase": "Running"}),
        json!({"size": 2, "selector": "a=b"}),
        json!({"bogus": 1}),
        json!({}),
        json!(null),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::of_subresources(1, number));
    }
}
