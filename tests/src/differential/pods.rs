//! Generates random Pods that in-tree plugins default or reject, workloads with these Pods, and webhooks for them.

use serde_json::{Value, json};

use super::plugins::Classes;
use crate::random::Random;

pub(super) fn spec(random: &mut Random, classes: &Classes) -> Value {
    let count = random.weighted(&[(70, 1), (30, 2)]);
    let containers: Vec<Value> = (0..count).map(|number| container(random, &format!("c{number}"))).collect();
    let mut spec = json!({"containers": containers});
    if random.chance(15) {
        spec["initContainers"] = json!([container(random, "i0")]);
    }
    if random.chance(30) {
        let (field, value) = random.one_of(&[("hostNetwork", true), ("hostPID", true), ("hostIPC", true)]);
        spec[field] = json!(value);
    }
    if random.chance(35) {
        spec["securityContext"] = random.one_of(&[
            json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}),
            json!({"runAsNonRoot": true}),
            json!({"runAsUser": 0}),
            json!({"seccompProfile": {"type": "Unconfined"}}),
            json!({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}),
            json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            json!({"seLinuxOptions": {"type": "spc_t", "user": "u"}}),
            json!({"appArmorProfile": {"type": "Unconfined"}}),
        ]);
    }
    // The Pod's own sysctls, which admit does not validate.
    if spec["securityContext"]["sysctls"].is_array() {
        spec["hostIPC"] = json!(false);
    }
    if random.chance(20) {
        let source = random.one_of(&[
            json!({"hostPath": {"path": "/tmp"}}),
            json!({"emptyDir": {}}),
            json!({"configMap": {"name": "c"}}),
            json!({"nfs": {"server": "s", "path": "/p"}}),
        ]);
        let mut volume = json!({"name": "v"});
        if let (Some(volume), Value::Object(source)) = (volume.as_object_mut(), source) {
            volume.extend(source);
        }
        spec["volumes"] = json!([volume]);
    }
    if !classes.priorities.is_empty() && random.chance(45) {
        spec["priorityClassName"] = json!(random.one_of(&classes.priorities));
    } else if random.chance(8) {
        spec["priority"] = json!(random.one_of(&[0, 5]));
    }
    if !classes.runtimes.is_empty() && random.chance(45) {
        spec["runtimeClassName"] = json!(random.one_of(&classes.runtimes));
    }
    if random.chance(6) {
        spec["overhead"] = json!({"cpu": "250m", "memory": "64Mi"});
    }
    if random.chance(20) {
        spec["nodeSelector"] =
            random.one_of(&[json!({"zone": "a"}), json!({"zone": "b"}), json!({"kind": "vm"})]);
    }
    if random.chance(25) {
        spec["tolerations"] = json!([toleration(random)]);
    }
    if random.chance(12) {
        spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": {"app": "a"}},
            "topologyKey": random.one_of(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        }]}});
    }
    if classes.service_account {
        if random.chance(15) {
            spec["serviceAccountName"] = json!(random.one_of(&["default", "absent"]));
        }
        if random.chance(20) {
            spec["automountServiceAccountToken"] = json!(random.chance(50));
        }
    }
    spec
}

fn toleration(random: &mut Random) -> Value {
    random.one_of(&[
        json!({"key": "vm", "operator": "Exists"}),
        json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}),
        json!({"operator": "Exists"}),
        json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}),
        json!({
            "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 5,
        }),
        json!({"operator": "Exists", "effect": "NoExecute"}),
    ])
}

fn resources(random: &mut Random) -> Value {
    random.one_of(&[
        json!({"requests": {"cpu": "100m"}}),
        json!({"limits": {"cpu": "500m"}}),
        json!({"requests": {"cpu": "20m"}, "limits": {"cpu": "1"}}),
        json!({"limits": {"cpu": "2", "memory": "2Gi"}}),
        json!({"requests": {"memory": "48Mi"}}),
        json!({"limits": {"memory": "0.5Gi"}}),
        json!({}),
    ])
}

