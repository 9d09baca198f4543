//! Generates Services, `ConfigMap`s, Secrets, and workloads in many shapes.

use kubernetes_types::json::{at, set};
use serde_json::{Map, Value, json};

use super::pods;

/// The number of objects to generate of each kind.
pub(super) const COUNT: usize = 12;

/// The indexes of the objects that together have every type of Service, ConfigMap, and Secret.
///
/// The objects also have every shape of labels and annotations.
pub(super) const REPRESENTATIVES: [usize; 5] = [2, 3, 4, 5, 6];

/// A function that generates the object with a given index.
type Make = fn(usize) -> Value;

/// The kinds other than Pod, each with its `apiVersion`, `kind`, and generator.
pub(super) const KINDS: [(&str, &str, Make); 11] = [
    ("apps/v1", "Deployment", |index| workload(index, &replicas(index), "Always")),
    ("apps/v1", "StatefulSet", |index| {
        let mut more = replicas(index);
        set(&mut more, &["serviceName"], "app");
        workload(index, &more, "Always")
    }),
    ("apps/v1", "DaemonSet", |index| workload(index, &json!({}), "Always")),
    ("apps/v1", "ReplicaSet", |index| workload(index, &replicas(index), "Always")),
    ("v1", "ReplicationController", |index| {
        let mut spec = replicas(index);
        set(&mut spec, &["selector"], json!({"app": "app"}));
        set(&mut spec, &["template"], template(index, "Always"));
        json!({"spec": spec})
    }),
    ("batch/v1", "Job", |index| json!({"spec": {"template": template(index, "Never")}})),
    ("batch/v1", "CronJob", |index| {
        json!({"spec": {
            "schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template(index, "OnFailure")}},
        }})
    }),
    ("v1", "PodTemplate", |index| json!({"template": template(index, "Always")})),
    ("v1", "Service", service),
    ("v1", "ConfigMap", config_map),
    ("v1", "Secret", secret),
];

/// Returns the object of a kind with this index.
pub(super) fn object((api_version, kind, make): (&str, &str, Make), index: usize) -> Value {
    let mut object = make(index);
    super::complete(&mut object, api_version, kind, index);
    object
}

/// Returns the field `replicas`, which policies often limit; each of five consecutive indexes has another value.
fn replicas(index: usize) -> Value {
    match index % REPRESENTATIVES.len() {
        0 => json!({"replicas": 2}),
        1 => json!({"replicas": 50}),
        2 => json!({"replicas": 1}),
        3 => json!({}),
        _ => json!({"replicas": 0}),
    }
}

/// Returns the Pod template with this index. The stride between Pods ensures that all features occur.
fn template(index: usize, restart_policy: &str) -> Value {
    let pod = pods::pod(index * 19 % pods::COUNT);
    let mut spec = at(&pod, &["spec"]).clone();
    set(&mut spec, &["restartPolicy"], restart_policy);
    // Only a running Pod has a node name.
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
    }
    let mut metadata = json!({"labels": {"app": "app"}});
    if let Some(annotations) = pod.pointer("/metadata/annotations").and_then(Value::as_object) {
        let mut annotations = annotations.clone();
        annotations.remove(pods::MIRROR);
        set(&mut metadata, &["annotations"], annotations);
    }
    json!({"metadata": metadata, "spec": spec})
}

fn workload(index: usize, more: &Value, restart_policy: &str) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "app"}}, "template": template(index, restart_policy),
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        set(&mut spec, &[name], value.clone());
    }
    json!({"spec": spec})
}

fn service(index: usize) -> Value {
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}, {"name": "tls", "port": 443}]);
    let ports: Vec<Value> = ports.as_array().into_iter().flatten().take(1 + index % 2).cloned().collect();
    let mut spec = json!({"ports": ports, "selector": {"app": "app"}});
    match index % 5 {
        1 => set(&mut spec, &["type"], "LoadBalancer"),
        2 => set(&mut spec, &["clusterIP"], "None"),
        3 => set(&mut spec, &[], json!({"type": "ExternalName", "externalName": "example.com"})),
        4 => set(&mut spec, &["type"], "NodePort") && set(&mut spec, &["sessionAffinity"], "ClientIP"),
        _ => true,
    };
    json!({"spec": spec})
}

fn config_map(index: usize) -> Value {
    match index % 4 {
        0 => json!({}),
        1 => json!({"data": {"key": "value", "file.yaml": "a: b\n"}}),
        2 => json!({"binaryData": {"blob": "AAEC"}, "immutable": true}),
        _ => {
            json!({"data": (0..50).map(|n| (format!("key-{n}"), n.to_string().into())).collect::<Map<_, _>>()})
        }
    }
}

fn secret(index: usize) -> Value {
    match index % 4 {
        0 => json!({"type": "Opaque"}),
        1 => json!({"type": "Opaque", "data": {"password": "aHVudGVyMg=="}}),
        2 => json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}}),
        _ => json!({"type": "Opaque", "data": {"key": "dmFsdWU="}, "immutable": true}),
    }
}
