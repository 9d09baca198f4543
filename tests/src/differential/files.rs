//! Generates random `staticManifestsDir` directories, in addition to configurations in the API.
//!
//! The servers are compared by the calls of all webhooks and, for invalid directories, by the startup error.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::behavior;
use super::situation::{Generator, Situation};
use super::webhooks::Leave;
use crate::names::CASE_LABEL;
use crate::random::Random;

/// The number of consecutive situations that share the files, and therefore a server.
///
/// The last of them has its own directory, which is invalid, so the server does not start.
const TOGETHER: u64 = 25;
/// The offset in the sequence of random numbers that separates the directories from the situations.
const FOLDERS: u64 = 1 << 40;

impl Situation {
    /// Creates a situation about configurations in files from `seed` and the situation's `number`.
    ///
    /// The situation does not have the `excluded` features.
    pub fn of_files(seed: u64, number: u64, excluded: &BTreeSet<String>) -> Self {
        if number % TOGETHER == TOGETHER - 1 {
            let mut random = Random::new(seed, FOLDERS + number);
            let mut folder = Folder::new(&mut random);
            folder.spoil(&mut random);
            let case = json!({
                "version": 1, "plugins": folder.plugins(&mut random), "requests": [{"verb": "create", "name": "x"}],
            });
            return Self { case, left_out: std::collections::BTreeMap::new() };
        }
        let mut random = Random::new(seed, 2 * FOLDERS + number / TOGETHER);
        let folder = Folder::new(&mut random);
        let plugins = folder.plugins(&mut random);
        let mut situation = Self::new(seed, number, excluded);
        let mut generator = Generator::new(seed, FOLDERS + number, excluded);
        add_webhooks(&mut generator, &folder, &mut situation.case);
        add_requests(&mut generator.random, &mut situation.case);
        situation.case["plugins"] = plugins;
        situation.case["serial"] = json!(true);
        situation
    }
}

/// The files in the directories of both plugins.
#[derive(Debug)]
struct Folder {
    /// The configurations of each plugin. The mutating plugin is first.
    configurations: [Vec<Value>; 2],
    /// The `staticManifestsDir` of each plugin; empty if it is not set.
    places: [String; 2],
    /// Additional files, by name.
    others: Map<String, Value>,
}

const KINDS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
const PLUGINS: [&str; 2] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];

impl Folder {
    fn new(random: &mut Random) -> Self {
        let mut number = 0;
        let configurations = KINDS.map(|kind| {
            let names = random.some_of(&["b", "a", "z", "m.n"]);
            names
                .into_iter()
                .map(|name| {
                    let count = random.weighted(&[(60, 1), (30, 2), (10, 0)]);
                    let webhooks: Vec<Value> = (0..count)
                        .map(|_| {
                            number += 1;
                            webhook(random, number, kind)
                        })
                        .collect();
                    json!({
                        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                        "metadata": {"name": format!("{name}.static.k8s.io")}, "webhooks": webhooks,
                    })
                })
                .collect()
        });
        let places = match random.weighted(&[(60, 2), (20, 0), (20, 1)]) {
            2 => ["<folder>/mutating", "<folder>/validating"],
            0 => ["<folder>/mutating", ""],
            _ => ["", "<folder>/validating/"],
        };
        Self { configurations, places: places.map(str::to_owned), others: Map::new() }
    }

    /// Returns the active webhooks, each with the index of its plugin.
    fn webhooks(&self) -> Vec<(usize, &Value)> {
        let mut all = Vec::new();
        for (plugin, configurations) in self.configurations.iter().enumerate() {
            if !self.places[plugin].is_empty() {
                let webhooks = configurations.iter().filter_map(|it| it["webhooks"].as_array()).flatten();
                all.extend(webhooks.map(|webhook| (plugin, webhook)));
            }
        }
        all
    }

