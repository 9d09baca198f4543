//! Generates random deletions.
//!
//! They vary in options in the body and the query, preconditions, finalizers, owners, collections, evictions with
//! disruption budgets, and the deletion of namespaces.
//!
//! Not covered: the work of other components, such as garbage collection and the termination of Pods. When a namespace
//! is deleted, admit also deletes the objects in it. The deleted namespaces are therefore empty, and a finalizer keeps
//! them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::situation::{GROUP, Situation, free_widgets, namespace};
use crate::random::Random;

const NAMES: [&str; 3] = ["a", "b", "c"];
const KINDS: [(usize, &str); 7] = [
    (35, "pods"),
    (20, "configmaps"),
    (12, "widgets"),
    (12, "deployments"),
    (8, "poddisruptionbudgets"),
    (8, "jobs"),
    (5, "serviceaccounts"),
];
/// The second namespace of a situation. Requests may delete it.
const SECOND: &str = "<id>-two";
const FINALIZERS: [&str; 3] = ["example.com/keep", "orphan", "foregroundDeletion"];

impl Situation {
    /// Creates a situation about deletions from `seed` and the situation's `number`.
    pub fn of_deletions(seed: u64, number: u64) -> Self {
        Self { case: case(&mut Random::new(seed, number)), left_out: BTreeMap::new() }
    }
}

fn case(random: &mut Random) -> Value {
    let count = random.weighted(&[(55, 1), (45, 2)]);
    let mut kinds: Vec<&str> = (0..count).map(|_| random.weighted(&KINDS)).collect();
    if kinds.contains(&"pods") && random.chance(60) {
        kinds.push("poddisruptionbudgets");
    }
    kinds.sort_unstable();
    kinds.dedup();
    let has_second = random.chance(35);
    let mut cluster = vec![namespace("<ns>", Map::new())];
    if has_second {
        let mut second = namespace(SECOND, Map::new());
        second["metadata"]["finalizers"] = json!(["example.com/keep"]);
        cluster.push(second);
    }
    if kinds.contains(&"widgets") {
        cluster.push(free_widgets());
    }
    let webhooks = webhooks(random, &kinds);
    let mut made =
        Made { random, kinds, has_second, is_second_going: false, requests: Vec::new(), created: Vec::new() };
    for _ in 0..made.random.between(1, 4) {
        made.create();
    }
    for _ in 0..made.random.between(4, 9) {
        made.next();
    }
    for kind in made.kinds.clone() {
        made.requests.push(json!({"verb": "get", "resource": resource(kind)}));
    }
    json!({"version": 1, "cluster": cluster, "webhooks": webhooks, "requests": made.requests})
}

/// The requests that have been generated so far.
struct Made<'a> {
    random: &'a mut Random,
    kinds: Vec<&'static str>,
    has_second: bool,
    /// Whether the second namespace is being deleted, so that objects cannot be created in it.
    is_second_going: bool,
    requests: Vec<Value>,
    /// The numbers of the requests that create objects.
    created: Vec<usize>,
}

