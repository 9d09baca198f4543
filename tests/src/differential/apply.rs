//! Generates random writes by several field managers: server-side apply with and without force, updates, and patches.
//!
//! The managers write objects and their subresources, and webhooks change owned fields. Managed fields are compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::applied;
use super::situation::{GROUP, Situation, namespace};
use crate::random::Random;

const NAMES: [&str; 2] = ["x", "y"];
const MANAGERS: [&str; 4] = ["one", "two", "three", "kubectl"];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Situation {
    /// Creates a situation about server-side apply from `seed` and the situation's `number`.
    pub fn of_apply(seed: u64, number: u64) -> Self {
        Self { case: case(&mut Random::new(seed, number)), left_out: BTreeMap::new() }
    }
}

fn case(random: &mut Random) -> Value {
    let count = random.weighted(&[(75, 1), (25, 2)]);
    let mut kinds: Vec<&str> = (0..count).map(|_| random.weighted(&applied::KINDS)).collect();
    kinds.dedup();
    let mut cluster = vec![namespace("<ns>", Map::new())];
    if kinds.contains(&"widgets") {
        cluster.push(applied::widgets(random));
    }
    if kinds.contains(&"gadgets") {
        cluster.push(gadgets());
    }
    let webhooks = webhooks(random, &kinds);
    let count = random.between(4, 9);
    let mut requests = Vec::new();
    for number in 1..=count {
        let resource = random.one_of(&kinds);
        requests.push(request(random, resource, number));
    }
    json!({
        "version": 1, "managedFields": true, "cluster": cluster, "webhooks": webhooks, "requests": requests,
    })
}

/// Returns the definition of the gadgets. Their schema does not have properties.
fn gadgets() -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": free}}],
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        },
    })
}

fn webhooks(random: &mut Random, kinds: &[&str]) -> Vec<Value> {
    let count = random.weighted(&[(55, 0), (30, 1), (15, 2)]);
    let resources: Vec<String> =
        kinds.iter().flat_map(|kind| [(*kind).to_owned(), format!("{kind}/*")]).collect();
    (0..count)
        .map(|place| {
            let mut webhook = json!({
                "name": format!("w{place}"), "type": "mutating", "behavior": behavior(random, kinds[0]),
                "rules": [{
                    "operations": random.one_of(&[json!(["*"]), json!(["CREATE"]), json!(["UPDATE"])]),
                    "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, "scope": "Namespaced",
                }],
            });
            if random.chance(40) {
                webhook["reinvocationPolicy"] = json!("IfNeeded");
            }
            webhook
        })
        .collect()
}

fn behavior(random: &mut Random, kind: &str) -> Value {
    let value = random.one_of(&["1", "2", "webhook"]);
    let own = match kind {
        "widgets" => random.one_of(&[
            json!({"set": {"/spec/text": value}}),
            json!({"set": {"/spec/set": ["a", "w"]}}),
            json!({"set": {"/spec/map": [{"name": "w", "kind": "usual", "value": 1}]}}),
            json!({"remove": ["/spec/labels"]}),
        ]),
        "deployments" => random.one_of(&[
            json!({"set": {"/spec/replicas": 2}}),
            json!({"each-container": {"list": "env", "value": {"name": "A", "value": value}}}),
            json!({"set": {"/spec/template/metadata/annotations/a": value}}),
        ]),
        "services" => json!({"set": {"/spec/sessionAffinity": "None"}}),
        "configmaps" => random.one_of(&[
            json!({"set": {"/data/a": value}}),
            json!({"remove": ["/data/b"]}),
            json!({"remove": ["/data"]}),
        ]),
        _ => json!({"set": {"/metadata/annotations/w": value}}),
    };
    let owned = json!([{
        "manager": "me", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}},
    }]);
    match random.below(10) {
        0..=4 => json!({"mutate": [own]}),
        5 | 6 => json!({"mutate": [{"set": {"/metadata/labels/a": value}}]}),
        7 => json!({"mutate": [{"remove": ["/metadata/labels"]}]}),
        8 => json!({"mutate": [{"remove": ["/metadata/managedFields"]}]}),
        _ => json!({"mutate": [{"set": {"/metadata/managedFields": owned}}]}),
    }
}

