//! Measures what a Pod uses.
//!
//! Source: kubernetes pkg/quota/v1/evaluator/core/pods.go.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kubernetes_types::json::{at, text};
use kubernetes_types::quantity::Quantity;
use serde_json::Value;

use super::evaluator::{number, selects};
use super::resource_lists::add;
use crate::kinds::core::pod::pod_resources::{
    ResourceList, aggregate, containers, is_huge_page, is_pod_level, list, quality_of_service, raise,
};

const POD_COUNT: &str = "count/pods";

/// The resources of Pods, without the huge pages and extended resources.
const POD_RESOURCES: [&str; 11] = [
    POD_COUNT,
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// The resources that each container must specify if a quota limits them.
const VALIDATION_SET: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

/// Returns whether a limit applies to Pods.
pub(super) fn matches_resource(limited: &str) -> bool {
    POD_RESOURCES.contains(&limited)
        || is_huge_page(limited)
        || limited.starts_with("requests.hugepages-")
        || is_extended_resource_for_quota(limited)
}

/// Returns whether a limit is one on an extended resource, such as `requests.example.com/gpu`.
///
/// Source: `isExtendedResourceNameForQuota`.
pub(super) fn is_extended_resource_for_quota(limited: &str) -> bool {
    limited
        .strip_prefix("requests.")
        .is_some_and(|resource| !is_native(limited) || resource.starts_with(DEVICE_CLASS_PREFIX))
}

/// Source: kubernetes pkg/apis/core/v1/helper/helpers.go, `IsNativeResource`.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a Pod has an active deadline.
pub(super) fn is_terminating(pod: &Value) -> bool {
    at(pod, &["spec", "activeDeadlineSeconds"]).as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Returns whether a Pod is in the scope of a requirement.
///
/// Source: `podMatchesScopeFunc`.
pub(super) fn matches_scope(requirement: &Value, pod: &Value) -> bool {
    match text(requirement, &["scopeName"]) {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = text(pod, &["spec", "priorityClassName"]);
            selects(requirement, Some(class).filter(|class| !class.is_empty()))
        }
        "CrossNamespacePodAffinity" => uses_cross_namespace_affinity(pod),
        _ => false,
    }
}

/// Source: kubernetes pkg/apis/core/v1/helper/qos/qos.go, `GetPodQOS`.
fn is_best_effort(pod: &Value) -> bool {
    let class = match text(pod, &["status", "qosClass"]) {
        "" => quality_of_service(pod),
        class => class,
    };
    class == "BestEffort"
}

fn uses_cross_namespace_affinity(pod: &Value) -> bool {
    let terms = |affinity: &'static str| {
        let affinity = at(pod, &["spec", "affinity", affinity]);
        let items = |field: &str| affinity.get(field).and_then(Value::as_array).into_iter().flatten();
        let weighted = items("preferredDuringSchedulingIgnoredDuringExecution");
        items("requiredDuringSchedulingIgnoredDuringExecution")
            .chain(weighted.map(|weighted| at(weighted, &["podAffinityTerm"])))
    };
    terms("podAffinity").chain(terms("podAntiAffinity")).any(|term| {
        let names = at(term, &["namespaces"]).as_array();
        names.is_some_and(|names| !names.is_empty()) || at(term, &["namespaceSelector"]).is_object()
    })
}

/// Returns the resources that a quota limits and a container does not specify, with the containers.
///
/// Source: `Constraints`.
pub(super) fn missing_resources(restricted: &[&str], pod: &Value) -> Option<String> {
    let own = at(pod, &["spec", "resources"]);
    let has = |field: &str| list(Some(own), field).keys().any(|name| is_pod_level(name));
    if has("requests") || has("limits") {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in containers(pod, "containers").chain(containers(pod, "initContainers")) {
        let resources = container.get("resources");
        let usage = compute_usage(&list(resources, "requests"), &list(resources, "limits"));
        for limited in restricted.iter().filter(|limited| VALIDATION_SET.contains(limited)) {
            if !usage.contains_key(*limited) {
                missing.entry(limited).or_default().insert(text(container, &["name"]));
            }
        }
    }
    let shown = |(resource, names): (&str, BTreeSet<&str>)| {
        format!("{resource} for: {}", names.into_iter().collect::<Vec<_>>().join(","))
    };
    let shown: Vec<String> = missing.into_iter().map(shown).collect();
    (!shown.is_empty()).then(|| shown.join("; "))
}

/// Returns what a Pod uses. A Pod that has ended uses nothing; it still counts as an object.
///
/// Source: `PodUsageFunc`.
pub(super) fn usage(pod: &Value) -> ResourceList {
    let counted = ResourceList::from([(POD_COUNT.to_owned(), number(1))]);
    if has_ended(pod) {
        return counted;
    }
    add(&counted, &compute_usage(&requests(pod), &limits(pod)))
}

/// Returns whether a Pod is in a terminal phase or should already have been deleted.
///
/// Source: `QuotaV1Pod`.
fn has_ended(pod: &Value) -> bool {
    if matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return true;
    }
    let deletion: Option<Timestamp> = text(pod, &["metadata", "deletionTimestamp"]).parse().ok();
    let grace = at(pod, &["metadata", "deletionGracePeriodSeconds"]).as_i64();
    deletion.zip(grace).is_some_and(|(deletion, grace)| {
        deletion.checked_add(SignedDuration::from_secs(grace)).is_ok_and(|end| Timestamp::now() > end)
    })
}

