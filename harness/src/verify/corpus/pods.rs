//! Pods of many shapes.

use serde_json::{Value, json};

/// What changes a plain pod's spec or metadata into a more interesting one.
type Feature = fn(&mut Value);

/// The annotation of a pod that a node runs from a file.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// The features, each of which is combined with [`VARIANTS`] shapes of metadata and containers.
const FEATURES: [Feature; 18] = [
    |_| {},
    |pod| pod["spec"]["initContainers"] = json!([{"name": "init", "image": "example.com/init:1"}]),
    |pod| {
        pod["spec"]["initContainers"] =
            json!([{"name": "native-sidecar", "image": "example.com/log:1", "restartPolicy": "Always"}]);
    },
    |pod| {
        // Where others leave it to the server.
        pod["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
        pod["spec"]["containers"][0]["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
        pod["spec"]["terminationGracePeriodSeconds"] = json!(5);
        pod["spec"]["enableServiceLinks"] = json!(false);
    },
    |pod| {
        pod["spec"]["volumes"] = json!([
            {"name": "scratch", "emptyDir": {}},
            {"name": "settings", "configMap": {"name": "settings", "optional": true}},
        ]);
        pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch"}]);
    },
    |pod| {
        let token = json!({"name": "token", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "audience": "vault"}},
        ]}});
        // What another feature has mounted must stay.
        match pod["spec"]["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(token),
            None => pod["spec"]["volumes"] = json!([token]),
        }
        pod["spec"]["serviceAccountName"] = json!("builder");
    },
    |pod| {
        pod["spec"]["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 2000});
        pod["spec"]["containers"][0]["securityContext"] =
            json!({"readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}});
    },
    |pod| {
        pod["spec"]["containers"][0]["env"] = json!([
            {"name": "MODE", "value": "test"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]);
        pod["spec"]["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "env", "optional": true}}]);
    },
    |pod| {
        let probe = json!({"httpGet": {"path": "/healthz", "port": 8080}});
        pod["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 8080}]);
        for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
            pod["spec"]["containers"][0][kind] = probe.clone();
        }
    },
    |pod| {
        pod["spec"]["hostNetwork"] = json!(true);
        pod["spec"]["hostPID"] = json!(true);
        pod["spec"]["dnsPolicy"] = json!("ClusterFirstWithHostNet");
    },
    |pod| {
        pod["spec"]["serviceAccountName"] = json!("builder");
        pod["spec"]["automountServiceAccountToken"] = json!(false);
        pod["spec"]["imagePullSecrets"] = json!([{"name": "registry"}]);
    },
    |pod| {
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app-7d4b9c", "controller": true,
            "blockOwnerDeletion": true, "uid": "6f3d1d2e-0000-4000-8000-000000000001",
        }]);
    },
    |pod| pod["metadata"]["finalizers"] = json!(["example.com/finalizer"]),
    |pod| {
        pod["metadata"]["annotations"][MIRROR] = json!("5d41402abc4b2a76b9719d911017c592");
        pod["spec"]["nodeName"] = json!("node-1");
    },
    |pod| {
        pod["spec"]["containers"][0]["resources"] = json!({
            "requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "0.5", "memory": "128Mi"},
        });
    },
    |pod| {
        pod["spec"]["tolerations"] =
            json!([{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]);
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "linux"});
        pod["spec"]["priorityClassName"] = json!("high");
    },
    |pod| {
        pod["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "5"]}}});
        pod["spec"]["containers"][0]["command"] = json!(["/bin/app"]);
        pod["spec"]["containers"][0]["args"] = json!(["--verbose"]);
        pod["spec"]["restartPolicy"] = json!("OnFailure");
    },
    |pod| {
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "app"}}, "topologyKey": "kubernetes.io/hostname"},
        ]}});
        pod["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
        }]);
    },
];

/// How many shapes of metadata and containers there are for each feature.
const VARIANTS: usize = 12;

/// How many pods there are.
pub(super) const COUNT: usize = FEATURES.len() * VARIANTS;

/// The pod number `index`, which is below [`COUNT`].
pub(super) fn pod(index: usize) -> Value {
    let (feature, variant) = (index / VARIANTS, index % VARIANTS);
    let containers: Vec<Value> = ["app", "worker", "cache"][..=(variant + feature) % 3]
        .iter()
        .map(|name| json!({"name": name, "image": format!("example.com/{name}:1")}))
        .collect();
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": super::metadata(variant, index), "spec": {"containers": containers},
    });
    FEATURES[feature](&mut pod);
    // The second half of the variants has another feature as well.
    if variant >= VARIANTS / 2 {
        FEATURES[(feature + variant * 5) % FEATURES.len()](&mut pod);
    }
    pod
}