fn request(random: &mut Random, resource: &str, number: usize) -> Value {
    let (api_version, kind) = applied::version_and_kind(random, resource);
    let name = random.weighted(&[(80, NAMES[0]), (20, NAMES[1])]);
    let path = if api_version == "v1" { resource.to_owned() } else { format!("{api_version}/{resource}") };
    let mut request = json!({"resource": path, "name": name});
    let verb = match number {
        1 => random.weighted(&[(60, "apply"), (40, "create")]),
        _ => random.weighted(&[
            (46, "apply"),
            (3, "create"),
            (12, "merge"),
            (8, "json"),
            (3, "strategic"),
            (10, "update"),
            (9, "status"),
            (6, "scale"),
            (3, "reset"),
            (3, "delete"),
            (2, "get"),
        ]),
    };
    // The first write creates the object, so that later writes find one.
    let whole = number == 1 || random.chance(35);
    let object = |random: &mut Random| {
        let mut object = applied::fields(random, resource, &api_version, whole);
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object["metadata"] = metadata(random);
        object["metadata"]["name"] = json!(name);
        object
    };
    match verb {
        "apply" => {
            request["verb"] = json!("patch");
            request["patch"] = json!("apply");
            request["body"] = object(random);
            odd(random, whole, &mut request["body"]);
            force(random, &mut request);
        }
        "create" | "update" => {
            request["verb"] = json!(verb);
            request["body"] = object(random);
            if random.chance(12) {
                request["body"]["metadata"]["annotations"][LAST_APPLIED] = json!(object(random).to_string());
                request["query"]["fieldManager"] = json!("kubectl-client-side-apply");
            }
            if verb == "update" && random.chance(10) {
                request["body"]["metadata"]["managedFields"] =
                    random.one_of(&[json!([]), json!([{}]), json!([{"manager": "me"}])]);
            }
        }
        "merge" | "strategic" => {
            let is_custom = ["widgets", "gadgets"].contains(&resource);
            request["verb"] = json!("patch");
            request["patch"] = json!(if is_custom { "merge" } else { verb });
            request["body"] = applied::fields(random, resource, &api_version, false);
            if random.chance(40) {
                request["body"]["metadata"] = metadata(random);
            }
        }
        "json" => {
            let (path, value) = random.one_of(&[
                ("/metadata/labels", json!({"a": "1"})),
                ("/metadata/labels/a", json!("2")),
                ("/metadata/annotations", json!({"b": "1"})),
                ("/metadata/finalizers", json!(["example.com/a"])),
                ("/metadata/finalizers", json!([])),
            ]);
            let operation = random.weighted(&[(75, "add"), (25, "remove")]);
            request["verb"] = json!("patch");
            request["patch"] = json!("json");
            request["body"] = json!([{"op": operation, "path": path, "value": value}]);
        }
        "status" => of_the_status(random, resource, &api_version, kind, &mut request),
        "scale" => of_the_scale(random, &mut request),
        "reset" => {
            request["verb"] = json!("patch");
            request["patch"] = json!("merge");
            request["body"] =
                json!({"metadata": {"managedFields": random.one_of(&[json!([]), json!([{}]), json!(null)])}});
        }
        other => request["verb"] = json!(other),
    }
    if ["delete", "get"].contains(&verb) {
        return request;
    }
    if request["query"].get("fieldManager").is_none()
        && (verb == "apply" || random.chance(75))
        && !random.chance(2)
    {
        request["query"]["fieldManager"] = json!(random.one_of(&MANAGERS));
    }
    if random.chance(8) {
        request["dryRun"] = json!(true);
    }
    request
}

fn force(random: &mut Random, request: &mut Value) {
    let force = random.weighted(&[(60, ""), (30, "true"), (8, "false"), (2, "maybe")]);
    if !force.is_empty() {
        request["query"]["force"] = json!(force);
    }
}

fn metadata(random: &mut Random) -> Value {
    let mut metadata = json!({});
    if random.chance(45) {
        metadata["labels"] = json!(applied::some(random, &["a", "b", "c"]));
    }
    if random.chance(25) {
        metadata["annotations"] = json!(applied::some(random, &["a", "b"]));
    }
    if random.chance(10) {
        metadata["finalizers"] = json!(random.some_of(&["example.com/a", "example.com/b"]));
    }
    if random.chance(8) {
        let owners = random.some_of(&["u1", "u2"]);
        let owner = |uid: &&str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid});
        metadata["ownerReferences"] = owners.iter().map(owner).collect();
    }
    metadata
}

/// Adds a field that is forbidden or unnecessary in an apply.
fn odd(random: &mut Random, whole: bool, body: &mut Value) {
    if !random.chance(9) {
        return;
    }
    match random.below(7) {
        0 => body["metadata"]["labels"] = json!({"a": null}),
        1 => body["metadata"]["resourceVersion"] = json!("1"),
        // For an invalid object, admit does not report other errors in addition to this one.
        2 if whole => body["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000001"),
        3 => body["metadata"]["creationTimestamp"] = json!(null),
        4 => body["metadata"]["generation"] = json!(7),
        5 => body["unknown"] = json!({"a": 1}),
        _ => body["status"] = json!({"replicas": 3}),
    }
}

fn of_the_status(random: &mut Random, resource: &str, api_version: &str, kind: &str, request: &mut Value) {
    let name = request["name"].clone();
    request["verb"] = json!("patch");
    let Some(status) = applied::status(random, resource) else {
        request["patch"] = json!("merge");
        request["body"] = json!({"metadata": metadata(random)});
        return;
    };
    request["subresource"] = json!("status");
    // An apply to the status of a Service, and of nothing else, would create the object.
    if random.chance(65) && resource != "services" {
        request["patch"] = json!("apply");
        request["body"] =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "status": status});
        if random.chance(20) {
            request["body"]["metadata"]["labels"] = json!({"a": "status"});
        }
        force(random, request);
        if request["query"].is_null() || random.chance(90) {
            request["query"]["fieldManager"] = json!(random.one_of(&MANAGERS));
        }
    } else {
        request["patch"] = json!("merge");
        request["body"] = json!({"status": status});
    }
}

fn of_the_scale(random: &mut Random, request: &mut Value) {
    let name = request["name"].clone();
    request["subresource"] = json!("scale");
    let spec = json!({"replicas": random.below(4)});
    let scale =
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": spec});
    match random.below(4) {
        0 => {
            request["verb"] = json!("update");
            request["body"] = scale;
        }
        1 => {
            request["verb"] = json!("patch");
            request["patch"] = json!("merge");
            request["body"] = json!({"spec": spec});
        }
        _ => {
            request["verb"] = json!("patch");
            request["patch"] = json!("apply");
            request["body"] = scale;
            force(random, request);
            request["query"]["fieldManager"] = json!(random.one_of(&MANAGERS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::of_apply(1, number));
    }
}
