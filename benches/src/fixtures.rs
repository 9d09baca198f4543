//! Creates the requests, webhooks, and cluster state for the benchmarks.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kubernetes_admission::attributes::{Attributes, UserInfo};
use kubernetes_admission::config::{self, Webhook};
use kubernetes_admission::dispatcher::{DispatchContext, Webhooks};
use kubernetes_admission::matching::WebhookIndex;
use kubernetes_api_server::ClusterFixture;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::webhook;

/// Returns a Pod whose JSON has at least `bytes` bytes.
pub(crate) fn pod(bytes: usize) -> Value {
    let text = "x".repeat(64);
    let annotations: serde_json::Map<String, Value> =
        (0..bytes / 90).map(|index| (format!("example.com/a{index:08}"), text.clone().into())).collect();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "web", "namespace": "default", "annotations": annotations,
    }, "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]}})
}

/// Returns a request that creates a Pod of at least `bytes` bytes.
pub(crate) fn create(cluster: &ClusterFixture, bytes: usize) -> Attributes {
    let user = UserInfo {
        username: "admin".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    cluster.create(pod(bytes), "default", user).unwrap()
}

/// The fields of a webhook that differ between benchmarks.
pub(crate) struct Entry<'a> {
    pub(crate) phase: &'a str,
    pub(crate) path: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) members: Value,
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Self { phase: "Mutating", path: "/allow", resource: "pods", members: json!({}) }
    }
}

/// Returns `count` numbered webhooks on `server` with the fields of `entry`.
pub(crate) fn webhooks(server: &webhook::Webhook, count: usize, entry: &Entry<'_>) -> Vec<Arc<Webhook>> {
    let entries: Vec<Value> = (0..count).map(|index| configured(server, index, entry)).collect();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{}WebhookConfiguration", entry.phase),
        "metadata": {"name": "benches"}, "webhooks": entries,
    });
    config::stored_webhooks(&configuration).unwrap().into_iter().map(Arc::new).collect()
}

fn configured(server: &webhook::Webhook, index: usize, entry: &Entry<'_>) -> Value {
    let mut webhook = json!({
        "name": format!("w{index}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "url": format!("https://{}{}", server.address, entry.path),
            "caBundle": BASE64_STANDARD.encode(&server.ca_bundle),
        },
        "rules": [{
            "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": [entry.resource],
        }],
        "namespaceSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
    });
    let members = webhook.as_object_mut().unwrap();
    members.extend(entry.members.as_object().unwrap().clone());
    webhook
}

/// Returns an admission chain with these webhooks and without plugins.
pub(crate) fn chain<'a>(mutating: &'a WebhookIndex, validating: &'a WebhookIndex) -> DispatchContext<'a> {
    DispatchContext {
        mutating: Some(Webhooks::Indexed(mutating)),
        validating: Some(Webhooks::Indexed(validating)),
        mutating_policies: None,
        validating_policies: None,
        plugins: &[],
        last: &[],
        started: Instant::now(),
        deadline: None,
        trace: None,
        metrics: None,
    }
}
