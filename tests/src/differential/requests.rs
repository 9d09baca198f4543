//! Random requests, most of them for objects that are there.
//!
//! Left alone is what a real server does in no fixed way: the deletion of pods, which are admitted two or three times,
//! and namespaces with objects in them whose labels change, which are seen by webhooks some time later.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::situation::{GROUP, Generator, namespace};
use crate::names::CASE_LABEL;

/// The objects that are there by now, unless a webhook stood in the way.
#[derive(Debug, Default)]
pub(crate) struct Known {
    objects: BTreeSet<(&'static str, String, &'static str)>,
}

const NAMES: [&str; 3] = ["x", "y", "z"];
/// The namespace that requests make, change and delete.
const THIRD: &str = "<id>-three";

/// An object that is there before the webhooks are; none if it is there already.
pub(crate) fn existing(generator: &mut Generator<'_>, known: &mut Known) -> Option<Value> {
    let kind = resource(generator, &[(60, "configmaps"), (40, "widgets"), (10, "secrets")]);
    let (namespace, name) =
        (generator.random.one_of(&generator.namespaces.clone()), generator.random.one_of(&NAMES));
    let is_new = known.objects.insert((kind, namespace.clone(), name));
    let (mut object, _) = object(generator, kind);
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!(namespace);
    if kind != "widgets" {
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(if kind == "secrets" { "Secret" } else { "ConfigMap" });
    }
    is_new.then_some(object)
}

/// One request.
pub(crate) fn request(generator: &mut Generator<'_>, known: &mut Known) -> Value {
    let mut request = if generator.may("namespaces", 7) {
        of_a_namespace(generator)
    } else {
        of_an_object(generator, known)
    };
    if generator.may("dry-run", 12) {
        request["dryRun"] = json!(true);
    }
    if generator.may("impersonation", 12) {
        request["user"] = user(generator);
    }
    if generator.random.chance(10) && request["verb"] != "delete" && request["verb"] != "deletecollection" {
        request["query"] = json!({"fieldManager": "somebody"});
    }
    request
}

fn resource(generator: &mut Generator<'_>, choices: &[(usize, &'static str)]) -> &'static str {
    match generator.random.weighted(choices) {
        "widgets" if !generator.widgets => "configmaps",
        chosen => chosen,
    }
}

fn of_an_object(generator: &mut Generator<'_>, known: &mut Known) -> Value {
    let verb = generator.random.weighted(&[
        (40, "create"),
        (18, "update"),
        (24, "patch"),
        (13, "delete"),
        (5, "deletecollection"),
    ]);
    let mut kind = resource(generator, &[(45, "configmaps"), (35, "widgets"), (10, "secrets"), (7, "pods")]);
    let mut namespace = generator.random.one_of(&generator.namespaces.clone());
    let mut name = generator.random.one_of(&NAMES);
    if verb != "create"
        && verb != "deletecollection"
        && generator.random.chance(85)
        && !known.objects.is_empty()
    {
        let objects: Vec<_> = known.objects.iter().cloned().collect();
        (kind, namespace, name) = generator.random.one_of(&objects);
    }
    if kind == "pods" && verb.starts_with("delete") {
        kind = "configmaps";
    }
    let mut request = json!({"verb": verb, "resource": kind, "name": name});
    let version = generator.random.one_of(&["v1", "v2"]);
    if kind == "widgets" {
        request["resource"] = json!(format!("{GROUP}/{version}/widgets"));
    }
    if namespace != "<ns>" {
        request["namespace"] = json!(namespace);
    }
    match verb {
        "create" => {
            let (body, _) = object(generator, kind);
            request["body"] = of_version(body, kind, version);
            if generator.may("generate-name", 5) {
                request["body"]["metadata"]["generateName"] = json!("made-");
                if let Some(members) = request.as_object_mut() {
                    members.remove("name");
                }
            } else {
                known.objects.insert((kind, namespace, name));
            }
        }
        "update" => {
            let (body, _) = object(generator, kind);
            request["body"] = of_version(body, kind, version);
            of_the_status(generator, kind, &mut request);
            if request.get("subresource").is_some() {
                request["body"]["metadata"]["name"] = json!(name);
            }
        }
        "patch" => {
            patch(generator, kind, &mut request);
            of_the_status(generator, kind, &mut request);
        }
        "delete" => {
            if generator.random.chance(30) {
                let policies: &[&str] = if generator.may("delete-propagation", 60) {
                    &["Orphan", "Foreground"]
                } else {
                    &["Background"]
                };
                let policy = generator.random.one_of(policies);
                request["body"] =
                    json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
            }
            known.objects.remove(&(kind, namespace, name));
        }
        _ => {
            request["name"] = json!("");
            request["unordered"] = json!(true);
        }
    }
    request
}

