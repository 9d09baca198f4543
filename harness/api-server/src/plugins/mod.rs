//! The in-tree admission plugins that the server supports.
//!
//! `selection` lists all plugins and whether admit supports them.

mod always_pull_images;
mod certificate_subject_restriction;
mod containers;
mod default_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod namespace_exists;
mod namespace_lifecycle;
mod node_declared_features;
mod node_restriction;
mod persistent_volume_claim_resize;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_security;
mod pod_topology_labels;
mod policy_order;
mod priority;
mod resource_quota;
mod runtime_class;
mod selection;
mod service_account;
mod storage_object_in_use;
mod taint_nodes;
mod tolerations;

pub use self::default_toleration_seconds::DefaultTolerationSeconds;
pub use self::pod_node_selector::PodNodeSelectorConfiguration;
pub use self::pod_security::{PodSecurityConfiguration, PodSecurityDefaults, PodSecurityExemptions};
pub use self::policy_order::PolicyOrder;
pub(crate) use self::resource_quota::{ObjectWriter, QuotaWriter};
pub use self::selection::{AdmissionPlugins, SelectionError};
pub use self::storage_object_in_use::StorageObjectInUseProtection;
pub use self::taint_nodes::TaintNodesByCondition;

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::failure::forbidden;
use kubernetes_admission::metrics::Metrics;
use kubernetes_admission::plugin::Plugin;
use serde_json::{Map, Value};

use self::always_pull_images::AlwaysPullImages;
use self::certificate_subject_restriction::CertificateSubjectRestriction;
use self::default_class::{DefaultClass, INGRESS, STORAGE};
use self::deny_service_external_ips::DenyServiceExternalIPs;
use self::limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology;
use self::limit_ranger::LimitRanger;
use self::namespace_exists::NamespaceExists;
use self::namespace_lifecycle::NamespaceLifecycle;
use self::node_declared_features::NodeDeclaredFeatureValidator;
use self::node_restriction::NodeRestriction;
use self::persistent_volume_claim_resize::PersistentVolumeClaimResize;
use self::pod_node_selector::PodNodeSelector;
use self::pod_resize_validator::PodResizeValidator;
use self::pod_security::PodSecurity;
use self::pod_topology_labels::PodTopologyLabels;
use self::priority::Priority;
use self::resource_quota::ResourceQuota;
use self::runtime_class::RuntimeClass;
use self::service_account::ServiceAccount;
use super::storage::ObjectReader;

/// The configuration of in-tree plugins, in addition to the flags.
///
/// Rule: LOAD-16, LOAD-17.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginConfiguration {
    /// The configuration of `PodSecurity`.
    pub pod_security: PodSecurityConfiguration,
    /// The configuration of `PodNodeSelector`.
    pub pod_node_selector: PodNodeSelectorConfiguration,
    /// The flags of `DefaultTolerationSeconds`.
    pub default_toleration_seconds: DefaultTolerationSeconds,
    /// The order of `MutatingAdmissionPolicy` and `ValidatingAdmissionPolicy`.
    pub policy_order: PolicyOrder,
}

/// The plugins of a server, in the order in which they run.
pub(crate) struct Plugins {
    /// The plugins that run before the webhooks.
    pub(crate) first: Vec<Box<dyn Plugin>>,
    /// The plugins that run after the webhooks.
    pub(crate) last: Vec<Box<dyn Plugin>>,
}

