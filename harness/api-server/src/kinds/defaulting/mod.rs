//! Sets the defaults of the API server's scheme.
//!
//! Kinds that are not in [`DEFAULTS`] do not have defaults.

pub(crate) mod autoscaling;
pub(crate) mod core;
pub(crate) mod devices;
pub(crate) mod extensions;
pub(crate) mod flow_control;
pub(crate) mod internal;
pub(crate) mod pod;
pub(crate) mod policies;
pub(crate) mod storage;
pub(crate) mod workloads;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::schema;
use serde_json::Value;

use crate::kinds::common;
use crate::kinds::defaulting::internal::through_internal;

/// Sets the defaults that apply to the `apiVersion` and `kind` of `object`. Is idempotent.
///
/// Rule: KND-01.
pub(crate) fn set_defaults(object: &mut Value) {
    set_own_defaults(object);
    through_internal(object);
}

/// Sets defaults as [`set_defaults`] does, but does not convert the object to the internal type and back.
///
/// If a webhook patches an object, the next webhooks receive the object with these defaults but without the conversion.
pub(crate) fn set_own_defaults(object: &mut Value) {
    let meant = GroupVersionKind::from_object(object);
    // Unknown fields are not reported here.
    drop(schema::normalize(object, &meant));
    let api_version = common::defaults::text(object, "apiVersion");
    let kind = common::defaults::text(object, "kind");
    let found = DEFAULTS
        .iter()
        .find(|(entry_version, entry_kind, _)| *entry_version == api_version && *entry_kind == kind);
    if let Some((_, _, set)) = found {
        set(object);
    }
}

/// A function that sets the defaults of one kind.
type SetDefaults = fn(&mut Value);

/// The functions that set defaults, by `apiVersion` and `kind`.
const DEFAULTS: &[(&str, &str, SetDefaults)] = &[
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", policies::policy),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", policies::binding),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        kubernetes_admission::config::set_defaults,
    ),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", policies::policy),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", policies::binding),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        kubernetes_admission::config::set_defaults,
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", extensions::custom_resource_definition),
    ("apiregistration.k8s.io/v1", "APIService", extensions::api_service),
    ("apps/v1", "DaemonSet", workloads::daemon_set),
    ("apps/v1", "Deployment", workloads::deployment),
    ("apps/v1", "ReplicaSet", workloads::replica_set),
    ("apps/v1", "StatefulSet", workloads::stateful_set),
    ("authentication.k8s.io/v1", "TokenRequest", extensions::token_request),
    ("autoscaling/v1", "HorizontalPodAutoscaler", autoscaling::version_1),
    ("autoscaling/v2", "HorizontalPodAutoscaler", autoscaling::version_2),
    ("batch/v1", "CronJob", workloads::cron_job),
    ("batch/v1", "Job", workloads::job),
    ("certificates.k8s.io/v1", "PodCertificateRequest", extensions::pod_certificate_request),
    ("coordination.k8s.io/v1", "Lease", extensions::lease),
    ("discovery.k8s.io/v1", "EndpointSlice", extensions::endpoint_slice),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", flow_control::flow_schema),
    (
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        flow_control::priority_level_configuration,
    ),
    ("networking.k8s.io/v1", "Ingress", extensions::ingress),
    ("networking.k8s.io/v1", "IngressClass", extensions::ingress_class),
    ("networking.k8s.io/v1", "NetworkPolicy", extensions::network_policy),
    ("policy/v1", "PodDisruptionBudget", extensions::pod_disruption_budget),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", extensions::role_binding),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", extensions::role_binding),
    ("resource.k8s.io/v1", "DeviceTaintRule", devices::device_taint_rule),
    ("resource.k8s.io/v1", "ResourceClaim", devices::resource_claim),
    ("resource.k8s.io/v1", "ResourceClaimTemplate", devices::resource_claim_template),
    ("resource.k8s.io/v1", "ResourceSlice", devices::resource_slice),
    ("scheduling.k8s.io/v1", "PriorityClass", extensions::priority_class),
    ("storage.k8s.io/v1", "CSIDriver", storage::csi_driver),
    ("storage.k8s.io/v1", "StorageClass", storage::storage_class),
    ("storage.k8s.io/v1", "VolumeAttachment", storage::volume_attachment),
    ("v1", "ConfigMap", core::config_map),
    ("v1", "Endpoints", core::endpoints),
    ("v1", "LimitRange", core::limit_range),
    ("v1", "Namespace", core::namespace),
    ("v1", "Node", core::node),
    ("v1", "PersistentVolume", core::persistent_volume),
    ("v1", "PersistentVolumeClaim", core::persistent_volume_claim),
    ("v1", "Pod", pod::pod),
    ("v1", "PodTemplate", workloads::pod_template),
    ("v1", "ReplicationController", workloads::replication_controller),
    ("v1", "ResourceQuota", core::resource_quota),
    ("v1", "Secret", core::secret),
    ("v1", "Service", core::service),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Test cases from kube-apiserver 1.37.1.
    ///
    /// `input` is the object sent to kube-apiserver. `defaulted` is the `requestObject` of the audit event: the object
    /// after decoding and before admission.
    const CASES: &str = include_str!("cases.json");

    fn cases() -> Vec<Value> {
        serde_json::from_str(CASES).unwrap()
    }

    #[test]
    fn every_kind_is_defaulted_like_upstream() {
        for case in cases() {
            let mut object = case["input"].clone();
            set_defaults(&mut object);
            assert_eq!(object, case["defaulted"], "{object:#}");
        }
    }

    #[test]
    fn defaulting_is_idempotent() {
        for case in cases() {
            let mut object = case["defaulted"].clone();
            set_defaults(&mut object);
            assert_eq!(object, case["defaulted"], "{object:#}");
        }
    }

    #[test]
    fn every_defaulted_kind_has_a_case() {
        let cases = cases();
        for (api_version, kind, _) in DEFAULTS {
            let of_kind =
                |case: &&Value| case["input"]["apiVersion"] == *api_version && case["input"]["kind"] == *kind;
            assert!(cases.iter().any(|case| of_kind(&case)), "{api_version} {kind}");
        }
    }

    #[test]
    fn malformed_objects_are_left_to_validation() {
        for case in cases() {
            for field in ["spec", "metadata", "status"] {
                for wrong in
                    [serde_json::json!(1), serde_json::json!([1]), serde_json::json!("x"), Value::Null]
                {
                    let mut object = case["input"].clone();
                    object[field] = wrong;
                    set_defaults(&mut object);
                }
            }
        }
    }

    #[test]
    fn custom_resources_get_no_built_in_defaults() {
        let mut object =
            serde_json::json!({"apiVersion": "example.com/v1", "kind": "Pod", "spec": {"containers": [{}]}});
        let before = object.clone();
        set_defaults(&mut object);
        assert_eq!(object, before);
    }
}
