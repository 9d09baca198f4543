//! The objects in manifests that deploy a webhook: its Service, workload, and Secrets.

use std::collections::BTreeMap;

use serde_json::Value;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::{at, text};

/// Services, workloads, Pods, and Secrets from manifests.
#[derive(Debug, Default)]
pub struct WebhookManifests {
    objects: Vec<Value>,
}

/// The labels of an object.
type LabelSet = BTreeMap<String, String>;

/// The kinds with a pod template, all in the group `apps`.
const WORKLOADS: [&str; 4] = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];

impl WebhookManifests {
    pub(super) fn add(&mut self, kind: &GroupVersionKind, object: &Value) {
        let is_kept = match kind.group.as_str() {
            "" => ["Service", "Pod", "Secret"].contains(&kind.kind.as_str()),
            "apps" => WORKLOADS.contains(&kind.kind.as_str()),
            _ => false,
        };
        if is_kept {
            self.objects.push(object.clone());
        }
    }

    /// Returns whether the manifests do not contain any Service, workload, Pod, or Secret.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Returns all Services.
    pub fn services(&self) -> impl Iterator<Item = &Value> {
        self.of_kind("Service")
    }

    /// Returns the Service with this name in `namespace`.
    ///
    /// A Service without a namespace matches any namespace, because the client chooses its namespace.
    pub fn service(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.services()
            .find(|service| text(service, &["metadata", "name"]) == name && may_be_in(service, namespace))
    }

    /// Returns the Pods and pod templates in `namespace`.
    pub fn pods(&self, namespace: &str) -> impl Iterator<Item = &Value> {
        self.workloads(namespace).map(|(_, pod)| pod)
    }

    /// Returns the Pods and pod templates in `namespace` that a Service selects.
    ///
    /// A Service without a selector does not select Pods.
    pub fn selected<'a>(&'a self, service: &'a Value, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
        self.pods(namespace).filter(move |pod| is_selected(service, pod))
    }

    /// Returns the Secrets that a pod in `namespace` mounts.
    pub fn mounted_secrets<'a>(
        &'a self,
        pod: &'a Value,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let volumes = at(pod, &["spec", "volumes"]).as_array().into_iter().flatten();
        let names = volumes.flat_map(|volume| {
            let sources = at(volume, &["projected", "sources"]).as_array().into_iter().flatten();
            let projected = sources.map(|source| text(source, &["secret", "name"]));
            std::iter::once(text(volume, &["secret", "secretName"])).chain(projected)
        });
        names.filter(|name| !name.is_empty()).filter_map(move |name| {
            let mut secrets = self.of_kind("Secret").filter(|secret| may_be_in(secret, namespace));
            secrets.find(|secret| text(secret, &["metadata", "name"]) == name)
        })
    }

    /// Returns the distinct label sets of the objects of `kind` that belong to the webhook behind the Service `name`.
    ///
    /// Returns `None` if the manifests do not contain such objects.
    pub fn labels_for(&self, kind: &str, namespace: &str, name: &str) -> Option<Vec<LabelSet>> {
        let service = || self.service(namespace, name);
        let mut labels: Vec<LabelSet> = match kind {
            // The controllers copy the labels of the Service.
            //
            // Source: kubernetes pkg/controller/endpoint/endpoints_controller.go; endpointslice reconciler.go.
            "Service" | "Endpoints" | "EndpointSlice" => service().map(labels).into_iter().collect(),
            "Secret" => {
                self.of_kind("Secret").filter(|secret| may_be_in(secret, namespace)).map(labels).collect()
            }
            "Pod" | "ReplicaSet" => self.selected(service()?, namespace).map(labels).collect(),
            "Deployment" => {
                let service = service()?;
                let own = self.workloads(namespace).filter(|(_, pod)| is_selected(service, pod));
                own.filter(|(owner, _)| owner["kind"] == "Deployment")
                    .map(|(owner, _)| labels(owner))
                    .collect()
            }
            _ => Vec::new(),
        };
        labels.sort();
        labels.dedup();
        (!labels.is_empty()).then_some(labels)
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// Returns the Pods and workloads in `namespace`, each with its pod template. A Pod is its own template.
    fn workloads(&self, namespace: &str) -> impl Iterator<Item = (&Value, &Value)> {
        let here = self.objects.iter().filter(move |object| may_be_in(object, namespace));
        here.filter_map(|object| match text(object, &["kind"]) {
            "Pod" => Some((object, object)),
            kind if WORKLOADS.contains(&kind) => Some((object, at(object, &["spec", "template"]))),
            _ => None,
        })
    }
}

