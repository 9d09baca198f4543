//! Generates random lists and watches after random writes.
//!
//! They vary in pages, resource versions, selectors, initial events, Tables, and metadata-only responses.
//!
//! Not covered: behavior of a real server that varies, such as its occasional bookmarks, and other objects in
//! collections of all namespaces.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::kinds;
use super::situation::{self, Generator, Situation, namespace};
use crate::random::Random;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const KINDS: [(usize, &str); 9] = [
    (30, "configmaps"),
    (30, "widgets"),
    (12, "pods"),
    (8, "secrets"),
    (6, "deployments"),
    (5, "horizontalpodautoscalers"),
    (3, "leases"),
    (3, "poddisruptionbudgets"),
    (3, "serviceaccounts"),
];
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

impl Situation {
    /// Creates a situation about lists and watches from `seed` and the situation's `number`.
    pub fn of_reads(seed: u64, number: u64) -> Self {
        let none = BTreeSet::new();
        let mut generator = Generator::new(seed, number, &none);
        Self { case: case(&mut generator), left_out: BTreeMap::new() }
    }
}

fn case(generator: &mut Generator<'_>) -> Value {
    let kind = generator.random.weighted(&KINDS);
    let mut cluster = vec![namespace("<ns>", Map::new())];
    if kind == "widgets" {
        cluster.push(widgets(&mut generator.random));
    }
    for name in NAMES {
        if generator.random.chance(25) {
            let mut object = made(generator, kind, name);
            object["metadata"]["namespace"] = json!("<ns>");
            cluster.push(object);
        }
    }
    let mut requests = vec![list(generator, kind, 0)];
    for _ in 0..generator.random.between(5, 11) {
        let next = match generator.random.below(10) {
            0..=4 => write(generator, kind),
            5..=7 => list(generator, kind, requests.len()),
            8 => single(generator, kind, requests.len()),
            _ => watch(generator, kind, requests.len()),
        };
        requests.push(next);
    }
    requests.push(watch(generator, kind, requests.len()));
    json!({"version": 1, "cluster": cluster, "requests": requests})
}

/// Returns the definition of the widgets, with columns and selectable fields.
fn widgets(random: &mut Random) -> Value {
    let stored = random.one_of(&["v1", "v2"]);
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {
        "spec": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"k": {"type": "string"}, "size": {"type": "integer"}},
        },
        "status": free,
    }});
    let columns = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "K", "type": "string", "jsonPath": ".spec.k", "priority": 1, "description": "the value"},
        {"name": "Seen", "type": "string", "jsonPath": ".status.seen"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    let has_columns = random.chance(70);
    let version = |name: &str| {
        let mut version = json!({
            "name": name, "served": true, "storage": name == stored, "schema": {"openAPIV3Schema": schema},
            "selectableFields": [{"jsonPath": ".spec.k"}, {"jsonPath": ".spec.size"}],
        });
        if has_columns && name == "v1" {
            version["additionalPrinterColumns"] = columns.clone();
        }
        version
    };
    situation::widgets(&[version("v1"), version("v2")])
}

fn made(generator: &mut Generator<'_>, kind: &str, name: &str) -> Value {
    let version = generator.random.one_of(kinds::versions(kind));
    let mut object = kinds::object(generator, kind, version);
    object["metadata"]["name"] = json!(name);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // The server warns about duplicate owners.
        metadata.remove("ownerReferences");
    }
    object
}

/// Returns a request for a resource, in one of its versions.
fn request(generator: &mut Generator<'_>, kind: &str, verb: &str) -> Value {
    let version = generator.random.one_of(kinds::versions(kind));
    json!({"verb": verb, "resource": kinds::resource(kind, version)})
}

fn write(generator: &mut Generator<'_>, kind: &str) -> Value {
    let name = generator.random.one_of(&NAMES);
    match generator.random.below(20) {
        0..=8 => {
            let version = generator.random.one_of(kinds::versions(kind));
            let mut body = kinds::object(generator, kind, version);
            body["metadata"]["name"] = json!(name);
            json!({"verb": "create", "resource": kinds::resource(kind, version), "name": name, "body": body})
        }
        9..=12 => {
            let mut request = request(generator, kind, "patch");
            let mut labels = generator.labels(80);
            if generator.random.chance(40) {
                labels.insert(generator.key().to_owned(), Value::Null);
            }
            request["name"] = json!(name);
            request["patch"] = json!("merge");
            request["body"] = json!({"metadata": {"labels": labels}});
            request
        }
        13 | 14 => {
            let mut request = request(generator, kind, "patch");
            request["name"] = json!(name);
            request["patch"] = json!("merge");
            request["body"] = kinds::change(generator, kind);
            request
        }
        // The deletion of a Pod is admitted two or three times.
        15..=18 if kind != "pods" => {
            let mut request = request(generator, kind, "delete");
            request["name"] = json!(name);
            request
        }
        _ => {
            let mut request = request(generator, kind, "deletecollection");
            if generator.random.chance(80) {
                request["query"]["labelSelector"] = json!(labels(generator));
            }
            request["unordered"] = json!(true);
            request
        }
    }
}

