//! Validates built-in kinds except for metadata, with one module for each group of kinds.
//!
//! Each rule is a function of an object and its old version, and reports errors in kube-apiserver's order.

pub(crate) mod admission_policies;
pub(crate) mod api_services;
pub(crate) mod attachments;
pub(crate) mod autoscaling;
pub(crate) mod certificate_extensions;
pub(crate) mod certificates;
pub(crate) mod config_data;
pub(crate) mod devices;
pub(crate) mod drivers;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod flow_control;
pub(crate) mod job_policies;
pub(crate) mod job_status;
pub(crate) mod jobs;
pub(crate) mod migrations;
pub(crate) mod networking;
pub(crate) mod nodes;
pub(crate) mod pod;
pub(crate) mod pod_certificates;
pub(crate) mod policies;
pub(crate) mod quotas;
pub(crate) mod schedule;
pub(crate) mod service_addresses;
pub(crate) mod services;
pub(crate) mod signing_requests;
pub(crate) mod statuses;
pub(crate) mod storage;
pub(crate) mod volumes;
pub(crate) mod warnings;
pub(crate) mod workloads;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::ConversionError;
use kubernetes_types::schema::Type;
use kubernetes_types::status::{FieldError, Unsupported};
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields;
use crate::kinds::common::fields::{Errors, Path};
use crate::kinds::common::internal::Form;
use crate::kinds::conversion;
use crate::kinds::discovery::Resource;
use crate::kinds::validation::admission_policies::{bindings, mutating, validating};
use crate::kinds::validation::devices::slices;
use crate::kinds::validation::pod::resize;

/// Returns an error for each reason why the versions of a definition are invalid.
///
/// # Errors
/// Returns an error if the error messages would be too large.
pub(crate) fn of_versions(versions: &Value, whys: &[&str]) -> Result<Vec<FieldError>, Unsupported> {
    let (mut errors, spec) = (Errors::default(), Path::new("spec"));
    for why in whys {
        let shown = errors.shown(Form::List, "apiextensions.CustomResourceDefinitionVersion", versions);
        errors.invalid(&spec.child("versions"), shown, why);
    }
    errors.into_list()
}

