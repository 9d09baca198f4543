//! Generates random `Accept` and `Content-Type` headers for reads, writes, lists, Tables, discovery, and errors.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::kinds;
use super::situation::{Generator, Situation, free_widgets, namespace};
use crate::random::Random;

const NAMES: [&str; 2] = ["a", "b"];
const KINDS: [&str; 6] = ["configmaps", "widgets", "pods", "deployments", "leases", "secrets"];
/// The media types in `Accept` headers.
const TYPES: [&str; 15] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "*/*",
    "application/*",
    "text/html",
    "text/*",
    "application/cbor",
    "application/json-patch+json",
    "APPLICATION/JSON",
    "application/json;",
    "json",
    "/",
    "application/",
    "",
];
/// The media type parameters in `Accept` headers.
const PARAMETERS: [&str; 22] = [
    ";q=0.5",
    ";q=0",
    ";q=1.0",
    ";q=x",
    ";q=0.9999",
    "; charset=utf-8",
    ";pretty=1",
    ";pretty=0",
    ";stream=watch",
    ";v=v1",
    ";g=meta.k8s.io",
    ";as=Table;v=v1;g=meta.k8s.io",
    ";as=Table;v=v1beta1;g=meta.k8s.io",
    ";as=Table",
    ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ";as=Other;v=v1;g=meta.k8s.io",
    ";as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    ";profile=nopeer",
    ";a=\"b;c\"",
    ";a=\"",
    ";=",
];
const CONTENT_TYPES: [&str; 16] = [
    "application/json",
    "application/json; charset=utf-8",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/plain",
    "*/*",
    "application/*",
    "application/json, application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/merge-patch+json; charset=utf-8",
    "application/x-www-form-urlencoded",
    "json",
];

impl Situation {
    /// Creates a situation about content negotiation from `seed` and the situation's `number`.
    pub fn of_negotiation(seed: u64, number: u64) -> Self {
        let none = BTreeSet::new();
        let mut generator = Generator::new(seed, number, &none);
        Self { case: case(&mut generator), left_out: BTreeMap::new() }
    }
}

fn case(generator: &mut Generator<'_>) -> Value {
    let kind = generator.random.one_of(&KINDS);
    let mut cluster = vec![namespace("<ns>", Map::new())];
    if kind == "widgets" {
        cluster.push(free_widgets());
    }
    let mut object = object(generator, kind);
    object["metadata"] = json!({"name": "a", "namespace": "<ns>"});
    cluster.push(object);
    let requests: Vec<Value> =
        (0..generator.random.between(4, 9)).map(|_| request(generator, kind)).collect();
    json!({"version": 1, "cluster": cluster, "requests": requests})
}

fn object(generator: &mut Generator<'_>, kind: &str) -> Value {
    let mut object = kinds::object(generator, kind, "v1");
    object["metadata"] = json!({});
    object
}

fn request(generator: &mut Generator<'_>, kind: &str) -> Value {
    let resource = kinds::resource(kind, "v1");
    let name = generator.random.one_of(&NAMES);
    let verb = generator.random.weighted(&[
        (30, "get"),
        (15, "list"),
        (16, "create"),
        (14, "update"),
        (14, "patch"),
        (5, "delete"),
        (6, "path"),
    ]);
    // The deletion of a Pod is a subject of its own.
    let verb = if kind == "pods" && ["delete", "update"].contains(&verb) { "get" } else { verb };
    let mut request = match verb {
        "list" => json!({"verb": "get", "resource": resource}),
        "path" => {
            let path = generator.random.one_of(&["/api/v1", "/apis/apps", "/apis/apps/v1", "/none"]);
            json!({"verb": "get", "path": path})
        }
        verb => json!({"verb": verb, "resource": resource, "name": name}),
    };
    if ["create", "update"].contains(&verb) {
        let mut body = object(generator, kind);
        body["metadata"]["name"] = json!(name);
        content(&mut generator.random, &mut request, &body);
        // kube-apiserver panics when it decodes a custom resource from protobuf.
        if let Some(sent) = request.pointer_mut("/headers/content-type")
            && kind == "widgets"
            && *sent == json!("application/vnd.kubernetes.protobuf")
        {
            *sent = json!("application/cbor");
        }
    }
    if verb == "patch" {
        let format = generator.random.one_of(&["merge", "strategic", "json", "apply"]);
        request["patch"] = json!(format);
        request["body"] = match format {
            "json" => json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
            "apply" => {
                request["query"]["fieldManager"] = json!("a");
                let object = object(generator, kind);
                json!({
                    "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"labels": {"a": "b"}},
                })
            }
            _ => json!({"metadata": {"labels": {"a": "b"}}}),
        };
        if generator.random.chance(40) {
            request["headers"]["content-type"] = json!(generator.random.one_of(&CONTENT_TYPES));
        }
    }
    if generator.random.chance(75) {
        let accept = accept(&mut generator.random);
        request["headers"]["accept"] = json!(accept);
        // A body in protobuf, or one that is not an object, cannot be recorded.
        let is_plain = accept.split(',').all(|it| it.trim().starts_with("application/json"));
        let is_plain = is_plain && !accept.contains("pretty");
        if !is_plain {
            request["show"] = json!("headers");
        }
    }
    if generator.random.chance(10) {
        request["query"]["pretty"] = json!(generator.random.one_of(&["true", "false", "1", "x", ""]));
        request["show"] = json!("headers");
    }
    if generator.random.chance(6) {
        request["query"]["includeObject"] =
            json!(generator.random.one_of(&["None", "Object", "Metadata", "All"]));
    }
    request
}

/// Sets the body of a request, and a `Content-Type` that may not match the body.
fn content(random: &mut Random, request: &mut Value, body: &Value) {
    match random.below(10) {
        0..=3 => request["body"] = body.clone(),
        4..=6 => {
            request["headers"]["content-type"] = json!(random.one_of(&CONTENT_TYPES));
            request["body"] = body.clone();
        }
        7 => {
            request["headers"]["content-type"] = json!("application/yaml");
            request["text"] = json!(crate::yaml::write(body));
        }
        8 => {
            request["headers"]["content-type"] =
                json!(random.one_of(&["application/json", "application/yaml"]));
            request["text"] =
                json!(random.one_of(&["", "a: b", "[]", "null", "{", "---", "1", "\"a\"", "k8s\u{0}"]));
        }
        _ => {
            let both = format!("{body}{body}");
            request["headers"]["content-type"] =
                json!(random.one_of(&["application/json", "application/yaml"]));
            request["text"] =
                json!(random.one_of(&[both, format!("{body}\n---\n{body}"), format!(" {body} ")]));
        }
    }
}

fn accept(random: &mut Random) -> String {
    let one = |random: &mut Random| {
        let usual = if random.chance(70) { 5 } else { TYPES.len() };
        let mut text = random.one_of(&TYPES[..usual]).to_owned();
        for _ in 0..random.below(3) {
            text.push_str(random.one_of(&PARAMETERS));
        }
        text
    };
    let mut text = one(random);
    for _ in 0..random.weighted(&[(60, 0), (30, 1), (10, 2)]) {
        text.push_str(random.one_of(&[",", ", ", " ,"]));
        text.push_str(&one(random));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::of_negotiation(1, number));
    }
}