fn labels(generator: &mut Generator<'_>) -> &'static str {
    generator.random.one_of(&[
        "env",
        "!env",
        "env%3Da",
        "env!%3Da",
        "env+in+(a,b)",
        "team+notin+(a)",
        "env%3Da,team%3Db",
        "env%3D",
        "env%3E1",
    ])
}

fn fields(generator: &mut Generator<'_>, kind: &str) -> &'static str {
    let own: &[&str] = match kind {
        "widgets" => &["spec.k%3Da", "spec.k!%3Da", "spec.size%3D1", "spec.other%3Da", "spec.k%3D"],
        "pods" => &["status.phase%3DPending", "spec.nodeName%3D", "spec.restartPolicy!%3DAlways"],
        "secrets" => &["type%3DOpaque", "type!%3DOpaque"],
        _ => &["data.k%3Da", "spec.replicas%3D1"],
    };
    let common = [
        "metadata.name%3Da",
        "metadata.name!%3Da",
        "metadata.namespace%3D<ns>",
        "metadata.name%3Da,metadata.name%3Db",
    ];
    if generator.random.chance(50) { generator.random.one_of(own) } else { generator.random.one_of(&common) }
}

/// Adds selectors and the response format of a list or a watch.
fn options(generator: &mut Generator<'_>, kind: &str, request: &mut Value) {
    if generator.random.chance(35) {
        request["query"]["labelSelector"] = json!(labels(generator));
    }
    if generator.random.chance(20) {
        request["query"]["fieldSelector"] = json!(fields(generator, kind));
    }
    match generator.random.below(10) {
        0..=2 => {
            request["headers"]["accept"] = json!(TABLE);
            if generator.random.chance(50) {
                request["query"]["includeObject"] =
                    json!(generator.random.one_of(&["None", "Object", "Metadata", "All"]));
            }
        }
        3 => {
            let kind = if request["verb"] == "watch" || request.get("name").is_some() { "" } else { "List" };
            request["headers"]["accept"] =
                json!(format!("application/json;as=PartialObjectMetadata{kind};v=v1;g=meta.k8s.io"));
        }
        _ => {}
    }
}

/// Returns a reference to the `resourceVersion` of an earlier answer, or another `resourceVersion`.
fn version(generator: &mut Generator<'_>, earlier: usize) -> String {
    match generator.random.below(8) {
        0 | 1 => "0".to_owned(),
        2 => generator.random.one_of(&["", "a", "-1"]).to_owned(),
        _ if earlier > 0 => {
            format!("<resourceVersion of request {}>", generator.random.between(1, earlier))
        }
        _ => "0".to_owned(),
    }
}

fn list(generator: &mut Generator<'_>, kind: &str, earlier: usize) -> Value {
    let mut request = request(generator, kind, "get");
    if earlier == 0 {
        return request;
    }
    options(generator, kind, &mut request);
    if generator.random.chance(50) {
        request["query"]["limit"] = json!(generator.random.one_of(&["1", "2", "3", "2", "0", "-1", "x"]));
    }
    if generator.random.chance(35) {
        let number = generator.random.between(1, earlier);
        request["query"]["continue"] = json!(format!("<continue of request {number}>"));
    }
    if generator.random.chance(35) {
        request["query"]["resourceVersion"] = json!(version(generator, earlier));
        if generator.random.chance(60) {
            request["query"]["resourceVersionMatch"] =
                json!(generator.random.one_of(&["Exact", "NotOlderThan", "Exact", "NotOlderThan", "Other"]));
        }
    }
    request
}

fn single(generator: &mut Generator<'_>, kind: &str, earlier: usize) -> Value {
    let mut request = request(generator, kind, "get");
    request["name"] = json!(generator.random.one_of(&NAMES));
    options(generator, kind, &mut request);
    if generator.random.chance(30) {
        request["query"]["resourceVersion"] = json!(version(generator, earlier));
    }
    request
}

fn watch(generator: &mut Generator<'_>, kind: &str, earlier: usize) -> Value {
    let mut request = request(generator, kind, "watch");
    options(generator, kind, &mut request);
    if generator.random.chance(75) {
        request["query"]["resourceVersion"] = json!(version(generator, earlier));
    }
    if generator.random.chance(25) {
        let with_objects = generator.random.chance(65);
        request["query"]["sendInitialEvents"] = json!(with_objects.to_string());
        request["query"]["resourceVersionMatch"] = json!("NotOlderThan");
        // Bookmarks other than the one after the initial objects are sent at random.
        if with_objects {
            request["query"]["allowWatchBookmarks"] = json!("true");
        }
    } else if generator.random.chance(5) {
        request["query"]["resourceVersionMatch"] = json!("NotOlderThan");
    }
    request
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::of_reads(1, number));
    }
}