    /// Returns the plugin settings of the server.
    fn plugins(&self, random: &mut Random) -> Value {
        let mut files = Map::new();
        files.insert("mutating/".to_owned(), json!(""));
        files.insert("validating/".to_owned(), json!(""));
        for (configurations, folder) in self.configurations.iter().zip(["mutating", "validating"]) {
            let mut left = configurations.clone();
            while !left.is_empty() {
                let count = random.between(1, left.len());
                let these: Vec<Value> = left.drain(..count).collect();
                let (text, endings): (String, &[&str]) = written(random, &these);
                let name = random.one_of(&["a", "Z", "10", "9", "b.c", "m"]);
                let name = format!("{folder}/{}{name}{}", left.len(), random.one_of(endings));
                files.insert(name, json!(text));
            }
            if random.chance(30) {
                let (name, text) = random.one_of(&[
                    ("readme.txt", "no manifest"),
                    ("below/x.yaml", "nothing: true"),
                    ("x.yaml/", ""),
                    ("empty.yaml", ""),
                    ("empty.json", " \n"),
                    ("backup.yaml~", "{"),
                    ("e.yaml", "---\n---\n"),
                ]);
                files.insert(format!("{folder}/{name}"), json!(text));
            }
        }
        files.extend(self.others.clone());
        let entries = PLUGINS.iter().zip(&self.places).filter(|(_, place)| !place.is_empty());
        let entries: Vec<Value> = entries
            .map(|(name, place)| {
                json!({"name": name, "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                    "staticManifestsDir": place,
                }})
            })
            .collect();
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": entries,
        });
        let names: Vec<&Value> = self
            .configurations
            .iter()
            .flatten()
            .filter_map(|it| it["webhooks"].as_array())
            .flatten()
            .collect();
        let names: BTreeSet<&str> = names.into_iter().filter_map(|it| it["name"].as_str()).collect();
        json!({"configuration": configuration.to_string(), "files": files, "webhooks": names})
    }

    /// Makes the files invalid, so that the server does not start.
    fn spoil(&mut self, random: &mut Random) {
        let plugin = usize::from(self.places[0].is_empty());
        let folder = ["mutating", "validating"][plugin];
        let other = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": KINDS[1 - plugin],
            "metadata": {"name": "o.static.k8s.io"},
        });
        let configurations = &mut self.configurations[plugin];
        let place = random.below(configurations.len());
        let chosen = &mut configurations[place];
        let mut entry = webhook(random, 99, KINDS[plugin]);
        match random.below(24) {
            0 => {
                chosen["metadata"]["name"] =
                    json!(random.one_of(&["a", "a.static.k8s.io.", ".static.k8s.io", "A.static.k8s.io"]));
            }
            1 => {
                chosen["metadata"] = random.one_of(&[
                    json!({}),
                    json!({"name": ""}),
                    json!(null),
                    json!({"generateName": "a"}),
                ]);
            }
            2 => chosen["kind"] = json!(random.one_of(&["ConfigMap", "Nothing", ""])),
            3 => {
                chosen["apiVersion"] = json!(random.one_of(&[
                    "v1",
                    "admissionregistration.k8s.io/v1beta1",
                    "admissionregistration.k8s.io/v2",
                    ""
                ]));
            }
            4 => chosen["zoo"] = json!(1),
            5 => {
                let copy = chosen.clone();
                self.others.insert(format!("{folder}/zz.json"), json!(copy.to_string()));
            }
            6 => drop(self.others.insert(format!("{folder}/o.yaml"), json!(other.to_string()))),
            7 => {
                let (name, text) = random.one_of(&[
                    ("o.yaml", "# nothing\n"),
                    ("o.yaml", "a: [\n"),
                    ("o.json", "{"),
                    ("o.json", "[]"),
                    ("o.yaml", "--- more\n"),
                    ("o.yaml", "nothing\n"),
                    ("o.json", "{} {}"),
                    ("o.yaml", "a: 1\na: 2\n"),
                    ("o.yaml", "apiVersion: v1\nkind: List\nitems: [{kind: x}]\n"),
                    ("o.yaml", "apiVersion: v1\nkind: List\nitems: 5\n"),
                    ("o.json", "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [null]}"),
                    ("o.yaml", "\t\n"),
                ]);
                self.others.insert(format!("{folder}/{name}"), json!(text));
            }
            8 => {
                let place = random.one_of(&[
                    "relative",
                    "<folder>/nowhere",
                    "<folder>/admission.yaml",
                    "/<folder>/../nowhere",
                    ".",
                ]);
                place.clone_into(&mut self.places[plugin]);
            }
            _ => {
                spoil_webhook(random, &mut entry);
                match chosen["webhooks"].as_array_mut() {
                    Some(webhooks) => webhooks.push(entry),
                    None => chosen["webhooks"] = json!([entry]),
                }
            }
        }
    }
}

