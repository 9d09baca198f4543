//! Measures what an object uses, in the names of quotas.
//!
//! Source: kubernetes pkg/quota/v1/evaluator/core; apiserver pkg/quota/v1/generic/evaluator.go.

use std::collections::BTreeMap;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_types::json::{at, text};
use kubernetes_types::quantity::Quantity;
use serde_json::Value;

use super::pods;
use crate::kinds::core::pod::pod_resources::{self, ResourceList, plus};

/// The way in which the objects of a resource are measured.
#[derive(Debug)]
pub(super) enum Evaluator {
    Pods,
    Services,
    VolumeClaims,
    ResourceClaims,
    /// Counts objects under these names.
    Objects(Vec<String>),
}

const SERVICES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];
const STORAGE_CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
const DEVICE_CLASS_SUFFIX: &str = ".deviceclass.resource.k8s.io/devices";
const RESOURCE_CLAIM_COUNT: &str = "count/resourceclaims.resource.k8s.io";
/// The number of devices that a request for all devices counts as.
///
/// Source: api resource/v1/types.go.
const ALLOCATION_RESULTS_MAX_SIZE: i64 = 32;

/// Resources whose objects are not stored, and events.
///
/// Source: kubernetes pkg/quota/v1/install/registry.go, `ignoredResources`.
const IGNORED: [&str; 10] = [
    "bindings",
    "componentstatuses",
    "tokenreviews.authentication.k8s.io",
    "selfsubjectreviews.authentication.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
    "selfsubjectaccessreviews.authorization.k8s.io",
    "localsubjectaccessreviews.authorization.k8s.io",
    "selfsubjectrulesreviews.authorization.k8s.io",
    "events",
    "events.events.k8s.io",
];

impl Evaluator {
    /// Returns the evaluator for a request; `None` if the request does not change the usage of a quota.
    pub(super) fn new(attributes: &Attributes) -> Option<Self> {
        let resource = attributes.resource.group_resource();
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        let creates_namespace = resource == "namespaces" && attributes.operation == Operation::Create;
        if !is_write
            || attributes.namespace.is_empty()
            || creates_namespace
            || IGNORED.contains(&resource.as_str())
        {
            return None;
        }
        let evaluator = Self::for_resource(&resource);
        evaluator.handles(attributes).then_some(evaluator)
    }

    fn for_resource(resource: &str) -> Self {
        match resource {
            "pods" => Self::Pods,
            "services" => Self::Services,
            "persistentvolumeclaims" => Self::VolumeClaims,
            "resourceclaims.resource.k8s.io" => Self::ResourceClaims,
            "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets" => {
                Self::Objects(vec![format!("count/{resource}"), resource.to_owned()])
            }
            other => Self::Objects(vec![format!("count/{other}")]),
        }
    }

    fn handles(&self, attributes: &Attributes) -> bool {
        let is_update = attributes.operation == Operation::Update;
        match (self, attributes.subresource.as_str()) {
            (Self::Pods, "") => {
                let is_terminating = |object: &Option<Value>| object.as_ref().map(pods::is_terminating);
                !is_update || is_terminating(&attributes.object) != is_terminating(&attributes.old_object)
            }
            (Self::Pods, "resize") => is_update,
            // kube-apiserver compares pointers, so that each write of the status counts as a change.
            (Self::VolumeClaims, "" | "status") | (Self::Services | Self::ResourceClaims, "") => true,
            (Self::Objects(_), "") => !is_update,
            _ => false,
        }
    }

