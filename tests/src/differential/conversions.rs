//! Generates random writes and reads of custom resources in two versions with a conversion webhook.
//!
//! Admission webhooks see one of the versions.
//!
//! Not covered: failing converters, because a real server may read an object from its cache, which already contains the
//! object in each version; and field ownership, because admit compares objects in only one version.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::situation::{self, GROUP, Situation, namespace};
use crate::random::Random;

const NAMES: [&str; 3] = ["a", "b", "c"];
const VERSIONS: [&str; 2] = ["v1", "v2"];

impl Situation {
    /// Creates a situation about conversion webhooks from `seed` and the situation's `number`.
    pub fn of_conversions(seed: u64, number: u64) -> Self {
        Self { case: case(&mut Random::new(seed, number)), left_out: BTreeMap::new() }
    }
}

fn case(random: &mut Random) -> Value {
    let mut cluster = vec![namespace("<ns>", Map::new()), definition(random)];
    for name in NAMES {
        if random.chance(40) {
            let mut object = widget(random, "v1");
            if let Some(spec) = object["spec"].as_object_mut() {
                // The server warns about this field.
                spec.remove("unknown");
            }
            object["metadata"]["name"] = json!(name);
            cluster.push(object);
        }
    }
    let count = random.below(3);
    let webhooks: Vec<Value> = (0..count).map(|place| webhook(random, place)).collect();
    let mut requests = vec![json!({"verb": "get", "resource": resource(random)})];
    for _ in 0..random.between(4, 8) {
        let next = request(random, &requests);
        requests.push(next);
    }
    if random.chance(60) {
        requests.push(json!({"verb": "watch", "resource": resource(random), "since": 1}));
    }
    json!({
        "version": 1, "converters": [converter(random)], "cluster": cluster, "webhooks": webhooks, "requests": requests,
    })
}

fn resource(random: &mut Random) -> String {
    format!("{GROUP}/{}/widgets", random.one_of(&VERSIONS))
}

/// Returns a converter that moves the value of `size` to `replicas`.
fn converter(random: &mut Random) -> Value {
    let mut convert = json!({"moves": [{"version": "v2", "from": "/spec/size", "to": "/spec/replicas"}]});
    if random.chance(30) {
        convert["trail"] = json!("example.com/converted");
    }
    json!({"name": "converter", "behavior": {"convert": convert}})
}

fn definition(random: &mut Random) -> Value {
    let stored = random.one_of(&VERSIONS);
    let (has_status, has_scale, has_defaults) = (random.chance(60), random.chance(50), random.chance(50));
    let version = |name: &str, size: &str| {
        let mut color = json!({"type": "string"});
        let mut spec = json!({size: {"type": "integer"}});
        if has_defaults {
            color["default"] = json!(if name == "v1" { "red" } else { "blue" });
        }
        spec["color"] = color;
        if name == "v2" {
            spec["shape"] = json!({"type": "string", "default": "round"});
        }
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        }});
        let mut version = json!({
            "name": name, "served": true, "storage": name == stored, "schema": {"openAPIV3Schema": schema},
        });
        if has_status {
            version["subresources"]["status"] = json!({});
        }
        if has_scale {
            version["subresources"]["scale"] =
                json!({"specReplicasPath": format!(".spec.{size}"), "statusReplicasPath": ".status.size"});
        }
        version
    };
    let mut definition = situation::widgets(&[version("v1", "size"), version("v2", "replicas")]);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"converter": "converter"},
    }});
    definition
}

fn size(version: &str) -> &'static str {
    if version == "v2" { "replicas" } else { "size" }
}

fn widget(random: &mut Random, version: &str) -> Value {
    let mut widget = json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Widget", "spec": {}});
    if random.chance(80) {
        widget["spec"][size(version)] = json!(random.below(4));
    }
    if random.chance(40) {
        widget["spec"]["color"] = json!(random.one_of(&["green", "red"]));
    }
    if random.chance(30) {
        widget["metadata"]["labels"] = json!({"a": random.one_of(&["1", "2"])});
    }
    if random.chance(10) {
        widget["spec"]["unknown"] = json!(1);
    }
    widget
}

