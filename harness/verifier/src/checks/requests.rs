//! Provides requests that several checks derive from a creation.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, GroupVersionKind, GroupVersionResource, Operation};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_api_server::forget_selector;
use kubernetes_types::json::{self, set};
use kubernetes_types::selector::Labels;
use serde_json::{Value, json};

use super::v29_delete::is_decoding_error;
use crate::check::Violation;
use crate::corpus;
use crate::environment::{Outcome, Verdict};
use crate::webhook_probe::WebhookProbe;

/// A CONNECT request or a request for a subresource, about an object that is not in the corpus.
pub(super) struct Side<'a> {
    pub(super) operation: Operation,
    /// The group, version, and resource.
    pub(super) resource: (&'a str, &'a str, &'a str),
    pub(super) subresource: &'a str,
    pub(super) name: &'a str,
    /// The namespace; empty for cluster-scoped resources.
    pub(super) namespace: &'a str,
    pub(super) object: Value,
    pub(super) old_object: Option<Value>,
}

impl Side<'_> {
    /// Creates the request as the user of the verification.
    pub(super) fn request(self, webhook_probe: &WebhookProbe<'_>) -> Attributes {
        let (group, version, resource) = self.resource;
        let with_defaults = |mut object: Value| {
            webhook_probe.environment.cluster_fixture.set_defaults(&mut object);
            object
        };
        let options = match self.operation {
            Operation::Create => Some("CreateOptions"),
            Operation::Update => Some("UpdateOptions"),
            Operation::Delete => Some("DeleteOptions"),
            Operation::Connect => None,
        };
        Attributes {
            operation: self.operation,
            resource: GroupVersionResource::new(group, version, resource),
            subresource: self.subresource.to_owned(),
            kind: GroupVersionKind::from_object(&self.object),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            object: Some(with_defaults(self.object)),
            old_object: self.old_object.map(with_defaults),
            options: options.map(|kind| json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"})),
            dry_run: false,
            user: webhook_probe.environment.user.clone(),
        }
    }
}

/// Returns a namespace that the webhook's selector matches, preferably the namespace of a sample.
pub(super) fn namespace<'a>(webhook_probe: &'a WebhookProbe<'_>) -> &'a str {
    let environment = webhook_probe.environment;
    let of_samples = webhook_probe.samples.iter().map(|sample| sample.namespace.as_str());
    if let Some(namespace) = of_samples.into_iter().find(|namespace| !namespace.is_empty()) {
        return namespace;
    }
    let is_picked = |name: &&str| {
        let namespace = environment.cluster_fixture.namespace(name);
        let labels = namespace.as_deref().and_then(Labels::from_object).unwrap_or_default();
        webhook_probe.subject.webhook.namespace_selector.matches(labels)
    };
    let known = [environment.namespace.as_str(), corpus::NAMESPACE];
    known.into_iter().find(is_picked).unwrap_or(&environment.namespace)
}

/// Formats the reason for skipping a check: the webhook's rules match the resources, but its selectors exclude them.
pub(super) fn not_selected(names: &[String]) -> String {
    let names = super::listed(names.iter().map(String::as_str));
    format!("the webhook's rules match {names}, but its selectors do not match what is sent there")
}

/// Returns a violation if the webhook does not handle the request that `what` describes.
pub(super) fn failure(what: &str, outcome: &Arc<Outcome>) -> Option<Violation> {
    let (kind, message) = match outcome.verdict() {
        Verdict::Failed(reason) => (
            "fails",
            format!(
                "on {what}, the webhook does not return a valid \
                                                      response: {reason}"
            ),
        ),
        Verdict::ServerError(status) => (
            "breaks",
            format!("on {what}, the webhook returns a patch that does not apply: {}", status.message),
        ),
        Verdict::Denied(status) if is_decoding_error(status.code, &status.message) => (
            "misreads",
            format!("on {what}, the webhook denies because it cannot decode the request: {}", status.message),
        ),
        Verdict::Denied(_) | Verdict::Admitted | Verdict::NoConditions(_) | Verdict::Unsupported(_) => {
            return None;
        }
    };
    Some(Violation::new(format!("{kind} on {what}"), message).with_steps([Arc::clone(outcome)]))
}

/// Returns the object as a client recreates it from a stored object.
///
/// The object has its name and the spec that the server and its controllers wrote, but not the fields that the server
/// sets on creation.
///
/// Source: kubernetes pkg/registry/core/service/storage; velero pkg/restore/restore.go, `resetMetadataAndStatus`, and
/// `pkg/restore/actions/job_action.go`.
pub(super) fn restored(stored: Value) -> Value {
    let mut restored = stored;
    if let Some(Value::Object(metadata)) = restored.get_mut("metadata") {
        for field in
            ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"]
        {
            metadata.remove(field);
        }
    }
    if let Some(members) = restored.as_object_mut() {
        members.remove("status");
    }
    match json::at(&restored, &["kind"]).as_str() {
        Some("Pod") => {
            // Set by the scheduler; built-in plugins add the rest.
            if let Some(Value::Object(spec)) = restored.get_mut("spec") {
                spec.entry("nodeName").or_insert_with(|| "node-1".into());
            }
        }
        Some("Job") => forget_selector(&mut restored),
        Some("Deployment") => {
            set(&mut restored, &["metadata", "annotations", "deployment.kubernetes.io/revision"], "1");
        }
        _ => {}
    }
    restored
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::UserInfo;
    use kubernetes_api_server::ClusterFixture;

    use super::*;
    use crate::stored::as_stored;

    #[test]
    fn restored_pod_has_a_node_and_no_uid() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"},
            "spec": {"containers": [{"name": "app"}]}, "status": {"phase": "Running"}});
        let restored = restored(as_stored(&pod, &UserInfo::default(), &ClusterFixture::new([])));
        assert_eq!(restored["metadata"], json!({"generateName": "p-", "name": "p-x7k2p"}));
        assert_eq!(restored.get("status"), None);
        assert_eq!(restored["spec"]["nodeName"], "node-1");
    }

    #[test]
    fn restored_service_has_a_cluster_ip_unless_it_is_an_external_name() {
        let service = |spec: Value| {
            let service =
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec});
            restored(as_stored(&service, &UserInfo::default(), &ClusterFixture::new([])))["spec"].clone()
        };
        assert_eq!(service(json!({}))["clusterIPs"], json!(["10.0.0.10"]));
        assert_eq!(service(json!({"clusterIP": "None"}))["clusterIPs"], json!(["None"]));
        let alias = service(json!({"type": "ExternalName", "externalName": "example.com"}));
        assert_eq!((&alias["externalName"], alias.get("clusterIPs")), (&json!("example.com"), None));
    }
}
