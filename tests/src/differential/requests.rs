//! Generates random requests, most of them for existing objects.
//!
//! Not covered: behavior of a real server that varies. Examples are the deletion of a Pod, which is admitted two or
//! three times, and label changes of non-empty namespaces, which webhooks see with a delay.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::configurations::{self, StoredConfigurations};
use super::situation::{Generator, namespace};
use super::{kinds, roles, subresources};
use crate::names::CASE_LABEL;

/// The objects that exist before the next request, unless a webhook rejected them.
#[derive(Debug, Default)]
pub(crate) struct ExistingObjects {
    objects: BTreeSet<(&'static str, String, &'static str)>,
    configurations: StoredConfigurations,
}

const NAMES: [&str; 3] = ["x", "y", "z"];
/// The namespace that requests create, change, and delete.
const THIRD: &str = "<id>-three";

impl ExistingObjects {
    /// Returns a random existing object of one of the `kinds`, if there is one.
    pub(crate) fn one_of(
        &self,
        generator: &mut Generator<'_>,
        kinds: &[&str],
    ) -> Option<(&'static str, String, &'static str)> {
        let objects: Vec<_> =
            self.objects.iter().filter(|(kind, ..)| kinds.is_empty() || kinds.contains(kind)).collect();
        (!objects.is_empty()).then(|| generator.random.one_of(&objects).clone())
    }
}

/// Returns an object to create before the webhooks are registered; `None` if it already exists.
pub(crate) fn existing(generator: &mut Generator<'_>, known: &mut ExistingObjects) -> Option<Value> {
    let kind = kind(generator);
    let (namespace, name) = place(generator, kind);
    let is_new = known.objects.insert((kind, namespace.clone(), name));
    let version = generator.random.one_of(kinds::versions(kind));
    let mut object = kinds::object(generator, kind, version);
    object["metadata"]["name"] = json!(name);
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // The server warns about duplicate owners.
        metadata.remove("ownerReferences");
    }
    is_new.then_some(object)
}

/// Returns a random request.
pub(crate) fn request(generator: &mut Generator<'_>, known: &mut ExistingObjects) -> Value {
    let mut request = match generator.random.weighted(&[(9, "subresource"), (91, "object")]) {
        _ if generator.may("namespaces", 7) => of_a_namespace(generator),
        _ if generator.may("configurations", known.configurations.percent()) => {
            configurations::request(generator, &mut known.configurations)
        }
        "subresource" => subresources::request(generator, known),
        _ => of_an_object(generator, known),
    };
    if request["verb"] != "connect" && generator.may("dry-run", 12) {
        request["dryRun"] = json!(true);
    }
    if generator.has_roles && generator.may("impersonation", 45) {
        request["user"] = roles::user(generator);
    } else if generator.may("impersonation", 12) {
        request["user"] = user(generator);
    }
    let is_write = ["create", "update", "patch"].contains(&request["verb"].as_str().unwrap_or_default());
    if is_write && generator.random.chance(10) {
        request["query"]["fieldManager"] = json!("somebody");
    }
    if is_write && generator.random.chance(6) {
        request["query"]["fieldValidation"] = json!(generator.random.one_of(&["Strict", "Warn", "Ignore"]));
    }
    request
}