fn container(random: &mut Random, name: &str) -> Value {
    let image = random.one_of(&["example.com/c:1", "example.com/c:latest", "example.com/c"]);
    let mut container = json!({"name": name, "image": image});
    if random.chance(40) {
        container["resources"] = resources(random);
    }
    if random.chance(25) {
        container["imagePullPolicy"] = json!(random.one_of(&["Never", "IfNotPresent", "Always"]));
    }
    if random.chance(40) {
        container["securityContext"] = random.one_of(&[
            json!({"privileged": true}),
            json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}),
            json!({
                "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
                "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
            }),
            json!({"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}}),
            json!({"runAsUser": 0}),
            json!({"runAsNonRoot": false}),
            json!({"seLinuxOptions": {"level": "s0"}}),
        ]);
    }
    // Kubernetes rejects or warns about two containers with the same port, which admit does not.
    if name == "c0" && random.chance(12) {
        container["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
    }
    container
}

/// Returns the behavior of a mutating webhook that is called for new Pods.
pub(super) fn behavior(random: &mut Random, classes: &Classes) -> Value {
    let then = match random.below(10) {
        0 => json!("sidecar"),
        1 => json!("container-env"),
        _ => {
            let count = random.weighted(&[(75, 1), (25, 2)]);
            let operations: Vec<Value> = (0..count).map(|_| operation(random, classes)).collect();
            json!({"patch": {"operations": operations}})
        }
    };
    json!({"when": {"if": {"operations": ["CREATE"]}, "then": then}})
}

fn operation(random: &mut Random, classes: &Classes) -> Value {
    let (path, value) = match random.below(13) {
        0 => ("tolerations", json!([toleration(random)])),
        1 => ("nodeSelector", random.one_of(&[json!({"zone": "b"}), json!({"disk": "ssd"})])),
        2 => ("containers/0/imagePullPolicy", json!(random.one_of(&["Never", "Always", "IfNotPresent"]))),
        3 | 4 => ("containers/0/resources", resources(random)),
        5 if !classes.runtimes.is_empty() => ("runtimeClassName", json!(random.one_of(&classes.runtimes))),
        6 if !classes.priorities.is_empty() => {
            ("priorityClassName", json!(random.one_of(&classes.priorities)))
        }
        7 => ("hostNetwork", json!(random.chance(70))),
        8 => ("securityContext", json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})),
        9 => {
            let path = random.one_of(&["tolerations", "priority", "nodeSelector", "containers/0/resources"]);
            return json!({"op": "remove", "path": format!("/spec/{path}")});
        }
        10 => ("priority", json!(random.one_of(&[0, 7]))),
        11 => ("containers/0/securityContext", json!({"privileged": random.chance(50)})),
        _ => {
            return json!({"op": "add", "path": "/metadata/annotations", "value": {"example.com/seen": "yes"}});
        }
    };
    json!({"op": "add", "path": format!("/spec/{path}"), "value": value})
}

/// Returns a request that creates an object with a random Pod template.
pub(super) fn workload(random: &mut Random, classes: &Classes, number: usize) -> Value {
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": spec(random, classes)});
    let selector = json!({"matchLabels": {"app": "a"}});
    let (group, resource, kind, spec) = match random.below(5) {
        0 | 1 => ("apps", "deployments", "Deployment", json!({"selector": selector, "template": template})),
        2 => ("apps", "replicasets", "ReplicaSet", json!({"selector": selector, "template": template})),
        3 => ("apps", "daemonsets", "DaemonSet", json!({"selector": selector, "template": template})),
        _ => {
            let mut template = template;
            template["spec"]["restartPolicy"] = json!("Never");
            ("batch", "jobs", "Job", json!({"template": template}))
        }
    };
    json!({
        "verb": "create", "resource": format!("{group}/v1/{resource}"), "name": format!("w{number}"),
        "body": {"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec},
    })
}