impl Plugins {
    /// Creates the enabled plugins that have an effect; the plugins read `objects`, and write with `writer`.
    ///
    /// Rule: CHN-10.
    pub(crate) fn new(
        selection: &AdmissionPlugins,
        configuration: &PluginConfiguration,
        (objects, writer): (&Arc<dyn ObjectReader>, &QuotaWriter),
        metrics: &Metrics,
    ) -> Self {
        let mut plugins = Self { first: Vec::new(), last: Vec::new() };
        for name in selection.in_order() {
            let objects = Arc::clone(objects);
            let plugin: Box<dyn Plugin> = match name {
                "NamespaceLifecycle" => Box::new(NamespaceLifecycle::new(objects)),
                "LimitRanger" => Box::new(LimitRanger::new(objects)),
                "ServiceAccount" => Box::new(ServiceAccount::new(objects)),
                "TaintNodesByCondition" => Box::new(TaintNodesByCondition),
                "AlwaysPullImages" => Box::new(AlwaysPullImages),
                "PodNodeSelector" => {
                    Box::new(PodNodeSelector::new(objects, configuration.pod_node_selector.clone()))
                }
                "DefaultStorageClass" => Box::new(DefaultClass::new(objects, &STORAGE)),
                "DefaultIngressClass" => Box::new(DefaultClass::new(objects, &INGRESS)),
                "RuntimeClass" => Box::new(RuntimeClass::new(objects)),
                "PodSecurity" => {
                    let counters = metrics.pod_security();
                    Box::new(PodSecurity::new(objects, configuration.pod_security.clone(), counters))
                }
                "Priority" => Box::new(Priority::new(objects)),
                "DefaultTolerationSeconds" => Box::new(configuration.default_toleration_seconds),
                "StorageObjectInUseProtection" => Box::new(StorageObjectInUseProtection),
                "NamespaceExists" => Box::new(NamespaceExists::new(objects)),
                "LimitPodHardAntiAffinityTopology" => Box::new(LimitPodHardAntiAffinityTopology),
                "NodeRestriction" => Box::new(NodeRestriction),
                "PersistentVolumeClaimResize" => Box::new(PersistentVolumeClaimResize::new(objects)),
                "CertificateSubjectRestriction" => Box::new(CertificateSubjectRestriction),
                "PodTopologyLabels" => Box::new(PodTopologyLabels::new(objects)),
                "NodeDeclaredFeatureValidator" => Box::new(NodeDeclaredFeatureValidator::new(objects)),
                "PodResizeValidator" => Box::new(PodResizeValidator::new(objects)),
                "DenyServiceExternalIPs" => Box::new(DenyServiceExternalIPs),
                "ResourceQuota" => {
                    plugins.last.push(Box::new(ResourceQuota::new(objects, Arc::clone(writer))));
                    continue;
                }
                _ => continue,
            };
            plugins.first.push(plugin);
        }
        plugins
    }
}

/// Returns whether the request is for a Pod, not for a subresource.
fn is_pod(attributes: &Attributes) -> bool {
    attributes.subresource.is_empty() && attributes.resource.group_resource() == "pods"
}

/// Returns whether the request creates or updates an object.
fn is_write(attributes: &Attributes) -> bool {
    matches!(attributes.operation, Operation::Create | Operation::Update)
}

/// Returns whether the request creates a Pod.
fn is_new_pod(attributes: &Attributes) -> bool {
    is_pod(attributes) && attributes.operation == Operation::Create
}

fn spec(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("spec")?.as_object_mut()
}

/// Returns a mutable reference to a member; sets the member to `empty` first if it is absent or null.
fn member<'a>(members: &'a mut Map<String, Value>, name: &str, empty: Value) -> &'a mut Value {
    let member = members.entry(name.to_owned()).or_insert(Value::Null);
    if member.is_null() {
        *member = empty;
    }
    member
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource, Operation, UserInfo};
    use serde_json::json;

    use super::*;

    /// An object reader over a fixed list of objects, each with the name of its resource.
    pub(crate) struct Stored(pub(crate) Vec<(&'static str, Value)>);

    impl ObjectReader for Stored {
        fn get(&self, _group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
            self.list("", resource, namespace).into_iter().find(|object| object["metadata"]["name"] == name)
        }

        fn list(&self, _group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
            let in_namespace = |object: &Value| {
                namespace.is_empty() || object["metadata"]["namespace"].as_str() == Some(namespace)
            };
            let of_resource =
                self.0.iter().filter(|(stored, object)| *stored == resource && in_namespace(object));
            of_resource.map(|(_, object)| Arc::new(object.clone())).collect()
        }
    }

    /// Creates a request for an object of the core group in the namespace `ns`.
    pub(crate) fn request(operation: Operation, resource: &str, kind: &str, object: Value) -> Attributes {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Attributes {
            operation,
            resource: GroupVersionResource::new("", "v1", resource),
            subresource: String::new(),
            kind: GroupVersionKind::new("", "v1", kind),
            namespace: "ns".to_owned(),
            name,
            object: Some(object),
            old_object: None,
            options: None,
            dry_run: false,
            user: UserInfo::default(),
        }
    }

    #[test]
    fn denial_names_the_object_if_known() {
        for (metadata, name) in [
            (json!({"name": "x"}), "x"),
            (json!({"name": "", "generateName": "x-"}), "x-"),
            (json!({}), "Unknown"),
        ] {
            let mut attributes =
                request(Operation::Create, "configmaps", "ConfigMap", json!({"metadata": metadata}));
            attributes.name.clear();
            let status = forbidden(&attributes, "no");
            assert_eq!(status.message, format!("configmaps \"{name}\" is forbidden: no"));
        }
    }
}