/// Makes a webhook's entry invalid.
fn spoil_webhook(random: &mut Random, entry: &mut Value) {
    for _ in 0..random.weighted(&[(60, 1), (30, 2), (10, 3)]) {
        match random.below(14) {
            0 => entry["clientConfig"] = json!({"service": {"namespace": "a", "name": "b"}}),
            1 => entry["clientConfig"] = random.one_of(&[json!({}), json!(null), json!({"url": ""})]),
            2 => {
                entry["clientConfig"]["url"] =
                    json!(random.one_of(&["http://a/", "https://a/?b", "https://", "a", "https://u@a/#f"]));
            }
            3 => entry["clientConfig"]["caBundle"] = json!(random.one_of(&["bm8gcGVt", "!", ""])),
            4 => entry["sideEffects"] = json!(random.one_of(&["Some", "Unknown", ""])),
            5 => {
                entry["admissionReviewVersions"] =
                    random.one_of(&[json!([]), json!(["v2"]), json!(["v1", "v1"]), json!(null)]);
            }
            6 => entry["timeoutSeconds"] = json!(random.one_of(&[0, 31, -1])),
            7 => entry["name"] = json!(random.one_of(&["a", "", "a.b", "A.b.c", "a_b.c.d"])),
            8 => {
                entry["rules"] = json!([{"operations": ["ALL"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
            }
            9 => {
                entry["rules"] = json!([{"operations": ["*", "CREATE"], "apiGroups": [], "apiVersions": ["*", "v1"], "resources": ["*", "pods"]}]);
            }
            10 => entry["failurePolicy"] = json!(random.one_of(&["Retry", ""])),
            11 => {
                entry["matchConditions"] =
                    json!([{"name": random.one_of(&["a", "", "a b"]), "expression": "object.x +"}]);
            }
            12 => entry["unknown"] = json!({"a": 1}),
            _ => entry["namespaceSelector"] = json!({"matchExpressions": [{"key": "a b", "operator": "In"}]}),
        }
    }
}

/// Returns the content of a file with these configurations, and the possible file extensions.
fn written(random: &mut Random, configurations: &[Value]) -> (String, &'static [&'static str]) {
    let texts: Vec<String> = configurations.iter().map(ToString::to_string).collect();
    let items = texts.join(", ");
    let (kind, group) = match configurations.first().and_then(|it| it["kind"].as_str()) {
        Some(kind) if random.chance(50) => (format!("{kind}List"), "admissionregistration.k8s.io/v1"),
        _ => ("List".to_owned(), "v1"),
    };
    match configurations {
        [_] if random.chance(40) => (texts.concat(), &[".json", ".JSON", ".yaml"]),
        _ if random.chance(50) => {
            let between = random.one_of(&["\n---\n", "\n---\n# a comment\n", "\n--- \n\n"]);
            (texts.join(between), &[".yaml", ".yml", ".YAML"])
        }
        _ => (
            format!("{{\"apiVersion\": \"{group}\", \"kind\": \"{kind}\", \"items\": [{items}]}}"),
            &[".json", ".yaml"],
        ),
    }
}

/// Returns a webhook that is called only for the situations' namespaces and for cluster-scoped objects.
fn webhook(random: &mut Random, number: usize, kind: &str) -> Value {
    let name = format!("f{number}.example.com");
    let rules: Vec<Value> = (0..random.weighted(&[(70, 1), (30, 2)])).map(|_| rule(random)).collect();
    let path = random.one_of(&["/", "/a", ""]);
    let mut webhook = json!({
        "name": name, "rules": rules, "admissionReviewVersions": random.one_of(&[json!(["v1"]), json!(["v1beta1", "v1"])]),
        "sideEffects": random.one_of(&["None", "NoneOnDryRun"]),
        "clientConfig": {"url": format!("https://127.0.0.1:<port of {name}>{path}"), "caBundle": "<caBundle>"},
        "namespaceSelector": {"matchExpressions": [{"key": CASE_LABEL, "operator": "Exists"}]},
    });
    // The order of several rejections is random.
    if kind == KINDS[1] {
        webhook["failurePolicy"] = json!("Ignore");
    } else {
        if random.chance(60) {
            webhook["failurePolicy"] = json!(random.one_of(&["Ignore", "Fail"]));
        }
        if random.chance(60) {
            webhook["reinvocationPolicy"] = json!(random.one_of(&["Never", "IfNeeded", "IfNeeded"]));
        }
    }
    if random.chance(30) {
        webhook["matchPolicy"] = json!(random.one_of(&["Exact", "Equivalent"]));
    }
    if random.chance(20) {
        webhook["objectSelector"] = json!({"matchExpressions": [{"key": "env", "operator": "Exists"}]});
    }
    if random.chance(25) {
        let expression = random.one_of(&[
            "request.operation != 'DELETE'",
            "object.metadata.name.startsWith('z')",
            "request.name == 'x'",
            "authorizer.group('').resource('pods').check('get').allowed()",
        ]);
        webhook["matchConditions"] = json!([{"name": "c", "expression": expression}]);
    }
    webhook
}

fn rule(random: &mut Random) -> Value {
    let operations =
        if random.chance(60) { vec!["*"] } else { random.some_of(&["CREATE", "UPDATE", "DELETE"]) };
    let (group, resource, scope) = random.one_of(&[
        ("", "configmaps", "*"),
        ("", "configmaps", "Namespaced"),
        ("", "*", "Namespaced"),
        ("", "namespaces", "*"),
        ("*", "*", "Namespaced"),
        ("admissionregistration.k8s.io", "*", "*"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "Cluster"),
        ("admissionregistration.k8s.io", "*/*", "*"),
        ("authorization.k8s.io", "*", "*"),
        ("apps", "deployments", "*"),
    ]);
    json!({
        "operations": operations, "apiGroups": [group], "apiVersions": [random.one_of(&["*", "v1"])],
        "resources": [resource], "scope": scope,
    })
}

/// Adds the webhooks of the files to a case, with their behavior in this situation.
fn add_webhooks(generator: &mut Generator<'_>, folder: &Folder, case: &mut Value) {
    let Some(webhooks) = case["webhooks"].as_array_mut() else { return };
    for (plugin, webhook) in folder.webhooks() {
        let is_mutating = plugin == 0;
        let leave = Leave { refuse: is_mutating, warn: is_mutating };
        let behavior = match generator.random.below(4) {
            0 => json!("allow"),
            1 if is_mutating => json!({"always-mutate": {"labels": {"from": "file"}}}),
            _ => behavior::behavior(generator, is_mutating, leave),
        };
        webhooks.push(json!({
            "name": webhook["name"], "type": if is_mutating { "mutating" } else { "validating" },
            "inFile": true, "behavior": behavior,
        }));
    }
}

/// Adds requests for configurations, for which webhooks in the API are not called.
fn add_requests(random: &mut Random, case: &mut Value) {
    let Some(requests) = case["requests"].as_array_mut() else { return };
    let which = random.below(2);
    let resource = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"][which];
    let resource = format!("admissionregistration.k8s.io/v1/{resource}");
    let name = random.one_of(&["zx-<id>", "zx-<id>", "zx-<id>", "zx-<id>.static.k8s.io"]);
    let one = |verb: &str| json!({"verb": verb, "resource": resource, "name": name});
    let mut created = one("create");
    created["body"] = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": KINDS[which], "metadata": {"name": name},
        "webhooks": [],
    });
    let mut changed = one("patch");
    changed["patch"] = json!("merge");
    changed["body"] = json!({"metadata": {"labels": {"env": "a"}}});
    let mut review = json!({
        "verb": "create", "resource": "authorization.k8s.io/v1/subjectaccessreviews", "namespace": "",
        "body": {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}},
        },
    });
    if random.chance(30) {
        review["resource"] = json!("authorization.k8s.io/v1/selfsubjectaccessreviews");
        review["body"]["kind"] = json!("SelfSubjectAccessReview");
        review["body"]["spec"] = json!({"nonResourceAttributes": {"path": "/", "verb": "get"}});
    }
    for request in [created, changed, review, one("delete")] {
        if random.chance(60) {
            requests.push(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case_and_several_have_one_folder() {
        let cases = cases(100, |number| Situation::of_files(1, number, &BTreeSet::new()));
        let servers: BTreeSet<_> = cases.into_iter().map(|case| case.plugins).collect();
        // Four valid ones, and four with which no server starts.
        assert_eq!(servers.len(), 8);
    }
}