fn of_version(mut body: Value, kind: &str, version: &str) -> Value {
    if kind == "widgets" {
        body["apiVersion"] = json!(format!("{GROUP}/{version}"));
    }
    body
}

fn of_the_status(generator: &mut Generator<'_>, kind: &str, request: &mut Value) {
    let feature = if generator.has_status { "status" } else { "absent-subresource" };
    if kind == "widgets" && generator.may(feature, 25) {
        request["subresource"] = json!("status");
    }
}

fn patch(generator: &mut Generator<'_>, kind: &str, request: &mut Value) {
    let field = match kind {
        "widgets" => "spec",
        "pods" => "metadata",
        _ => "data",
    };
    let value = if kind == "secrets" { "dmFsdWU=" } else { generator.value() };
    match generator.random.below(10) {
        0..=5 => {
            request["patch"] = json!("merge");
            let mut labels = generator.labels(80);
            if generator.random.chance(25) {
                labels.insert(generator.key().to_owned(), Value::Null);
            }
            request["body"] = json!({"metadata": {"labels": labels}});
            if field != "metadata" && generator.random.chance(50) {
                request["body"][field] = json!({"k": value});
            }
        }
        6 | 7 => {
            request["patch"] = json!("json");
            request["body"] =
                json!([{"op": "add", "path": "/metadata/labels", "value": generator.labels(80)}]);
        }
        _ if kind == "widgets" || !generator.may("strategic-merge-patch", 100) => {
            request["patch"] = json!("merge");
            request["body"] = match kind {
                "widgets" => json!({"spec": {"size": generator.random.below(3)}, "status": {"seen": value}}),
                _ => json!({"metadata": {"annotations": {"k": value}}}),
            };
        }
        _ => {
            request["patch"] = json!("strategic");
            request["body"] =
                json!({"metadata": {"labels": generator.labels(80), "annotations": {"k": value}}});
        }
    }
}

/// An object without a name, and whether it has labels.
fn object(generator: &mut Generator<'_>, kind: &str) -> (Value, bool) {
    let labels = generator.labels(75);
    let has_labels = !labels.is_empty();
    let mut metadata = Map::new();
    if has_labels || generator.random.chance(10) {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    if generator.random.chance(25) {
        metadata.insert("annotations".to_owned(), json!({generator.key(): generator.value()}));
    }
    let mut object = json!({"metadata": metadata});
    let value = generator.value();
    match kind {
        "widgets" => {
            object["apiVersion"] = json!(format!("{GROUP}/v1"));
            object["kind"] = json!("Widget");
            object["spec"] = json!({"size": generator.random.below(3), "k": value});
            if generator.random.chance(25) {
                object["status"] = json!({"seen": value});
            }
        }
        "pods" => {
            object["spec"] = json!({"containers": [{"name": "c", "image": "example.com/c:1"}]});
        }
        "secrets" if generator.random.chance(70) => object["data"] = json!({"k": "dmFsdWU="}),
        "configmaps" if generator.random.chance(75) => object["data"] = json!({"k": value}),
        _ => {}
    }
    (object, has_labels)
}

/// A namespace in which there is nothing.
fn of_a_namespace(generator: &mut Generator<'_>) -> Value {
    let labels = generator.labels(70);
    match generator.random.below(10) {
        0..=4 => {
            let mut body = namespace(THIRD, labels);
            if generator.random.chance(15)
                && let Some(labels) = body["metadata"]["labels"].as_object_mut()
            {
                labels.remove(CASE_LABEL);
            }
            json!({"verb": "create", "resource": "namespaces", "name": THIRD, "body": body})
        }
        5 => {
            json!({"verb": "update", "resource": "namespaces", "name": THIRD, "body": namespace(THIRD, labels)})
        }
        6..=8 => json!({
            "verb": "patch", "resource": "namespaces", "name": THIRD, "patch": "merge",
            "body": {"metadata": {"labels": labels}},
        }),
        _ => json!({"verb": "delete", "resource": "namespaces", "name": THIRD}),
    }
}

fn user(generator: &mut Generator<'_>) -> Value {
    let mut user =
        json!({"name": generator.random.one_of(&["jane", "system:serviceaccount:<ns>:robot", "a b"])});
    if generator.random.chance(50) {
        user["groups"] = json!(["system:masters", "devs"]);
    }
    if generator.random.chance(30) {
        user["uid"] = json!("u-1");
    }
    if generator.random.chance(30) {
        user["extra"] = json!({"scopes": "one"});
    }
    user
}