impl Made<'_> {
    fn next(&mut self) {
        match self.random.below(20) {
            0 | 1 => self.create(),
            2..=4 => self.change(),
            10 | 11 => self.delete_collection(),
            12..=14 if self.kinds.contains(&"pods") => self.evict(),
            15 | 16 if self.kinds.contains(&"poddisruptionbudgets") => self.budget(),
            17..=19 if self.has_second => self.second_namespace(),
            _ => self.delete(),
        }
    }

    /// Returns a request for an object that may exist, or for a collection.
    fn request(&mut self, verb: &str) -> (Value, &'static str) {
        let kind = self.random.one_of(&self.kinds);
        let mut request = json!({"verb": verb, "resource": resource(kind)});
        if self.is_second_going && self.random.chance(30) {
            request["namespace"] = json!(SECOND);
        }
        (request, kind)
    }

    fn named(&mut self, verb: &str) -> (Value, &'static str) {
        let (mut request, kind) = self.request(verb);
        request["name"] = json!(self.random.one_of(&NAMES));
        (request, kind)
    }

    fn create(&mut self) {
        let (mut request, kind) = self.named("create");
        request["body"] = object(self.random, kind);
        if !self.created.is_empty() && self.random.chance(20) {
            let number = self.random.one_of(&self.created);
            let mut owner = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": format!("<uid of request {number}>"),
            });
            if self.random.chance(50) {
                owner["blockOwnerDeletion"] = json!(true);
            }
            request["body"]["metadata"]["ownerReferences"] = json!([owner]);
        }
        self.requests.push(request);
        self.created.push(self.requests.len());
    }

    /// Adds a request that changes finalizers or the status of a Pod.
    fn change(&mut self) {
        let (mut request, kind) = self.named("patch");
        request["patch"] = json!("merge");
        request["body"] = match self.random.below(10) {
            0..=3 => json!({"metadata": {"finalizers": null}}),
            4..=6 => json!({"metadata": {"finalizers": self.random.some_of(&FINALIZERS)}}),
            7 => json!({"metadata": {"labels": {"app": self.random.one_of(&["a", "b"])}}}),
            8 => json!({"metadata": {"deletionTimestamp": null, "deletionGracePeriodSeconds": null}}),
            _ => json!({"metadata": {"deletionGracePeriodSeconds": 5}}),
        };
        if kind == "pods" && self.random.chance(50) {
            let ready = self.random.one_of(&["True", "False"]);
            request["subresource"] = json!("status");
            request["body"] = json!({"status": {
                "phase": self.random.one_of(&["Running", "Running", "Pending", "Succeeded", "Failed"]),
                "conditions": [{"type": "Ready", "status": ready}],
            }});
        }
        self.requests.push(request);
    }

    fn delete(&mut self) {
        let (mut request, _) = self.named("delete");
        self.options(&mut request);
        self.requests.push(request);
    }

    fn delete_collection(&mut self) {
        let (mut request, _) = self.request("deletecollection");
        request["unordered"] = json!(true);
        self.options(&mut request);
        if self.random.chance(50) {
            request["query"]["labelSelector"] =
                json!(self.random.one_of(&["app%3Da", "app", "!app", "app!%3Da"]));
        }
        if self.random.chance(15) {
            request["query"]["fieldSelector"] =
                json!(self.random.one_of(&["metadata.name%3Da", "metadata.name!%3Da"]));
        }
        if self.random.chance(10) {
            request["query"]["limit"] = json!(self.random.one_of(&["1", "2"]));
        }
        self.requests.push(request);
    }

    /// Adds deletion options to the body, to the query, or to neither.
    fn options(&mut self, request: &mut Value) {
        match self.random.below(10) {
            0..=5 => {
                let mut body = Value::Object(self.delete_options());
                if self.random.chance(70) {
                    body["kind"] = json!("DeleteOptions");
                    body["apiVersion"] =
                        json!(self.random.one_of(&["v1", "v1", "meta.k8s.io/v1", "policy/v1"]));
                }
                request["body"] = body;
            }
            6 | 7 => {
                if self.random.chance(60) {
                    request["query"]["gracePeriodSeconds"] =
                        json!(self.random.one_of(&["0", "1", "30", "-1", "x", ""]));
                }
                if self.random.chance(40) {
                    request["query"]["propagationPolicy"] =
                        json!(self.random.one_of(&["Orphan", "Background", "Foreground", "Other", ""]));
                }
                if self.random.chance(15) {
                    request["query"]["orphanDependents"] = json!(self.random.one_of(&["true", "false", "x"]));
                }
                if self.random.chance(20) {
                    request["query"]["dryRun"] = json!(self.random.one_of(&["All", "All", "Other", ""]));
                }
            }
            _ => {}
        }
    }

    fn delete_options(&mut self) -> Map<String, Value> {
        let mut options = Map::new();
        let mut set = |name: &str, value: Value| drop(options.insert(name.to_owned(), value));
        if self.random.chance(35) {
            let seconds = [json!(0), json!(1), json!(30), json!(-1), json!(-7), Value::Null];
            set("gracePeriodSeconds", self.random.one_of(&seconds));
        }
        if self.random.chance(40) {
            let policies = ["Orphan", "Background", "Foreground", "Foreground", "Other", ""];
            set("propagationPolicy", json!(self.random.one_of(&policies)));
        }
        if self.random.chance(12) {
            set("orphanDependents", self.random.one_of(&[json!(true), json!(false), Value::Null]));
        }
        if self.random.chance(35) {
            let mut preconditions = json!({});
            let number = self.random.between(1, self.requests.len().max(1));
            if self.random.chance(60) {
                let created =
                    if self.created.is_empty() { number } else { self.random.one_of(&self.created) };
                preconditions["uid"] =
                    json!(self.random.one_of(&[format!("<uid of request {created}>"), "u".to_owned()]));
            }
            if self.random.chance(60) {
                let version = format!("<resourceVersion of request {number}>");
                preconditions["resourceVersion"] =
                    json!(self.random.one_of(&[version.clone(), version, "1".to_owned()]));
            }
            set("preconditions", preconditions);
        }
        if self.random.chance(10) {
            set("dryRun", self.random.one_of(&[json!(["All"]), json!(["All"]), json!(["Other"]), json!([])]));
        }
        if self.random.chance(5) {
            set("ignoreStoreReadErrorWithClusterBreakingPotential", json!(self.random.chance(50)));
        }
        if self.random.chance(4) {
            set("bogus", json!(1));
        }
        options
    }

    fn evict(&mut self) {
        let name = self.random.one_of(&NAMES);
        let mut body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        if self.random.chance(50) {
            body["deleteOptions"] = Value::Object(self.delete_options());
        }
        if self.random.chance(5) {
            body["metadata"]["name"] = json!("other");
        }
        let mut request = json!({"verb": "create", "resource": "pods", "subresource": "eviction", "name": name, "body": body});
        if self.random.chance(10) {
            request["dryRun"] = json!(true);
        }
        if self.is_second_going && self.random.chance(20) {
            request["namespace"] = json!(SECOND);
        }
        self.requests.push(request);
    }

    /// Adds a request that writes the status of a disruption budget, as its controller does.
    fn budget(&mut self) {
        let mut status = json!({
            "disruptionsAllowed": self.random.weighted(&[(25, 0), (50, 1), (25, 2)]),
            "currentHealthy": self.random.below(4), "desiredHealthy": self.random.below(3),
            "expectedPods": self.random.below(4), "observedGeneration": self.random.weighted(&[(15, 0), (85, 1)]),
        });
        if self.random.chance(10) {
            status["disruptedPods"] = json!({self.random.one_of(&NAMES): "2026-01-01T00:00:00Z"});
        }
        self.requests.push(json!({
            "verb": "patch", "resource": resource("poddisruptionbudgets"), "subresource": "status",
            "name": self.random.one_of(&NAMES), "patch": "merge", "body": {"status": status},
        }));
    }

    fn second_namespace(&mut self) {
        let mut request = json!({"verb": "delete", "resource": "namespaces", "name": SECOND});
        match self.random.below(10) {
            0..=4 if self.is_second_going => self.options(&mut request),
            // This case always begins a deletion.
            0..=4 => {
                self.is_second_going = true;
                let options =
                    [json!({}), json!({"propagationPolicy": "Orphan"}), json!({"orphanDependents": false})];
                request["body"] = self.random.one_of(&options);
            }
            5 | 6 => {
                let finalizers =
                    self.random.one_of(&[json!([]), json!(["kubernetes"]), json!(["example.com/keep"])]);
                request = json!({
                    "verb": "update", "resource": "namespaces", "name": SECOND, "subresource": "finalize",
                    "body": {
                        "apiVersion": "v1", "kind": "Namespace",
                        "metadata": {"name": SECOND, "finalizers": ["example.com/keep"]},
                        "spec": {"finalizers": finalizers},
                    },
                });
            }
            7 => request = json!({"verb": "get", "resource": "namespaces", "name": SECOND}),
            _ => {
                request = json!({
                    "verb": "patch", "resource": "namespaces", "name": SECOND, "patch": "merge",
                    "body": self.random.one_of(&[
                        json!({"metadata": {"finalizers": ["example.com/keep"]}}),
                        json!({"metadata": {"finalizers": ["example.com/keep", "example.com/new"]}}),
                        json!({"metadata": {"labels": {"team": "a"}}}),
                    ]),
                });
            }
        }
        self.requests.push(request);
    }
}

