//! Small plugins: `LimitPodHardAntiAffinityTopology`, `DenyServiceExternalIPs`, `NodeRestriction`,
//! `PersistentVolumeClaimResize`, and `NamespaceExists`.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::quantity;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;

use super::containers::items;
use super::forbidden;
use crate::storage::ObjectReader;

fn is_write(attributes: &Attributes) -> bool {
    matches!(attributes.operation, Operation::Create | Operation::Update)
}

/// Rejects Pods whose required anti-affinity has a topology key other than the host name.
///
/// Source: kubernetes plugin/pkg/admission/antiaffinity/admission.go.
pub(crate) struct LimitPodHardAntiAffinityTopology;

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn name(&self) -> &'static str {
        "LimitPodHardAntiAffinityTopology"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        const HOSTNAME: &str = "kubernetes.io/hostname";
        let Some(pod) =
            attributes.object.as_ref().filter(|_| super::is_pod(attributes) && is_write(attributes))
        else {
            return Ok(());
        };
        let anti_affinity = at(pod, &["spec", "affinity", "podAntiAffinity"]);
        let mut keys = items(anti_affinity, "requiredDuringSchedulingIgnoredDuringExecution")
            .map(|term| text(term, &["topologyKey"]));
        let Some(key) = keys.find(|key| *key != HOSTNAME) else { return Ok(()) };
        let why = format!(
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is allowed"
        );
        Err(Box::new(Status::forbidden("", "pods", text(pod, &["metadata", "name"]), &why)))
    }
}

/// Rejects Services with new external IPs.
///
/// Source: kubernetes plugin/pkg/admission/network/denyserviceexternalips/admission.go.
pub(crate) struct DenyServiceExternalIPs;

impl Plugin for DenyServiceExternalIPs {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let is_service =
            attributes.subresource.is_empty() && attributes.resource.group_resource() == "services";
        let Some(service) = attributes.object.as_ref().filter(|_| is_service && is_write(attributes)) else {
            return Ok(());
        };
        let old: BTreeSet<&str> = attributes.old_object.iter().flat_map(external_addresses).collect();
        if external_addresses(service).all(|address| old.contains(address)) {
            return Ok(());
        }
        Err(forbidden(attributes, "Use of external IPs is denied by admission control"))
    }
}

fn external_addresses(service: &Value) -> impl Iterator<Item = &str> {
    items(at(service, &["spec"]), "externalIPs").filter_map(Value::as_str)
}

/// Restricts the writes of nodes. Allows other users; requests of nodes are not supported.
///
/// Source: kubernetes plugin/pkg/admission/noderestriction/admission.go.
pub(crate) struct NodeRestriction;

impl Plugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    fn admit(&self, attributes: &mut Attributes) -> Result<(), Box<Status>> {
        let user = &attributes.user;
        // Source: kubernetes pkg/auth/nodeidentifier/default.go.
        let is_node = user.username.starts_with("system:node:")
            && user.groups.iter().any(|group| group == "system:nodes");
        if is_node && attributes.operation != Operation::Connect {
            let what = format!("NodeRestriction for the node {}", user.username);
            return Err(Box::new(Status::unsupported(&Unsupported { what })));
        }
        Ok(())
    }
}

/// Rejects the expansion of a claim unless it is bound and its class allows expansion.
///
/// Source: kubernetes plugin/pkg/admission/storage/persistentvolume/resize/admission.go.
pub(crate) struct PersistentVolumeClaimResize {
    objects: Arc<dyn ObjectReader>,
}

impl PersistentVolumeClaimResize {
    /// Creates the plugin for a server with these objects.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    fn may_grow(&self, claim: &Value, old: &Value) -> bool {
        /// Source: kubernetes pkg/apis/core/helper/helpers.go, `GetPersistentVolumeClaimClass`.
        fn class(claim: &Value) -> &str {
            let annotations = at(claim, &["metadata", "annotations"]);
            let annotation =
                annotations.get("volume.beta.kubernetes.io/storage-class").and_then(Value::as_str);
            annotation.unwrap_or_else(|| text(claim, &["spec", "storageClassName"]))
        }
        let name = class(claim);
        let found = self.objects.get("storage.k8s.io", "storageclasses", "", name);
        !name.is_empty()
            && name == class(old)
            && found.is_some_and(|class| at(&class, &["allowVolumeExpansion"]) == true)
    }
}

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let is_claim = attributes.subresource.is_empty()
            && attributes.resource.group_resource() == "persistentvolumeclaims"
            && attributes.operation == Operation::Update;
        let (true, Some(claim), Some(old)) = (is_claim, &attributes.object, &attributes.old_object) else {
            return Ok(());
        };
        let size = |claim: &Value| quantity::of(at(claim, &["spec", "resources", "requests", "storage"]));
        // A claim without a size requests no storage.
        if size(claim) <= size(old) {
            return Ok(());
        }
        // Upstream's plugin also rejects this, but validation comes first.
        if text(old, &["status", "phase"]) != "Bound" {
            let what = "the validation of claims that are not bound, whose spec cannot change".to_owned();
            return Err(Box::new(Status::unsupported(&Unsupported { what })));
        }
        if self.may_grow(claim, old) {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        Err(forbidden(attributes, why))
    }
}

/// Rejects writes in a namespace that does not exist.
///
/// Source: kubernetes plugin/pkg/admission/namespace/exists/admission.go.
pub(crate) struct NamespaceExists {
    objects: Arc<dyn ObjectReader>,
}

impl NamespaceExists {
    /// Creates the plugin for a server with these objects.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }
}

impl Plugin for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let name = &attributes.namespace;
        let is_namespace = attributes.kind.group.is_empty() && attributes.kind.kind == "Namespace";
        let concerns = !name.is_empty() && !is_namespace && attributes.operation != Operation::Connect;
        if concerns && self.objects.get("", "namespaces", "", name).is_none() {
            return Err(Box::new(Status::not_found("", "namespaces", name)));
        }
        Ok(())
    }
}