fn may_be_in(object: &Value, namespace: &str) -> bool {
    let own = text(object, &["metadata", "namespace"]);
    own.is_empty() || own == namespace
}

fn labels(object: &Value) -> LabelSet {
    let labels = at(object, &["metadata", "labels"]).as_object();
    let labels = labels.into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Source: kubernetes `pkg/controller/endpoint/endpoints_controller.go`: a Service without a selector selects nothing.
fn is_selected(service: &Value, pod: &Value) -> bool {
    let own = labels(pod);
    let Some(selector) = at(service, &["spec", "selector"]).as_object().filter(|it| !it.is_empty()) else {
        return false;
    };
    selector.iter().all(|(key, value)| own.get(key).map(String::as_str) == value.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(objects: &[Value]) -> WebhookManifests {
        let mut given = WebhookManifests::default();
        for object in objects {
            given.add(&GroupVersionKind::from_object(object), object);
        }
        given
    }

    fn object(api_version: &str, kind: &str, namespace: &str, labels: &Value, spec: &Value) -> Value {
        let metadata = json!({"name": "x", "namespace": namespace, "labels": labels});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    }

    fn deployment(namespace: &str, app: &str) -> Value {
        let template = json!({"metadata": {"labels": {"app": app, "inject": "no"}}});
        object("apps/v1", "Deployment", namespace, &json!({"of": app}), &json!({"template": template}))
    }

    #[test]
    fn backend_labels_come_from_selected_objects() {
        let service = object("v1", "Service", "n", &json!({"s": "t"}), &json!({"selector": {"app": "a"}}));
        let given = given(&[service, deployment("n", "a"), deployment("n", "b"), deployment("m", "a")]);
        let labels = |kind: &str| {
            let labels = given.labels_for(kind, "n", "x");
            labels.map(|labels| labels.iter().map(|set| json!(set)).collect::<Vec<_>>())
        };
        assert_eq!(labels("Pod"), Some(vec![json!({"app": "a", "inject": "no"})]));
        assert_eq!(labels("ReplicaSet"), labels("Pod"));
        assert_eq!(labels("Deployment"), Some(vec![json!({"of": "a"})]));
        assert_eq!(labels("EndpointSlice"), Some(vec![json!({"s": "t"})]));
        assert_eq!((labels("Secret"), labels("Lease")), (None, None));
        assert_eq!(given.labels_for("Pod", "m", "x"), None);
    }

    #[test]
    fn secret_and_projected_volumes_mount_secrets() {
        let secret = |name: &str, namespace: &str| {
            let metadata = json!({"name": name, "namespace": namespace});
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        };
        let given = given(&[secret("a", "n"), secret("b", ""), secret("c", "m"), secret("d", "n")]);
        let pod = json!({"spec": {"volumes": [
            {"name": "x", "emptyDir": {}},
            {"name": "a", "secret": {"secretName": "a"}},
            {"name": "b", "projected": {"sources": [{"configMap": {"name": "d"}}, {"secret": {"name": "b"}}]}},
            {"name": "c", "secret": {"secretName": "c"}},
        ]}});
        let names = given.mounted_secrets(&pod, "n").map(|secret| text(secret, &["metadata", "name"]));
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn missing_namespace_matches_any_namespace() {
        let given = given(&[object("v1", "Service", "", &json!({}), &json!({})), deployment("n", "a")]);
        let service = given.service("n", "x").unwrap();
        assert_eq!(given.selected(service, "n").count(), 0);
        assert_eq!((given.pods("n").count(), given.pods("m").count()), (1, 0));
    }
}