/// Source: `podComputeUsageHelper`.
fn compute_usage(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = ResourceList::from([("pods".to_owned(), number(1))]);
    for (name, request) in requests {
        let is_extended = !is_native(name) && !name.starts_with("requests.");
        let is_computed = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if is_computed || is_huge_page(name) {
            usage.insert(name.clone(), request.clone());
        }
        if is_computed || is_huge_page(name) || is_extended || name.starts_with(DEVICE_CLASS_PREFIX) {
            usage.insert(format!("requests.{name}"), request.clone());
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(limit) = limits.get(name) {
            usage.insert(format!("limits.{name}"), limit.clone());
        }
    }
    usage
}

/// Returns the requests of a Pod: the largest of those in its spec and those in the status of its containers.
///
/// Source: component-helpers resource/helpers.go, `PodRequests` with `UseStatusResources`.
fn requests(pod: &Value) -> ResourceList {
    let spec = |container: &Value| list(container.get("resources"), "requests");
    let allocated = |container: &Value| reported(container_status(pod, container), &["allocatedResources"]);
    let actuated = |container: &Value| {
        reported(container_status(pod, container), &["resources", "requests"])
            .or_else(|| allocated(container))
    };
    let mut total = effective(pod, spec, &[&allocated, &actuated]);
    let own = list(pod.pointer("/spec/resources"), "requests");
    total.extend(own.into_iter().filter(|(name, _)| is_pod_level(name)));
    add(&total, &list(pod.get("spec"), "overhead"))
}

/// Returns the limits of a Pod: the larger of those in its spec and those in the status of its containers.
///
/// Source: component-helpers resource/helpers.go, `PodLimits` with `UseStatusResources`.
fn limits(pod: &Value) -> ResourceList {
    let spec = |container: &Value| list(container.get("resources"), "limits");
    let actuated = |container: &Value| reported(container_status(pod, container), &["resources", "limits"]);
    let mut total = effective(pod, spec, &[&actuated]);
    let own = list(pod.pointer("/spec/resources"), "limits");
    total.extend(own.into_iter().filter(|(name, _)| is_pod_level(name)));
    let mut overhead = list(pod.get("spec"), "overhead");
    overhead.retain(|name, _| total.get(name).is_some_and(|limit| !limit.is_zero()));
    add(&total, &overhead)
}

/// Returns the resources in the status of a container; `None` if there are none.
type StatusResources<'a> = dyn Fn(&Value) -> Option<ResourceList> + 'a;

/// Returns the largest total of the spec and of the status. While a resize is infeasible, only the status counts.
fn effective(
    pod: &Value,
    spec: impl Fn(&Value) -> ResourceList,
    statuses: &[&StatusResources<'_>],
) -> ResourceList {
    let is_infeasible = is_resize_infeasible(pod);
    let mut total = if is_infeasible { ResourceList::new() } else { aggregate(pod, &spec) };
    for status in statuses {
        let of_status = |container: &Value| {
            status(container)
                .unwrap_or_else(|| if is_infeasible { ResourceList::new() } else { spec(container) })
        };
        raise(&mut total, &aggregate(pod, of_status));
    }
    total
}

/// Source: component-helpers resource/helpers.go, `IsPodResizeInfeasible`.
fn is_resize_infeasible(pod: &Value) -> bool {
    let conditions = at(pod, &["status", "conditions"]).as_array().into_iter().flatten();
    let mut pending = conditions.filter(|condition| text(condition, &["type"]) == "PodResizePending");
    pending.next().is_some_and(|condition| text(condition, &["reason"]) == "Infeasible")
}

fn container_status<'a>(pod: &'a Value, container: &Value) -> Option<&'a Value> {
    let name = text(container, &["name"]);
    let statuses = |field: &str| at(pod, &["status", field]).as_array().into_iter().flatten();
    statuses("containerStatuses")
        .chain(statuses("initContainerStatuses"))
        .find(|status| text(status, &["name"]) == name)
}

/// Returns the quantities at `path` in the status of a container; `None` if there are none.
fn reported(status: Option<&Value>, path: &[&str]) -> Option<ResourceList> {
    let (field, owner) = path.split_last()?;
    let quantities: BTreeMap<String, Quantity> = list(Some(at(status?, owner)), field);
    (!quantities.is_empty()).then_some(quantities)
}