/// Returns the resource of a kind in the format of requests.
fn resource(kind: &str) -> String {
    match kind {
        "widgets" => format!("{GROUP}/v1/widgets"),
        "deployments" => "apps/v1/deployments".to_owned(),
        "jobs" => "batch/v1/jobs".to_owned(),
        "poddisruptionbudgets" => "policy/v1/poddisruptionbudgets".to_owned(),
        kind => kind.to_owned(),
    }
}

/// Returns a valid object without a name.
fn object(random: &mut Random, kind: &str) -> Value {
    let containers = json!([{"name": "c", "image": "example.com/c:1"}]);
    let mut object = match kind {
        "widgets" => {
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "spec": {"k": "v"}})
        }
        "deployments" => json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}},
        }}),
        "jobs" => json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {
            "suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
        }}),
        "poddisruptionbudgets" => budget(random),
        "serviceaccounts" => json!({"apiVersion": "v1", "kind": "ServiceAccount"}),
        "pods" => pod(random, &containers),
        _ => json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}}),
    };
    if random.chance(70) {
        object["metadata"]["labels"] = json!({"app": random.one_of(&["a", "a", "b"])});
    }
    if random.chance(25) {
        object["metadata"]["finalizers"] = json!(random.some_of(&FINALIZERS));
    }
    object
}

