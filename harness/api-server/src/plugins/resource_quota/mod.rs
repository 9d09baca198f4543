//! `ResourceQuota`: returns 501 for requests that would be charged against a quota.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::status::{Status, Unsupported};

use crate::storage::ObjectReader;

/// Rejects requests that would be charged against a quota of the namespace, because admit does not support quotas.
///
/// A quota is active after a controller has written limits to its status. If only kube-apiserver runs, no quota is
/// active.
///
/// Source: apiserver pkg/admission/plugin/resourcequota/{admission,controller}.go; kubernetes pkg/quota/v1/evaluator/core.
pub(crate) struct ResourceQuota {
    objects: Arc<dyn ObjectReader>,
}

impl ResourceQuota {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }
}

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let resource = attributes.resource.group_resource();
        let is_charged = match (attributes.operation, attributes.subresource.as_str()) {
            (Operation::Create, "") => true,
            (Operation::Update, "") => ["services", "persistentvolumeclaims"].contains(&resource.as_str()),
            (Operation::Update, "resize") => resource == "pods",
            _ => false,
        };
        if !is_charged || attributes.namespace.is_empty() {
            return Ok(());
        }
        for quota in self.objects.list("", "resourcequotas", &attributes.namespace) {
            let mut limits = at(&quota, &["status", "hard"]).as_object().into_iter().flatten();
            if let Some((limited, _)) = limits.find(|(limited, _)| concerns(limited, &resource)) {
                let name = text(&quota, &["metadata", "name"]);
                let what = format!("ResourceQuota {name:?}, whose status limits {limited}");
                return Err(Box::new(Status::unsupported(&Unsupported { what })));
            }
        }
        Ok(())
    }
}

/// Returns whether an object of `resource` can be charged against a quota on `limited`.
fn concerns(limited: &str, resource: &str) -> bool {
    if let Some(counted) = limited.strip_prefix("count/") {
        return counted == resource;
    }
    let is_of_services = limited == "services" || limited.starts_with("services.");
    let is_of_claims = ["persistentvolumeclaims", "requests.storage"].contains(&limited)
        || limited.contains(".storageclass.storage.k8s.io/");
    let is_of_others =
        ["configmaps", "secrets", "replicationcontrollers", "resourcequotas"].contains(&limited);
    match resource {
        "services" => is_of_services,
        "persistentvolumeclaims" => is_of_claims,
        "pods" | "resourceclaims.resource.k8s.io" => !is_of_services && !is_of_claims && !is_of_others,
        _ => is_of_others && limited == resource,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{Stored, request};
    use super::*;

    #[test]
    fn active_quota_is_not_supported() {
        let quota = |hard: &str| {
            let metadata = json!({"name": "q", "namespace": "ns"});
            (
                "resourcequotas",
                json!({"metadata": metadata, "spec": {"hard": {"pods": "1"}}, "status": {"hard": {hard: "1"}}}),
            )
        };
        let check = |hard: &str, resource: &str| {
            let attributes = request(Operation::Create, resource, "X", json!({"metadata": {"name": "x"}}));
            let plugin = ResourceQuota::new(Arc::new(Stored(vec![quota(hard)])));
            plugin.validate(&attributes, &mut Remarks::default()).err().map(|status| status.message)
        };
        let message = "admit does not support this: ResourceQuota \"q\", whose status limits pods";
        assert_eq!(check("pods", "pods").as_deref(), Some(message));
        for (hard, resource) in [
            ("limits.cpu", "pods"),
            ("services.loadbalancers", "services"),
            ("requests.storage", "persistentvolumeclaims"),
            ("secrets", "secrets"),
            ("count/configmaps", "configmaps"),
        ] {
            assert!(check(hard, resource).is_some(), "{hard} {resource}");
        }
        for (hard, resource) in [("pods", "secrets"), ("secrets", "pods"), ("count/pods", "secrets")] {
            assert_eq!(check(hard, resource), None, "{hard} {resource}");
        }
    }
}
