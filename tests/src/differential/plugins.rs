//! Generates random situations about in-tree admission plugins.
//!
//! The situations vary in the enabled plugins, in the configurations of these plugins, in the objects that the plugins
//! read, default, or reject, and in the webhooks that see the result and change it again.
//!
//! Not covered: behavior of a real server without a fixed order, such as several limits of one kind, which the server
//! keeps in a map, and several default classes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::pods;
use super::situation::{Generator, Situation, namespace};
use crate::random::Random;

/// The sets of enabled plugins. There are only a few sets, because each needs its own real server.
const ENABLED: [&[&str]; 3] = [
    &[],
    &["AlwaysPullImages", "PodNodeSelector", "LimitPodHardAntiAffinityTopology", "NamespaceExists"],
    &["ServiceAccount", "NodeRestriction"],
];
const DISABLED: [&[&str]; 3] = [
    &[],
    &["DefaultTolerationSeconds"],
    &["LimitRanger", "Priority", "RuntimeClass", "DefaultStorageClass", "NamespaceLifecycle"],
];
/// The configuration of `PodSecurity` and `PodNodeSelector`: defaults for namespaces without labels and annotations.
const CONFIGURATION: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline, enforce-version: v1.30, audit: restricted, warn: restricted, warn-version: v1.20}
    exemptions: {usernames: [exempt-user]}
- name: PodNodeSelector
  configuration:
    podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: 'zone=a'}
";

/// The configuration for credentials: mutating webhooks are called with a token, and validating webhooks without one.
const AUTHENTICATING: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: <credentials>
";
const CREDENTIALS: &str = "\
apiVersion: v1
kind: Config
users:
- name: '*'
  user: {token: a-token}
";

/// The objects that other objects of a situation may refer to.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// The names of `PriorityClass` objects.
    pub(super) priorities: Vec<&'static str>,
    /// The names of `RuntimeClass` objects.
    pub(super) runtimes: Vec<&'static str>,
    /// Whether a service account is needed.
    pub(super) service_account: bool,
}

impl Situation {
    /// Creates a situation about the in-tree plugins from `seed` and the situation's `number`.
    pub fn of_plugins(seed: u64, number: u64) -> Self {
        let none = BTreeSet::new();
        let mut generator = Generator::new(seed, number, &none);
        Self { case: case(&mut generator.random), left_out: std::collections::BTreeMap::new() }
    }
}

fn case(random: &mut Random) -> Value {
    let set = random.weighted(&[(60, 0), (25, 1), (15, 2)]);
    let mut plugins = json!({"enable": ENABLED[set], "disable": DISABLED[set]});
    if set == 1 {
        plugins["configuration"] = json!(CONFIGURATION);
    }
    if set == 2 {
        plugins["configuration"] = json!(AUTHENTICATING);
        plugins["credentials"] = json!(CREDENTIALS);
    }
    let mut cluster = Vec::new();
    for name in ["<ns>", "<id>-two"] {
        cluster.push(of_namespace(random, name, set == 1));
        if random.chance(45) {
            cluster.push(limit_range(random, name));
        }
        if set == 2 {
            cluster.push(service_account(random, name));
        }
    }
    let mut classes = Classes { service_account: set == 2, ..Classes::default() };
    add_classes(random, &mut cluster, &mut classes);
    // A default class applies to the objects of all cases.
    let is_marked = random.chance(12);
    if is_marked {
        cluster.extend(marked_classes(random));
    }
    let webhooks = webhooks(random, &classes);
    let count = random.between(3, 7);
    let mut requests = Vec::new();
    for number in 0..count {
        requests.extend(request(random, &classes, number));
    }
    let mut case = json!({"version": 1, "plugins": plugins, "cluster": cluster, "webhooks": webhooks, "requests": requests});
    if is_marked {
        case["serial"] = json!(true);
    }
    case
}

const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
const VERSIONS: [&str; 6] = ["latest", "v1.0", "v1.19", "v1.24", "v1.30", "v1.37"];

fn security_labels(random: &mut Random) -> Map<String, Value> {
    let mut labels = Map::new();
    for mode in ["enforce", "audit", "warn"] {
        if random.chance(if mode == "enforce" { 40 } else { 50 }) {
            labels.insert(format!("pod-security.kubernetes.io/{mode}"), json!(random.one_of(&LEVELS)));
        }
        if random.chance(25) {
            labels.insert(
                format!("pod-security.kubernetes.io/{mode}-version"),
                json!(random.one_of(&VERSIONS)),
            );
        }
    }
    labels
}

fn of_namespace(random: &mut Random, name: &str, has_selectors: bool) -> Value {
    let labels = if random.chance(75) { security_labels(random) } else { Map::new() };
    let mut object = namespace(name, labels);
    if has_selectors && random.chance(50) {
        let selector = random.one_of(&["zone=b", "", "zone=a,disk=ssd"]);
        object["metadata"]["annotations"] = json!({"scheduler.alpha.kubernetes.io/node-selector": selector});
    }
    object
}

