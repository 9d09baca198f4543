//! Generates random requests for subresources that are separate from their objects: scales, evictions, and connections.

use serde_json::{Value, json};

use super::kinds;
use super::requests::ExistingObjects;
use super::situation::Generator;

/// Returns a random request, for an existing object if there is one.
pub(crate) fn request(generator: &mut Generator<'_>, known: &ExistingObjects) -> Value {
    let scaled: &[&str] = if generator.has_scale { &["widgets", "deployments"] } else { &["deployments"] };
    let (kinds, what) = match generator.random.below(10) {
        0..=4 => (scaled, "scale"),
        5 | 6 => (&["pods"][..], "eviction"),
        _ => (&["pods"][..], "connection"),
    };
    let absent = (kinds[0], "<ns>".to_owned(), "x");
    let (kind, namespace, name) = known.one_of(generator, kinds).unwrap_or(absent);
    let version = generator.random.one_of(kinds::versions(kind));
    let mut request = json!({"resource": kinds::resource(kind, version), "name": name});
    if namespace != "<ns>" {
        request["namespace"] = json!(namespace);
    }
    match what {
        "scale" => scale(generator, name, &mut request),
        "eviction" => {
            request["verb"] = json!("create");
            request["subresource"] = json!("eviction");
            request["body"] =
                json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
            if generator.random.chance(30) {
                request["body"]["deleteOptions"] = json!({"gracePeriodSeconds": 0});
            }
        }
        _ => connection(generator, &mut request),
    }
    request
}

fn scale(generator: &mut Generator<'_>, name: &str, request: &mut Value) {
    request["subresource"] = json!("scale");
    let spec = json!({"replicas": generator.random.below(4)});
    match generator.random.below(4) {
        0 => {
            request["verb"] = json!("update");
            request["body"] = json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": spec,
            });
        }
        1 => {
            request["verb"] = json!("patch");
            request["patch"] = json!("json");
            request["body"] = json!([{"op": "add", "path": "/spec/replicas", "value": spec["replicas"]}]);
        }
        _ => {
            request["verb"] = json!("patch");
            request["patch"] = json!("merge");
            request["body"] = json!({"spec": spec});
        }
    }
}

/// Changes a request into a connection to a Pod that is not running.
fn connection(generator: &mut Generator<'_>, request: &mut Value) {
    let (subresource, query) = generator.random.one_of(&[
        ("exec", json!({"command": "ls", "container": "c0", "stdin": "true"})),
        ("exec", json!({"command": "ls"})),
        ("attach", json!({"container": "c0", "tty": "true"})),
        ("portforward", json!({"ports": "80"})),
    ]);
    request["verb"] = json!("connect");
    request["subresource"] = json!(subresource);
    request["query"] = query;
}