    /// Returns whether a limit applies to the objects of this evaluator.
    pub(super) fn matches_resource(&self, limited: &str) -> bool {
        match self {
            Self::Pods => pods::matches_resource(limited),
            Self::Services => SERVICES.contains(&limited),
            Self::VolumeClaims => {
                let of_class = |resource: &str| {
                    limited.strip_suffix(resource).is_some_and(|rest| rest.ends_with(STORAGE_CLASS_SUFFIX))
                };
                limited == "count/persistentvolumeclaims"
                    || ["persistentvolumeclaims", "requests.storage"]
                        .iter()
                        .any(|resource| limited == *resource || of_class(resource))
            }
            Self::ResourceClaims => limited == RESOURCE_CLAIM_COUNT || limited.ends_with(DEVICE_CLASS_SUFFIX),
            Self::Objects(names) => names.iter().any(|name| name == limited),
        }
    }

    /// Returns whether a limit applies to a `ResourceClaim` only if the extended resource of a device class has its name.
    pub(super) fn depends_on_device_classes(&self, limited: &str) -> bool {
        matches!(self, Self::ResourceClaims) && pods::is_extended_resource_for_quota(limited)
    }

    /// Returns the scope whose selector is evaluated for objects of this evaluator, if any.
    pub(super) fn selected_scope(&self) -> Option<&'static str> {
        match self {
            Self::Pods => Some("PriorityClass"),
            Self::VolumeClaims => Some("VolumeAttributesClass"),
            Self::Services | Self::ResourceClaims | Self::Objects(_) => None,
        }
    }

    /// Returns whether an object is in the scope of a requirement.
    pub(super) fn matches_scope(&self, requirement: &Value, object: &Value) -> bool {
        match self {
            Self::Pods => pods::matches_scope(requirement, object),
            Self::VolumeClaims => {
                if text(requirement, &["scopeName"]) != "VolumeAttributesClass" {
                    return false;
                }
                let names = [
                    text(object, &["spec", "volumeAttributesClassName"]),
                    text(object, &["status", "currentVolumeAttributesClassName"]),
                    text(object, &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"]),
                ];
                let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
                if names.is_empty() {
                    return selects(requirement, None);
                }
                names.iter().any(|name| selects(requirement, Some(name)))
            }
            Self::Services | Self::ResourceClaims | Self::Objects(_) => false,
        }
    }

    /// Returns the resources that the containers of a Pod must specify because a quota limits them: `cpu for: a,b`.
    pub(super) fn missing_resources(&self, restricted: &[&str], object: &Value) -> Option<String> {
        match self {
            Self::Pods => pods::missing_resources(restricted, object),
            Self::Services | Self::VolumeClaims | Self::ResourceClaims | Self::Objects(_) => None,
        }
    }

    /// Returns what an object uses.
    pub(super) fn usage(&self, object: &Value) -> ResourceList {
        match self {
            Self::Pods => pods::usage(object),
            Self::Services => usage_of_service(object),
            Self::VolumeClaims => usage_of_volume_claim(object),
            Self::ResourceClaims => usage_of_resource_claim(object),
            Self::Objects(names) => names.iter().map(|name| (name.clone(), number(1))).collect(),
        }
    }
}

/// Returns whether a requirement selects an object with this name of a class, or without a class.
///
/// Source: kubernetes pkg/apis/core/v1/helper/helpers.go, `ScopedResourceSelectorRequirementsAsSelector`.
pub(super) fn selects(requirement: &Value, class: Option<&str>) -> bool {
    let is_listed = at(requirement, &["values"])
        .as_array()
        .is_some_and(|values| values.iter().any(|value| value.as_str() == class));
    match (text(requirement, &["operator"]), class) {
        ("In", Some(_)) => is_listed,
        ("NotIn", Some(_)) => !is_listed,
        ("Exists", _) => class.is_some(),
        ("NotIn" | "DoesNotExist", None) => true,
        _ => false,
    }
}

/// Returns an integer, formatted with decimal suffixes.
pub(super) fn number(value: i64) -> Quantity {
    Quantity::parse(&value.to_string()).unwrap_or(Quantity::ZERO)
}

fn count(items: usize) -> Quantity {
    number(i64::try_from(items).unwrap_or(i64::MAX))
}

fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).as_array().map_or(&[], Vec::as_slice)
}

/// Source: kubernetes pkg/quota/v1/evaluator/core/services.go, `Usage`.
fn usage_of_service(service: &Value) -> ResourceList {
    let ports = items(service, &["spec", "ports"]);
    let is_load_balancer = text(service, &["spec", "type"]) == "LoadBalancer";
    let node_ports = match text(service, &["spec", "type"]) {
        "LoadBalancer" if at(service, &["spec", "allocateLoadBalancerNodePorts"]) == false => {
            ports.iter().filter(|port| at(port, &["nodePort"]).as_i64().unwrap_or(0) != 0).count()
        }
        "NodePort" | "LoadBalancer" => ports.len(),
        _ => 0,
    };
    let [counted, services, node_port_name, load_balancers] = SERVICES.map(str::to_owned);
    ResourceList::from([
        (counted, number(1)),
        (services, number(1)),
        (node_port_name, count(node_ports)),
        (load_balancers, number(i64::from(is_load_balancer))),
    ])
}

/// Source: kubernetes `pkg/quota/v1/evaluator/core/persistent_volume_claims.go`, `Usage`.
fn usage_of_volume_claim(claim: &Value) -> ResourceList {
    let claims = "persistentvolumeclaims";
    let mut usage =
        ResourceList::from([(claims.to_owned(), number(1)), (format!("count/{claims}"), number(1))]);
    // Source: component-helpers storage/volume/helpers.go, `GetPersistentVolumeClaimClass`.
    let annotation =
        at(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]).as_str();
    let class = annotation.unwrap_or_else(|| text(claim, &["spec", "storageClassName"]));
    if !class.is_empty() {
        usage.insert(format!("{class}{STORAGE_CLASS_SUFFIX}{claims}"), number(1));
    }
    let storage = |owner: &Value, field: &str| pod_resources::list(Some(owner), field).remove("storage");
    let Some(requested) = storage(at(claim, &["spec", "resources"]), "requests") else { return usage };
    let allocated = storage(at(claim, &["status"]), "allocatedResources");
    let largest = allocated.filter(|allocated| *allocated > requested).unwrap_or(requested);
    let rounded = largest.rounded_up(0).unwrap_or(largest);
    if !class.is_empty() {
        usage.insert(format!("{class}{STORAGE_CLASS_SUFFIX}requests.storage"), rounded.clone());
    }
    usage.insert("requests.storage".to_owned(), rounded);
    usage
}

/// Source: kubernetes `pkg/quota/v1/evaluator/core/resource_claims.go`, `Usage`.
fn usage_of_resource_claim(claim: &Value) -> ResourceList {
    let mut usage = ResourceList::from([(RESOURCE_CLAIM_COUNT.to_owned(), number(1))]);
    for request in items(claim, &["spec", "devices", "requests"]) {
        let alternatives = items(request, &["firstAvailable"]);
        let mut largest: BTreeMap<String, i64> = BTreeMap::new();
        // In v1beta1 the fields of an exact request are those of the request.
        let exact = request.get("exactly").unwrap_or(request);
        for device in if alternatives.is_empty() { std::slice::from_ref(exact) } else { alternatives } {
            let class = text(device, &["deviceClassName"]);
            if class.is_empty() {
                continue;
            }
            let devices = match text(device, &["allocationMode"]) {
                "ExactCount" => at(device, &["count"]).as_i64().unwrap_or(0),
                "All" => ALLOCATION_RESULTS_MAX_SIZE,
                _ => 0,
            };
            let counted = largest.entry(format!("{class}{DEVICE_CLASS_SUFFIX}")).or_default();
            *counted = devices.max(*counted);
        }
        for (name, devices) in largest {
            let total = usage.get(&name).map_or_else(|| number(devices), |sum| plus(sum, &number(devices)));
            usage.insert(name, total);
        }
    }
    usage
}