/// Returns limits for a single resource, because errors about several resources have no fixed order.
fn limit_range(random: &mut Random, namespace: &str) -> Value {
    let mut limits = Vec::new();
    let resource = random.one_of(&["cpu", "memory"]);
    let amounts: [&str; 4] =
        if resource == "cpu" { ["50m", "100m", "200m", "1"] } else { ["16Mi", "32Mi", "64Mi", "1Gi"] };
    let mut limit = json!({"type": "Container"});
    for (field, amount) in ["min", "defaultRequest", "default", "max"].iter().zip(amounts) {
        if random.chance(55) {
            limit[*field] = json!({resource: amount});
        }
    }
    if random.chance(20) {
        limit["maxLimitRequestRatio"] = json!({resource: "4"});
    }
    limits.push(limit);
    if random.chance(30) {
        limits.push(
            json!({"type": "Pod", "max": {resource: if resource == "cpu" { "1500m" } else { "1536Mi" }}}),
        );
    }
    if random.chance(40) {
        limits.push(
            json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}),
        );
    }
    json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits", "namespace": namespace},
        "spec": {"limits": limits},
    })
}

fn service_account(random: &mut Random, namespace: &str) -> Value {
    let mut account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace},
    });
    if random.chance(40) {
        account["imagePullSecrets"] = json!([{"name": "pull"}]);
    }
    if random.chance(30) {
        account["automountServiceAccountToken"] = json!(random.chance(50));
    }
    account
}

fn add_classes(random: &mut Random, cluster: &mut Vec<Value>, classes: &mut Classes) {
    if random.chance(50) {
        let mut class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "<id>-high"},
            "value": 1000,
        });
        if random.chance(40) {
            class["preemptionPolicy"] = json!("Never");
        }
        cluster.push(class);
        classes.priorities = vec!["<id>-high", "system-node-critical", "absent"];
    }
    if random.chance(50) {
        let mut class = json!({
            "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "<id>-vm"}, "handler": "h",
        });
        if random.chance(60) {
            class["overhead"] = json!({"podFixed": {"cpu": "250m", "memory": "64Mi"}});
        }
        if random.chance(50) {
            class["scheduling"] = json!({"nodeSelector": {"kind": "vm"}});
            if random.chance(60) {
                class["scheduling"]["tolerations"] = json!([{"key": "vm", "operator": "Exists"}]);
            }
        }
        cluster.push(class);
        classes.runtimes = vec!["<id>-vm", "<id>-vm", "absent"];
    }
    if random.chance(40) {
        let mut class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "<id>-grows"},
            "provisioner": "example.com/p",
        });
        if random.chance(60) {
            class["allowVolumeExpansion"] = json!(random.chance(70));
        }
        cluster.push(class);
    }
}

/// Returns default classes. They apply to objects that do not name a class.
fn marked_classes(random: &mut Random) -> Vec<Value> {
    let mut all = vec![
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/p",
            "metadata": {"name": "<id>-usual", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        }),
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": "example.com/c"},
            "metadata": {"name": "<id>-usual", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        }),
    ];
    if random.chance(50) {
        all.push(json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "<id>-usual"},
            "value": 17, "globalDefault": true,
        }));
    }
    all
}

fn webhooks(random: &mut Random, classes: &Classes) -> Vec<Value> {
    let count = random.between(1, 4);
    let refuses = random.below(count);
    (0..count)
        .map(|place| {
            let is_mutating = random.chance(65);
            let mut webhook = json!({
                "name": format!("w{place}"), "type": if is_mutating { "mutating" } else { "validating" },
                "configuration": random.one_of(&["a", "b"]),
            });
            if is_mutating {
                webhook["reinvocationPolicy"] = json!(random.one_of(&["Never", "IfNeeded", "IfNeeded"]));
            }
            let of_what = random.weighted(&[(65, "pods"), (15, "claims"), (20, "all")]);
            webhook["rules"] = json!([match of_what {
                "pods" => rule(random, &[""], &["pods"]),
                "claims" => rule(random, &[""], &["persistentvolumeclaims"]),
                _ => rule(random, &["", "apps", "batch", "networking.k8s.io"], &["*"]),
            }]);
            webhook["behavior"] = match (is_mutating, of_what) {
                (true, "pods") if random.chance(80) => pods::behavior(random, classes),
                (true, "claims") if random.chance(70) => of_claims(random),
                (true, _) if random.chance(30) => json!({"always-mutate": {"labels": {"seen": "yes"}}}),
                (false, _) if place == refuses && random.chance(25) => {
                    json!({"deny": {"message": "not today"}})
                }
                _ => json!("allow"),
            };
            webhook
        })
        .collect()
}

