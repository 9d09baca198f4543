//! Generates Pods in many shapes.

use serde_json::{Value, json};

use kubernetes_types::json::set;

/// A function that changes the spec or metadata of a plain Pod.
type Feature = fn(&mut Value);

/// The annotation of mirror Pods, which represent static Pods.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// The features of Pods, each of which is combined with [`VARIANTS`] shapes of metadata and containers.
const FEATURES: [Feature; 18] = [
    |_| {},
    |pod| spec(pod, "initContainers", json!([{"name": "init", "image": "example.com/init:1"}])),
    |pod| {
        let sidecar =
            json!({"name": "native-sidecar", "image": "example.com/log:1", "restartPolicy": "Always"});
        spec(pod, "initContainers", json!([sidecar]));
    },
    |pod| {
        // Other features leave it to the server's default.
        container(pod, "imagePullPolicy", json!("Never"));
        container(pod, "terminationMessagePolicy", json!("FallbackToLogsOnError"));
        spec(pod, "terminationGracePeriodSeconds", json!(5));
        spec(pod, "enableServiceLinks", json!(false));
    },
    |pod| {
        spec(
            pod,
            "volumes",
            json!([
                {"name": "scratch", "emptyDir": {}},
                {"name": "settings", "configMap": {"name": "settings", "optional": true}},
            ]),
        );
        container(pod, "volumeMounts", json!([{"name": "scratch", "mountPath": "/scratch"}]));
    },
    |pod| {
        let token = json!({"name": "token", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "audience": "vault"}},
        ]}});
        // Volumes of other features must stay.
        match pod.pointer_mut("/spec/volumes").and_then(Value::as_array_mut) {
            Some(volumes) => volumes.push(token),
            None => spec(pod, "volumes", json!([token])),
        }
        spec(pod, "serviceAccountName", json!("builder"));
    },
    |pod| {
        spec(pod, "securityContext", json!({"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 2000}));
        container(
            pod,
            "securityContext",
            json!({"readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}}),
        );
    },
    |pod| {
        container(
            pod,
            "env",
            json!([
                {"name": "MODE", "value": "test"},
                {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ]),
        );
        container(pod, "envFrom", json!([{"secretRef": {"name": "env", "optional": true}}]));
    },
    |pod| {
        let probe = json!({"httpGet": {"path": "/healthz", "port": 8080}});
        container(pod, "ports", json!([{"name": "http", "containerPort": 8080}]));
        for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
            container(pod, kind, probe.clone());
        }
    },
    |pod| {
        spec(pod, "hostNetwork", json!(true));
        spec(pod, "hostPID", json!(true));
        spec(pod, "dnsPolicy", json!("ClusterFirstWithHostNet"));
    },
    |pod| {
        spec(pod, "serviceAccountName", json!("builder"));
        spec(pod, "automountServiceAccountToken", json!(false));
        spec(pod, "imagePullSecrets", json!([{"name": "registry"}]));
    },
    |pod| {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app-7d4b9c", "controller": true,
            "blockOwnerDeletion": true, "uid": "6f3d1d2e-0000-4000-8000-000000000001",
        });
        metadata(pod, &["ownerReferences"], json!([owner]));
    },
    |pod| {
        metadata(pod, &["finalizers"], json!(["example.com/finalizer"]));
        container(pod, "securityContext", json!({"privileged": true}));
    },
    |pod| {
        metadata(pod, &["annotations", MIRROR], json!("5d41402abc4b2a76b9719d911017c592"));
        spec(pod, "nodeName", json!("node-1"));
        container(pod, "securityContext", json!({"privileged": true}));
    },
    |pod| {
        container(
            pod,
            "resources",
            json!({
                "requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "0.5", "memory": "128Mi"},
            }),
        );
    },
    |pod| {
        spec(
            pod,
            "tolerations",
            json!([{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]),
        );
        spec(pod, "nodeSelector", json!({"kubernetes.io/os": "linux"}));
        spec(pod, "priorityClassName", json!("high"));
    },
    |pod| {
        container(pod, "lifecycle", json!({"preStop": {"exec": {"command": ["sleep", "5"]}}}));
        container(pod, "command", json!(["/bin/app"]));
        container(pod, "args", json!(["--verbose"]));
        spec(pod, "restartPolicy", json!("OnFailure"));
    },
    |pod| {
        spec(
            pod,
            "affinity",
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "app"}}, "topologyKey": "kubernetes.io/hostname"},
            ]}}),
        );
        spec(
            pod,
            "topologySpreadConstraints",
            json!([{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
            }]),
        );
    },
];

/// Sets a field of the Pod's spec.
fn spec(pod: &mut Value, field: &str, value: Value) {
    set(pod, &["spec", field], value);
}

/// Sets a field of the Pod's first container.
fn container(pod: &mut Value, field: &str, value: Value) {
    if let Some(first) = pod.pointer_mut("/spec/containers/0") {
        set(first, &[field], value);
    }
}

/// Sets the value at `path` in the Pod's metadata.
fn metadata(pod: &mut Value, path: &[&str], value: Value) {
    if let Some(metadata) = pod.get_mut("metadata") {
        set(metadata, path, value);
    }
}

/// The number of shapes of metadata and containers for each feature.
const VARIANTS: usize = 12;

/// The number of different Pods.
pub(super) const COUNT: usize = FEATURES.len() * VARIANTS;

/// Returns the index of one Pod for each feature; the Pods together have every shape of metadata and containers.
pub(super) fn representatives() -> impl Iterator<Item = usize> {
    // 7 and the number of variants have no common divisor.
    (0..FEATURES.len()).map(|feature| feature * VARIANTS + feature * 7 % VARIANTS)
}

/// Returns the image of a container: in most variants with a version as its tag.
fn image(name: &str, variant: usize) -> String {
    match variant {
        2 => format!("example.com/{name}:latest"),
        4 => format!("example.com/{name}@sha256:{}", "0123456789abcdef".repeat(4)),
        6 => name.to_owned(),
        11 => format!("registry.example.com:5000/{name}:1"),
        _ => format!("example.com/{name}:1"),
    }
}

/// Returns the Pod with this index. The features repeat after [`COUNT`] Pods.
pub(super) fn pod(index: usize) -> Value {
    let (feature, variant) = (index / VARIANTS, index % VARIANTS);
    let containers: Vec<Value> = ["app", "worker", "cache"]
        .iter()
        .take(1 + (variant + feature) % 3)
        .map(|name| json!({"name": name, "image": image(name, variant)}))
        .collect();
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": super::metadata(variant, index), "spec": {"containers": containers},
    });
    // The second half of the variants has an additional feature.
    let other = (variant >= VARIANTS / 2).then_some(feature + variant * 5);
    for feature in std::iter::once(feature).chain(other) {
        if let Some(change) = FEATURES.iter().cycle().nth(feature) {
            change(&mut pod);
        }
    }
    pod
}
