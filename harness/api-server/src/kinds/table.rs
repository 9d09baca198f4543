//! Lists the built-in kinds.

use kubernetes_admission::attributes::GroupVersionKind;

use crate::kinds::discovery::Resource;
use crate::kinds::kind::Kind;
use crate::kinds::{
    admissionregistration, apiextensions, apiregistration, apps, authentication, autoscaling, batch,
    certificates, coordination, core, discovery_k8s_io, flowcontrol, networking, node, policy, rbac,
    resource, scheduling, storage, storagemigration,
};

/// All kinds that differ from [`Kind::PLAIN`]. Only this table lists them.
pub(crate) static KINDS: [&Kind; 67] = [
    &core::config_map::KIND,
    &core::secret::KIND,
    &core::pod::KIND,
    &core::pod_template::KIND,
    &core::replication_controller::KIND,
    &core::service::KIND,
    &core::endpoints::KIND,
    &core::limit_range::KIND,
    &core::resource_quota::KIND,
    &core::namespace::KIND,
    &core::node::KIND,
    &core::persistent_volume::KIND,
    &core::persistent_volume_claim::KIND,
    &core::service_account::KIND,
    &core::component_status::KIND,
    &core::event::KIND,
    &core::event::IN_EVENTS,
    &apps::deployment::KIND,
    &apps::replica_set::KIND,
    &apps::stateful_set::KIND,
    &apps::daemon_set::KIND,
    &apps::controller_revision::KIND,
    &batch::job::KIND,
    &batch::cron_job::KIND,
    &autoscaling::horizontal_pod_autoscaler::KIND,
    &networking::ingress::KIND,
    &networking::ingress_class::KIND,
    &networking::network_policy::KIND,
    &networking::service_cidr::KIND,
    &networking::ip_address::KIND,
    &discovery_k8s_io::endpoint_slice::KIND,
    &policy::pod_disruption_budget::KIND,
    &scheduling::priority_class::KIND,
    &storage::storage_class::KIND,
    &storage::csi_driver::KIND,
    &storage::csi_node::KIND,
    &storage::csi_storage_capacity::KIND,
    &storage::volume_attachment::KIND,
    &storage::volume_attributes_class::KIND,
    &node::runtime_class::KIND,
    &coordination::lease::KIND,
    &coordination::lease_candidate::KIND,
    &rbac::roles::KIND,
    &rbac::roles::CLUSTER,
    &rbac::role_bindings::KIND,
    &rbac::role_bindings::CLUSTER,
    &certificates::certificate_signing_request::KIND,
    &certificates::cluster_trust_bundle::KIND,
    &certificates::pod_certificate_request::KIND,
    &resource::device_class::KIND,
    &resource::resource_claim::KIND,
    &resource::resource_claim_template::KIND,
    &resource::resource_slice::KIND,
    &resource::device_taint_rule::KIND,
    &resource::resource_pool_status_request::KIND,
    &admissionregistration::mutating_webhook_configuration::KIND,
    &admissionregistration::validating_webhook_configuration::KIND,
    &admissionregistration::validating_admission_policy::KIND,
    &admissionregistration::validating_admission_policy_binding::KIND,
    &admissionregistration::mutating_admission_policy::KIND,
    &admissionregistration::mutating_admission_policy_binding::KIND,
    &apiextensions::custom_resource_definition::KIND,
    &apiregistration::api_service::KIND,
    &flowcontrol::flow_schema::KIND,
    &flowcontrol::priority_level_configuration::KIND,
    &storagemigration::storage_version_migration::KIND,
    &authentication::token_request::KIND,
];

/// Returns the behavior of a resource. Custom resources and resources without an entry are plain.
pub(crate) fn of(resource: &Resource) -> &'static Kind {
    if resource.custom.is_some() {
        return &Kind::PLAIN;
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