fn pod(random: &mut Random, containers: &Value) -> Value {
    let mut spec = json!({"containers": containers});
    // Only Pods that run on a node are deleted gracefully.
    if random.chance(50) {
        spec["nodeName"] = json!("n");
    }
    if random.chance(30) {
        spec["terminationGracePeriodSeconds"] = json!(random.one_of(&[0, 1, 5, 30]));
    }
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec})
}

fn budget(random: &mut Random) -> Value {
    let mut spec = random.one_of(&[
        json!({"minAvailable": 1}),
        json!({"minAvailable": "50%"}),
        json!({"maxUnavailable": 1}),
        json!({"maxUnavailable": 0}),
    ]);
    spec["selector"] = random.one_of(&[
        json!({"matchLabels": {"app": "a"}}),
        json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        json!({}),
    ]);
    if random.chance(40) {
        spec["unhealthyPodEvictionPolicy"] = json!(random.one_of(&["IfHealthyBudget", "AlwaysAllow"]));
    }
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec})
}

/// Returns webhooks that are called for deletions.
///
/// Situations with Pods do not have webhooks, because a server admits the deletion of a Pod two or three times.
fn webhooks(random: &mut Random, kinds: &[&str]) -> Vec<Value> {
    if kinds.contains(&"pods") || random.chance(60) {
        return Vec::new();
    }
    let behavior =
        random.one_of(&[json!("allow"), json!("allow"), json!({"deny": {"code": 403, "message": "no"}})]);
    vec![json!({
        "name": "w", "type": "validating", "behavior": behavior,
        "rules": [{
            "operations": ["DELETE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
            "scope": "Namespaced",
        }],
    })]
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case() {
        cases(300, |number| Situation::of_deletions(1, number));
    }
}