fn kind(generator: &mut Generator<'_>) -> &'static str {
    match generator.random.weighted(&kinds::ALL) {
        kind if kinds::is_custom(kind) && !generator.widgets => "configmaps",
        chosen => chosen,
    }
}

/// Returns a namespace and a name. For a cluster-scoped kind, the namespace is empty.
fn place(generator: &mut Generator<'_>, kind: &str) -> (String, &'static str) {
    let namespace = generator.random.one_of(&generator.namespaces.clone());
    let namespace = if kind == "gadgets" { String::new() } else { namespace };
    (namespace, generator.random.one_of(&NAMES))
}

fn of_an_object(generator: &mut Generator<'_>, known: &mut ExistingObjects) -> Value {
    let verb = generator.random.weighted(&[
        (37, "create"),
        (18, "update"),
        (26, "patch"),
        (11, "delete"),
        (4, "deletecollection"),
        (4, "get"),
    ]);
    let mut kind = kind(generator);
    let (mut namespace, mut name) = place(generator, kind);
    if verb != "create"
        && verb != "deletecollection"
        && generator.random.chance(85)
        && let Some(object) = known.one_of(generator, &[])
    {
        (kind, namespace, name) = object;
    }
    if (kind == "pods" && verb.starts_with("delete")) || (kind == "gadgets" && verb == "deletecollection") {
        (kind, namespace) = ("configmaps", "<ns>".to_owned());
    }
    // A PUT of a whole Pod would remove the containers that webhooks added, which is forbidden.
    let verb = match (kind, verb) {
        ("pods", "update") => "patch",
        ("leases", "update") if !generator.may("put-that-may-create", 100) => "patch",
        _ => verb,
    };
    let version = generator.random.one_of(kinds::versions(kind));
    let mut request = json!({"verb": verb, "resource": kinds::resource(kind, version), "name": name});
    if namespace != "<ns>" {
        request["namespace"] = json!(namespace);
    }
    match verb {
        "create" => {
            request["body"] = kinds::object(generator, kind, version);
            if generator.may("generate-name", 5) {
                request["body"]["metadata"]["generateName"] = json!("made-");
                if let Some(members) = request.as_object_mut() {
                    members.remove("name");
                }
            } else {
                known.objects.insert((kind, namespace, name));
            }
            odd(generator, kind, &mut request["body"]);
        }
        "update" => {
            request["body"] = kinds::object(generator, kind, version);
            of_the_status(generator, kind, &mut request);
            if request.get("subresource").is_some() {
                request["body"]["metadata"]["name"] = json!(name);
            }
            if generator.random.chance(6) {
                // A field that no object has.
                let (field, value) = generator.random.one_of(&[("uid", "u"), ("resourceVersion", "1")]);
                request["body"]["metadata"][field] = json!(value);
            }
            odd(generator, kind, &mut request["body"]);
        }
        "patch" => {
            patch(generator, kind, &mut request);
            of_the_status(generator, kind, &mut request);
        }
        "delete" => {
            options(generator, &mut request);
            known.objects.remove(&(kind, namespace, name));
        }
        "deletecollection" => {
            request["name"] = json!("");
            request["unordered"] = json!(true);
            if generator.random.chance(40) {
                let selector = generator.random.one_of(&["env", "!env", "env%3Da", "env+in+(a,b)"]);
                request["query"]["labelSelector"] = json!(selector);
            }
        }
        _ => {}
    }
    request
}

/// Adds a field that is unknown to the server or that the server changes.
fn odd(generator: &mut Generator<'_>, kind: &str, body: &mut Value) {
    if kinds::is_custom(kind) || !generator.random.chance(8) {
        return;
    }
    match generator.random.below(5) {
        0 => body["unknown"] = json!({"a": 1}),
        1 => body["metadata"]["unknown"] = json!("a"),
        2 => body["metadata"]["generation"] = json!(7),
        3 => body["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z"),
        _ => body["metadata"]["labels"] = json!({"env": null}),
    }
}

fn options(generator: &mut Generator<'_>, request: &mut Value) {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    match generator.random.below(20) {
        0..=3 => {
            let policies: &[&str] = if generator.may("delete-propagation", 60) {
                &["Orphan", "Foreground"]
            } else {
                &["Background"]
            };
            options["propagationPolicy"] = json!(generator.random.one_of(policies));
        }
        4 => options["preconditions"] = json!({"uid": "u"}),
        5 => options["gracePeriodSeconds"] = json!(generator.random.one_of(&[-1, 0, 5])),
        6 => {
            request["query"] = json!({"gracePeriodSeconds": "0"});
            return;
        }
        _ => return,
    }
    request["body"] = options;
}

fn of_the_status(generator: &mut Generator<'_>, kind: &str, request: &mut Value) {
    let feature = match kind {
        "widgets" if generator.has_status => "status",
        "widgets" => "absent-subresource",
        "deployments" | "poddisruptionbudgets" | "horizontalpodautoscalers" => "status-of-the-server",
        _ => return,
    };
    if generator.may(feature, 25) {
        request["subresource"] = json!("status");
    }
}

fn patch(generator: &mut Generator<'_>, kind: &str, request: &mut Value) {
    match generator.random.below(12) {
        0..=5 => {
            request["patch"] = json!("merge");
            let mut labels = generator.labels(80);
            if generator.random.chance(25) {
                labels.insert(generator.key().to_owned(), Value::Null);
            }
            let change = if generator.random.chance(50) { kinds::change(generator, kind) } else { json!({}) };
            request["body"] = change;
            request["body"]["metadata"]["labels"] = json!(labels);
        }
        6 | 7 => {
            request["patch"] = json!("json");
            request["body"] =
                json!([{"op": "add", "path": "/metadata/labels", "value": generator.labels(80)}]);
        }
        8 => {
            let key = generator.key().replace('/', "~1");
            let (path, value) = (format!("/metadata/labels/{key}"), generator.value());
            let operation = generator.random.one_of(&["add", "replace", "remove", "test"]);
            request["patch"] = json!("json");
            request["body"] = json!([{"op": operation, "path": path, "value": value}]);
        }
        9 => {
            let finalizers = generator.random.one_of(&[
                json!(null),
                json!(["example.com/keep"]),
                json!(["example.com/keep", "example.com/other"]),
            ]);
            request["patch"] = json!("merge");
            request["body"] = json!({"metadata": {"finalizers": finalizers}});
        }
        10 if !kinds::is_custom(kind) => {
            request["patch"] = json!("strategic");
            request["body"] = json!({"metadata": {
                "labels": generator.labels(80), "annotations": {"k": generator.value()},
            }});
        }
        _ => {
            let is_strategic = !kinds::is_custom(kind) && generator.random.chance(40);
            request["patch"] = json!(if is_strategic { "strategic" } else { "merge" });
            request["body"] = kinds::change(generator, kind);
        }
    }
}

/// Returns a request for an empty namespace.
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
