//! Lists the built-in kinds.

use kubernetes_admission::attributes::GroupVersionKind;

use crate::kinds::admissionregistration::{
    mutating_admission_policy, mutating_admission_policy_binding, mutating_webhook_configuration,
    validating_admission_policy, validating_admission_policy_binding, validating_webhook_configuration,
};
use crate::kinds::apiextensions::custom_resource_definition;
use crate::kinds::apiregistration::api_service;
use crate::kinds::apps::{controller_revision, daemon_set, deployment, replica_set, stateful_set};
use crate::kinds::authentication::token_request;
use crate::kinds::autoscaling::horizontal_pod_autoscaler;
use crate::kinds::batch::{cron_job, job};
use crate::kinds::certificates::{
    certificate_signing_request, cluster_trust_bundle, pod_certificate_request,
};
use crate::kinds::coordination::{lease, lease_candidate};
use crate::kinds::core::{
    component_status, config_map, endpoints, event, limit_range, namespace, node, persistent_volume,
    persistent_volume_claim, pod, pod_template, replication_controller, resource_quota, secret, service,
    service_account,
};
use crate::kinds::discovery::Resource;
use crate::kinds::discovery_k8s_io::endpoint_slice;
use crate::kinds::flowcontrol::{flow_schema, priority_level_configuration};
use crate::kinds::kind::Kind;
use crate::kinds::networking::{ingress, ingress_class, ip_address, network_policy, service_cidr};
use crate::kinds::node::runtime_class;
use crate::kinds::policy::pod_disruption_budget;
use crate::kinds::rbac::{role_bindings, roles};
use crate::kinds::resource::{
    device_class, device_taint_rule, resource_claim, resource_claim_template, resource_pool_status_request,
    resource_slice,
};
use crate::kinds::scheduling::priority_class;
use crate::kinds::storage::{
    csi_driver, csi_node, csi_storage_capacity, storage_class, volume_attachment, volume_attributes_class,
};
use crate::kinds::storagemigration::storage_version_migration;

/// All kinds that differ from [`Kind::PLAIN`]. Only this table lists them.
pub(crate) static KINDS: [&Kind; 67] = [
    &config_map::KIND,
    &secret::KIND,
    &pod::KIND,
    &pod_template::KIND,
    &replication_controller::KIND,
    &service::KIND,
    &endpoints::KIND,
    &limit_range::KIND,
    &resource_quota::KIND,
    &namespace::KIND,
    &node::KIND,
    &persistent_volume::KIND,
    &persistent_volume_claim::KIND,
    &service_account::KIND,
    &component_status::KIND,
    &event::KIND,
    &event::IN_EVENTS,
    &deployment::KIND,
    &replica_set::KIND,
    &stateful_set::KIND,
    &daemon_set::KIND,
    &controller_revision::KIND,
    &job::KIND,
    &cron_job::KIND,
    &horizontal_pod_autoscaler::KIND,
    &ingress::KIND,
    &ingress_class::KIND,
    &network_policy::KIND,
    &service_cidr::KIND,
    &ip_address::KIND,
    &endpoint_slice::KIND,
    &pod_disruption_budget::KIND,
    &priority_class::KIND,
    &storage_class::KIND,
    &csi_driver::KIND,
    &csi_node::KIND,
    &csi_storage_capacity::KIND,
    &volume_attachment::KIND,
    &volume_attributes_class::KIND,
    &runtime_class::KIND,
    &lease::KIND,
    &lease_candidate::KIND,
    &roles::KIND,
    &roles::CLUSTER,
    &role_bindings::KIND,
    &role_bindings::CLUSTER,
    &certificate_signing_request::KIND,
    &cluster_trust_bundle::KIND,
    &pod_certificate_request::KIND,
    &device_class::KIND,
    &resource_claim::KIND,
    &resource_claim_template::KIND,
    &resource_slice::KIND,
    &device_taint_rule::KIND,
    &resource_pool_status_request::KIND,
    &mutating_webhook_configuration::KIND,
    &validating_webhook_configuration::KIND,
    &validating_admission_policy::KIND,
    &validating_admission_policy_binding::KIND,
    &mutating_admission_policy::KIND,
    &mutating_admission_policy_binding::KIND,
    &custom_resource_definition::KIND,
    &api_service::KIND,
    &flow_schema::KIND,
    &priority_level_configuration::KIND,
    &storage_version_migration::KIND,
    &token_request::KIND,
];

/// Returns the behavior of a resource. Resources without an entry are plain.
pub(crate) fn of(resource: &Resource) -> &'static Kind {
    if resource.custom.is_some() {
        return &Kind::CUSTOM;
    }
    let is_same =
        |kind: &&&'static Kind| kind.resource == resource.gvr.resource && kind.group == resource.gvr.group;
    KINDS.iter().find(is_same).copied().unwrap_or(&Kind::PLAIN)
}

/// Returns the behavior of the objects with this kind; `None` if the kind does not have an entry.
pub(crate) fn of_kind(kind: &GroupVersionKind) -> Option<&'static Kind> {
    let is_same = |known: &&&'static Kind| {
        known.kind == kind.kind
            && known.group == kind.group
            && known.versions.contains(&kind.version.as_str())
    };
    KINDS.iter().find(is_same).copied()
}