fn webhook(random: &mut Random, place: usize) -> Value {
    let is_mutating = random.chance(70);
    let version = random.one_of(&VERSIONS);
    let value = random.below(9);
    let behavior = match random.below(4) {
        _ if !is_mutating => json!("allow"),
        0 => json!("allow"),
        1 => json!({"mutate": [{"set": {"/metadata/labels/w": "1"}}]}),
        2 => json!({"mutate": [{"set": {format!("/spec/{}", size(version)): value}}]}),
        _ => json!({"mutate": [{"set": {"/spec/color": "webhook"}}]}),
    };
    json!({
        "name": format!("w{place}"), "type": if is_mutating { "mutating" } else { "validating" },
        "behavior": behavior, "matchPolicy": random.one_of(&["Equivalent", "Equivalent", "Exact"]),
        "rules": [{
            "operations": ["*"], "apiGroups": [GROUP], "apiVersions": [version],
            "resources": random.one_of(&[json!(["widgets"]), json!(["widgets", "widgets/*"])]),
        }],
    })
}

/// Returns a request that follows the `earlier` requests.
fn request(random: &mut Random, earlier: &[Value]) -> Value {
    let version = random.one_of(&VERSIONS);
    let name = random.one_of(&NAMES);
    let mut request = json!({"resource": format!("{GROUP}/{version}/widgets"), "name": name});
    let change = json!({"spec": {size(version): random.below(4)}});
    match random.below(20) {
        0..=4 => {
            request["verb"] = json!("create");
            request["body"] = widget(random, version);
        }
        5..=8 => {
            request["verb"] = json!("patch");
            request["patch"] = json!("merge");
            request["body"] = random.one_of(&[
                change,
                json!({"metadata": {"labels": {"a": "3"}}}),
                json!({"spec": {"color": "green"}}),
                json!({}),
            ]);
        }
        9 => {
            request["verb"] = json!("update");
            request["body"] = widget(random, version);
            request["body"]["metadata"]["name"] = json!(name);
            let version = version_of(name, earlier);
            request["body"]["metadata"]["resourceVersion"] = version.into();
        }
        10 | 11 => {
            request["verb"] = json!("patch");
            request["patch"] = json!("merge");
            request["subresource"] = json!("status");
            request["body"] = json!({"status": {"size": random.below(4)}});
        }
        12 => {
            request["verb"] = json!("patch");
            request["patch"] = json!("merge");
            request["subresource"] = json!("scale");
            request["body"] = json!({"spec": {"replicas": random.below(4)}});
        }
        13 | 14 => request["verb"] = json!("delete"),
        15 | 16 => {
            request["verb"] = json!("get");
            if random.chance(30) {
                request["subresource"] = json!(random.one_of(&["status", "scale"]));
            }
        }
        17 => {
            request["verb"] = json!("deletecollection");
            request["unordered"] = json!(true);
            request["name"] = json!("");
            request["query"] = json!({"labelSelector": "a%3D1"});
        }
        _ => {
            request["verb"] = json!("get");
            request["name"] = json!("");
            if random.chance(40) {
                request["query"]["labelSelector"] = json!("a");
            }
        }
    }
    if request["verb"] != "get" && random.chance(10) {
        request["dryRun"] = json!(true);
    }
    request
}

/// Returns the version of the object after the last earlier request that names it, otherwise an outdated version.
///
/// The version of a list is not the version of an object on a server that other situations use, too.
fn version_of(name: &str, earlier: &[Value]) -> String {
    let answers_object = |request: &Value| {
        request["name"] == name && !matches!(request["verb"].as_str(), Some("delete" | "deletecollection"))
    };
    earlier
        .iter()
        .rposition(answers_object)
        .map_or_else(|| "1".to_owned(), |last| format!("<resourceVersion of request {}>", last + 1))
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::of_conversions(1, number));
    }
}
