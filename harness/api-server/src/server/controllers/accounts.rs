//! Creates default objects in each namespace.
//!
//! These objects are the service account `default` and the ConfigMap with the server's root certificates.

use http::Method;
use kubernetes_types::json::set;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use super::actors::{Actor, Actors, Change, JSON};
use super::queue::Outcome;
use crate::storage::ObjectReader as _;

/// The name of the service account that Pods use by default.
pub(super) const ACCOUNT: &str = "default";
/// The name of the ConfigMap with the server's root certificates.
pub(super) const ROOT_CERTIFICATES: &str = "kube-root-ca.crt";

const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                           endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                           guaranteed across distributions of Kubernetes clusters.";

/// Creates the service account `default` in an active namespace if it does not exist.
///
/// Source: kubernetes `pkg/controller/serviceaccount/serviceaccounts_controller.go`, `syncNamespace`.
/// Rule: CTL-01.
pub(super) async fn make(actors: &Actors, namespace: &str) -> Outcome {
    let storage = &actors.server.registry.state.storage;
    if !is_active(actors, namespace) || storage.get("", "serviceaccounts", namespace, ACCOUNT).is_some() {
        return Outcome::Done;
    }
    let account = json!({
        "kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": ACCOUNT, "namespace": namespace},
    });
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let change = Change { method: Method::POST, path, media_type: JSON, body: &account };
    ended(actors.send(Actor::Accounts, change).await)
}

/// Creates or updates the certificate ConfigMap in an active namespace.
///
/// Source: kubernetes `pkg/controller/certificates/rootcacertpublisher/publisher.go`, `syncNamespace`.
/// Rule: CTL-02.
pub(super) async fn publish(actors: &Actors, namespace: &str) -> Outcome {
    if !is_active(actors, namespace) {
        return Outcome::Done;
    }
    let data = json!({"ca.crt": actors.options.root_certificates});
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let Some(stored) =
        actors.server.registry.state.storage.get("", "configmaps", namespace, ROOT_CERTIFICATES)
    else {
        let annotations = json!({"kubernetes.io/description": DESCRIPTION});
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": ROOT_CERTIFICATES, "annotations": annotations}, "data": data,
        });
        let change = Change { method: Method::POST, path, media_type: JSON, body: &object };
        return ended(actors.send(Actor::RootCertificates, change).await);
    };
    let described = stored.pointer("/metadata/annotations/kubernetes.io~1description");
    if stored.get("data") == Some(&data) && described.is_some_and(|text| text == DESCRIPTION) {
        return Outcome::Done;
    }
    let mut object = (*stored).clone();
    set(&mut object, &["data"], data);
    set(&mut object, &["metadata", "annotations", "kubernetes.io/description"], DESCRIPTION);
    let path = format!("{path}/{ROOT_CERTIFICATES}");
    let change = Change { method: Method::PUT, path, media_type: JSON, body: &object };
    ended(actors.send(Actor::RootCertificates, change).await)
}

/// Returns whether a namespace is active. Objects can be created only in an active namespace.
fn is_active(actors: &Actors, namespace: &str) -> bool {
    let stored = actors.server.registry.state.storage.get("", "namespaces", "", namespace);
    stored.is_some_and(|stored| {
        stored.pointer("/status/phase").and_then(Value::as_str).is_none_or(|phase| phase == "Active")
    })
}

fn ended(answer: Result<(), Box<Status>>) -> Outcome {
    match answer {
        Ok(()) => Outcome::Done,
        // Another client created it first, or the namespace no longer exists.
        Err(status) if status.reason == "AlreadyExists" || status.code == 404 => Outcome::Done,
        Err(_) => Outcome::Retry,
    }
}