/// Returns a rule for namespaced objects only, because other situations create cluster-scoped objects.
fn rule(random: &mut Random, groups: &[&str], resources: &[&str]) -> Value {
    let operations =
        random.one_of(&[json!(["CREATE"]), json!(["CREATE"]), json!(["CREATE", "UPDATE"]), json!(["*"])]);
    json!({
        "operations": operations, "apiGroups": groups, "apiVersions": ["v1"], "resources": resources,
        "scope": "Namespaced",
    })
}

fn of_claims(random: &mut Random) -> Value {
    let operation = random.one_of(&[
        json!({"op": "add", "path": "/spec/storageClassName", "value": "<id>-grows"}),
        json!({"op": "add", "path": "/spec/storageClassName", "value": ""}),
        json!({"op": "replace", "path": "/spec/resources/requests/storage", "value": "8Gi"}),
        json!({"op": "add", "path": "/metadata/finalizers", "value": ["example.com/keep"]}),
    ]);
    json!({"when": {"if": {"operations": ["CREATE"]}, "then": {"patch": {"operations": [operation]}}}})
}

fn request(random: &mut Random, classes: &Classes, number: usize) -> Vec<Value> {
    let mut request = match random.below(20) {
        0..=9 => create_pod(random, classes, number),
        10 => json!({
            "verb": "patch", "resource": "pods", "name": format!("p{}", random.below(number + 1)), "patch": "merge",
            "body": {"metadata": {"labels": {"a": "b"}}},
        }),
        11..=13 => pods::workload(random, classes, number),
        14..=16 => claim(random, &format!("c{number}")),
        17 => return grown_claim(random, number),
        18 => ingress(random, number),
        _ => labels_of_namespace(random),
    };
    let is_namespace = request["resource"] == "namespaces";
    if !is_namespace && random.chance(40) {
        request["namespace"] = json!("<id>-two");
    }
    if random.chance(10) {
        request["dryRun"] = json!(true);
    }
    if random.chance(10) {
        let name = random.one_of(&["exempt-user", "jane"]);
        request["user"] = json!({"name": name, "groups": ["system:masters"]});
    }
    vec![request]
}

fn create_pod(random: &mut Random, classes: &Classes, number: usize) -> Value {
    let spec = pods::spec(random, classes);
    json!({
        "verb": "create", "resource": "pods", "name": format!("p{number}"),
        "body": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "a"}}, "spec": spec},
    })
}

fn claim(random: &mut Random, name: &str) -> Value {
    let storage = random.one_of(&["1Gi", "2Gi", "512Mi", "9Gi"]);
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}});
    match random.below(4) {
        0 => spec["storageClassName"] = json!(""),
        1 | 2 => spec["storageClassName"] = json!("<id>-grows"),
        _ => {}
    }
    json!({
        "verb": "create", "resource": "persistentvolumeclaims", "name": name,
        "body": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec},
    })
}

/// Returns requests that enlarge a bound claim and do not change any other field.
fn grown_claim(random: &mut Random, number: usize) -> Vec<Value> {
    let name = format!("c{number}");
    let patch = |body: Value| {
        json!({
            "verb": "patch", "resource": "persistentvolumeclaims", "name": name, "patch": "merge", "body": body,
        })
    };
    let mut bound = patch(json!({"status": {
        "phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
    }}));
    bound["subresource"] = json!("status");
    let mut grown = patch(json!({"spec": {"resources": {"requests": {"storage": "20Gi"}}}}));
    if random.chance(20) {
        grown["dryRun"] = json!(true);
    }
    vec![claim(random, &name), bound, grown]
}

fn ingress(random: &mut Random, number: usize) -> Value {
    let mut body = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    });
    match random.below(4) {
        0 => body["spec"]["ingressClassName"] = json!("other"),
        1 => body["metadata"] = json!({"annotations": {"kubernetes.io/ingress.class": "old"}}),
        _ => {}
    }
    json!({
        "verb": "create", "resource": "networking.k8s.io/v1/ingresses", "name": format!("i{number}"), "body": body,
    })
}

/// Returns labels that `PodSecurity` reads, valid or invalid.
fn labels_of_namespace(random: &mut Random) -> Value {
    let mut labels = security_labels(random);
    if random.chance(25) {
        let (label, value) = random.one_of(&[("enforce", "none"), ("warn-version", "1.2"), ("audit", "")]);
        labels.insert(format!("pod-security.kubernetes.io/{label}"), json!(value));
    }
    if random.chance(50) {
        return json!({
            "verb": "create", "resource": "namespaces", "name": "<id>-three", "body": namespace("<id>-three", labels),
        });
    }
    json!({
        "verb": "patch", "resource": "namespaces", "name": "<id>-three", "patch": "merge",
        "body": {"metadata": {"labels": labels}},
    })
}

#[cfg(test)]
mod tests {
    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case_and_each_server_has_some() {
        let cases = cases(300, |number| Situation::of_plugins(1, number));
        let servers: BTreeSet<_> = cases.into_iter().map(|case| case.plugins).collect();
        assert_eq!(servers.len(), ENABLED.len());
    }
}