/// Validates an object. For an update of the object or of a subresource, `old` is the previous object.
///
/// Rule: VLO-01.
///
/// # Errors
/// Returns an error if the object requires validation that admit does not support.
pub(crate) fn errors(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Result<Vec<FieldError>, Unsupported> {
    let mut errors = Errors::default();
    let change = old.map(|old| Change { new: object, old, of: Type::for_kind(&resource.kind) });
    let version = resource.kind.version.as_str();
    match (subresource, resource.gvr.group_resource().as_str(), change) {
        ("", "configmaps", _) => config_data::config_map(&mut errors, object, old),
        ("", "secrets", _) => {
            config_data::secret(&mut errors, object, old);
            if config_data::has_unreadable_docker_config(object) {
                let what =
                    "the message for a Secret whose Docker configuration is not a JSON object".to_owned();
                return Err(Unsupported { what });
            }
        }
        ("", "pods", None) => pod::new(&mut errors, object),
        ("", "pods", Some(change)) => pod::update::of_object(&mut errors, object, change),
        ("status", "pods", Some(change)) => pod::status::of_status(&mut errors, object, change),
        ("ephemeralcontainers", "pods", Some(change)) => {
            pod::update::of_ephemeral_containers(&mut errors, object, change);
        }
        ("resize", "pods", Some(change)) => resize::of_resize(&mut errors, object, change),
        ("", "podtemplates", _) => {
            let template = fields::get(object, "template");
            pod::template(&mut errors, &fields::Path::new("template"), template, None);
        }
        ("", "deployments.apps", change) if version == "v1" => {
            workloads::deployment(&mut errors, object, change);
        }
        ("", "replicasets.apps", change) => workloads::replica_set(&mut errors, object, change),
        ("", "daemonsets.apps", change) => workloads::daemon_set(&mut errors, object, change),
        ("", "statefulsets.apps", change) => workloads::stateful_set(&mut errors, object, change),
        ("", "replicationcontrollers", _) => workloads::replication_controller(&mut errors, object),
        ("", "jobs.batch", change) => jobs::job(&mut errors, object, change),
        ("", "cronjobs.batch", change) => jobs::cron_job(&mut errors, object, change),
        ("", "services", change) => services::service(&mut errors, object, change),
        ("", "persistentvolumeclaims", change) => storage::claim(&mut errors, object, change),
        ("status", "persistentvolumeclaims", Some(_)) => storage::claim_status(&mut errors, object),
        ("", "storageclasses.storage.k8s.io", change) => storage::class(&mut errors, object, change),
        ("", "poddisruptionbudgets.policy", _) => policies::disruption_budget(&mut errors, object),
        ("", "priorityclasses.scheduling.k8s.io", change) => {
            policies::priority_class(&mut errors, object, change);
        }
        ("", "networkpolicies.networking.k8s.io", change) => {
            policies::network_policy(&mut errors, object, change);
        }
        (_, kind, _) => of_infrastructure(&mut errors, (subresource, kind), object, change),
    }
    match (subresource, resource.gvr.group_resource().as_str()) {
        (_, "horizontalpodautoscalers.autoscaling") => autoscaler(&mut errors, object, old, subresource)?,
        ("", "deviceclasses.resource.k8s.io") => devices::class(&mut errors, object, change)?,
        ("", "resourceclaims.resource.k8s.io") => devices::claim(&mut errors, object, change)?,
        ("", "resourceclaimtemplates.resource.k8s.io") => devices::template(&mut errors, object, change)?,
        _ => {}
    }
    errors.into_list()
}

/// Validates Services, volumes, and other kinds that are not workloads.
fn of_infrastructure(
    errors: &mut Errors,
    resource: (&str, &str),
    object: &Value,
    change: Option<Change<'_>>,
) {
    match (resource, change) {
        (("", "ingresses.networking.k8s.io"), change) => networking::ingress(errors, object, change),
        (("status", "ingresses.networking.k8s.io"), Some(change)) => {
            networking::ingress_status(errors, object, change);
        }
        (("", "ingressclasses.networking.k8s.io"), change) => {
            networking::ingress_class(errors, object, change);
        }
        (("", "endpoints"), change) => endpoints::endpoints(errors, object, change),
        (("", "endpointslices.discovery.k8s.io"), change) => endpoints::slice(errors, object, change),
        (("", "limitranges"), _) => quotas::limit_range(errors, object),
        (("", "resourcequotas"), change) => quotas::quota(errors, object, change),
        (("status", "resourcequotas"), _) => quotas::quota_status(errors, object),
        (("", "persistentvolumes"), change) => volumes::volume(errors, object, change),
        (("", "nodes"), change) => {
            nodes::node(errors, object);
            if let Some(change) = change {
                nodes::changed_node(errors, object, change);
            }
        }
        (("status", "nodes"), Some(change)) => nodes::changed_node(errors, object, change),
        (("", "runtimeclasses.node.k8s.io"), change) => nodes::runtime_class(errors, object, change),
        (("", "leases.coordination.k8s.io"), _) => nodes::lease(errors, object),
        (("", "events"), _) => events::event(errors, object, false),
        (("", "events.events.k8s.io"), change) => {
            events::event(errors, object, true);
            match change {
                None => events::new_event(errors, object),
                Some(change) => events::changed_event(errors, object, change),
            }
        }
        (("status", "jobs.batch"), Some(change)) => job_status::status(errors, object, change),
        (
            (
                "status",
                kind @ ("deployments.apps"
                | "replicasets.apps"
                | "statefulsets.apps"
                | "daemonsets.apps"
                | "replicationcontrollers"),
            ),
            Some(change),
        ) => statuses::workload(errors, kind, object, change),
        (("status", "services"), Some(change)) => statuses::service(errors, object, change),
        (("status", "poddisruptionbudgets.policy"), _) => statuses::budget(errors, object),
        (("", "csidrivers.storage.k8s.io"), change) => drivers::driver(errors, object, change),
        (("", "csistoragecapacities.storage.k8s.io"), change) => drivers::capacity(errors, object, change),
        (("" | "status", "volumeattachments.storage.k8s.io"), change) => {
            attachments::attachment(errors, object, change);
        }
        (("", "volumeattributesclasses.storage.k8s.io"), change) => {
            attachments::attributes_class(errors, object, change);
        }
        (("", "csinodes.storage.k8s.io"), change) => attachments::node(errors, object, change),
        (("", "controllerrevisions.apps"), change) => {
            workloads::controller_revision(errors, object, change);
        }
        (("", "namespaces"), None) => drivers::namespace(errors, object, true),
        (("finalize", "namespaces"), _) => drivers::namespace(errors, object, false),
        (("", "certificatesigningrequests.certificates.k8s.io"), None) => {
            signing_requests::new(errors, object);
        }
        _ => of_administration(errors, resource, object, change),
    }
}

/// Validates kinds that cluster administrators and operators manage.
fn of_administration(
    errors: &mut Errors,
    resource: (&str, &str),
    object: &Value,
    change: Option<Change<'_>>,
) {
    match (resource, change) {
        (("", "flowschemas.flowcontrol.apiserver.k8s.io"), _) => flow_control::schema(errors, object),
        (("", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"), _) => {
            flow_control::level(errors, object);
        }
        (
            (
                "status",
                "flowschemas.flowcontrol.apiserver.k8s.io"
                | "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
            ),
            _,
        ) => flow_control::conditions(errors, object),
        (("", "validatingadmissionpolicies.admissionregistration.k8s.io"), change) => {
            validating::validating_policy(errors, object, change);
        }
        (("status", "validatingadmissionpolicies.admissionregistration.k8s.io"), Some(_)) => {
            validating::validating_policy_status(errors, object);
        }
        (("", "validatingadmissionpolicybindings.admissionregistration.k8s.io"), change) => {
            bindings::validating_binding(errors, object, change.is_none());
        }
        (("", "mutatingadmissionpolicies.admissionregistration.k8s.io"), change) => {
            mutating::mutating_policy(errors, object, change);
        }
        (("", "mutatingadmissionpolicybindings.admissionregistration.k8s.io"), change) => {
            bindings::mutating_binding(errors, object, change.is_none());
        }
        (("", "servicecidrs.networking.k8s.io"), change) => {
            service_addresses::range(errors, object, change);
        }
        (("", "apiservices.apiregistration.k8s.io"), _) => api_services::service(errors, object),
        (("status", "apiservices.apiregistration.k8s.io"), _) => api_services::status(errors, object),
        (("", "ipaddresses.networking.k8s.io"), change) => {
            service_addresses::address(errors, object, change);
        }
        (("status", "resourceclaims.resource.k8s.io"), Some(change)) => {
            devices::status::claim_status(errors, object, change);
        }
        (("", "resourceslices.resource.k8s.io"), change) => slices::slice(errors, object, change),
        (("", "devicetaintrules.resource.k8s.io"), _) => devices::taint_rule(errors, object),
        (("status", "devicetaintrules.resource.k8s.io"), _) => devices::taint_rule_status(errors, object),
        (("", "storageversionmigrations.storagemigration.k8s.io"), change) => {
            migrations::migration(errors, object, change);
        }
        (("status", "storageversionmigrations.storagemigration.k8s.io"), Some(change)) => {
            migrations::status(errors, object, change);
        }
        (("", "clustertrustbundles.certificates.k8s.io"), change) => {
            certificates::trust_bundle(errors, object, change);
        }
        (("", "podcertificaterequests.certificates.k8s.io"), change) => {
            certificates::pod_request(errors, object, change);
        }
        (("status", "podcertificaterequests.certificates.k8s.io"), Some(change)) => {
            certificates::pod_request_status(errors, object, change);
        }
        _ => {}
    }
}

/// Validates an autoscaler of any version as an object of `autoscaling/v2`.
fn autoscaler(
    errors: &mut Errors,
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
) -> Result<(), Unsupported> {
    let kind = GroupVersionKind {
        group: "autoscaling".to_owned(),
        version: "v2".to_owned(),
        kind: "HorizontalPodAutoscaler".to_owned(),
    };
    let in_version_2 = |object: &Value| {
        conversion::convert(object, &kind, conversion::Strategy::Scheme).map_err(|error| match error {
            ConversionError::Unsupported(unsupported) => unsupported,
            ConversionError::Refused(_)
            | ConversionError::ByWebhook(_)
            | ConversionError::TooManyRequests => {
                Unsupported { what: "validation of this HorizontalPodAutoscaler".to_owned() }
            }
        })
    };
    let new = in_version_2(object)?;
    let old = old.map(in_version_2).transpose()?;
    let change = old.as_ref().map(|old| Change { new: &new, old, of: Type::for_kind(&kind) });
    match subresource {
        "" => autoscaling::autoscaler(errors, &new, change),
        "status" => autoscaling::status(errors, &new),
        _ => {}
    }
    Ok(())
}
