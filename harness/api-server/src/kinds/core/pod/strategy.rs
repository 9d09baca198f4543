//! Sets the initial status of Pods and fields derived from labels and resources.

use std::collections::{HashMap, VecDeque};

use kubernetes_types::json::{keep, set};
use serde_json::{Map, Value, json};

use crate::apimachinery::metadata;
use crate::kinds::common::preparation;
use crate::kinds::common::preparation::set_status;
use crate::kinds::core::pod::pod_resources::{
    containers, is_huge_page, is_pod_level, list, of_containers, quality_of_service,
};

/// Sets the initial status of a new Pod and its derived fields.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `PrepareForCreate`.
pub(crate) fn prepare_for_create(pod: &mut Value) {
    let mut status = json!({"phase": "Pending"});
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        // Source: kubernetes pkg/registry/core/pod/strategy.go, `applySchedulingGatedCondition`.
        let waiting = json!({
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": metadata::now(),
        });
        set(&mut status, &["conditions"], json!([waiting]));
    }
    apply_label_keys(pod);
    complete_resources(pod);
    set(&mut status, &["qosClass"], quality_of_service(pod));
    set_status(pod, status);
}

/// Discards all changes except changes to ephemeral containers.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `dropNonEphemeralContainerUpdates`.
pub(crate) fn keep_all_but_ephemeral_containers(pod: &mut Value, old: &Value) {
    let containers = pod.pointer("/spec/ephemeralContainers").cloned();
    let mut spec = old.get("spec").cloned().unwrap_or_default();
    if let Some(members) = spec.as_object_mut() {
        members.remove("ephemeralContainers");
        members.extend(containers.map(|containers| ("ephemeralContainers".to_owned(), containers)));
    }
    set(pod, &["spec"], spec);
    if let Some(status) = old.get("status") {
        set(pod, &["status"], status.clone());
    }
    preparation::keep_metadata(pod, old);
}

/// Discards all changes except changes to resources and resize policies. Completes the resources of the Pod.
///
/// If containers were added, removed, or renamed, keeps the changes for validation to reject.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `podResizeStrategy.PrepareForUpdate` and
/// `dropNonResizeUpdates`.
pub(crate) fn keep_all_but_resources(pod: &mut Value, old: &Value) {
    const CONTAINERS: [&str; 2] = ["containers", "initContainers"];
    let count = |pod: &Value| CONTAINERS.map(|field| containers(pod, field).count());
    if count(pod) == count(old) {
        let mut spec = old.get("spec").cloned().unwrap_or_default();
        for field in CONTAINERS {
            let are_same = containers(pod, field)
                .zip(containers(old, field))
                .all(|(container, before)| container.get("name") == before.get("name"));
            let resized = containers(pod, field).zip(containers(old, field)).map(|(container, before)| {
                let mut resized = if are_same { before.clone() } else { container.clone() };
                keep(&mut resized, container, "resources");
                keep(&mut resized, container, "resizePolicy");
                resized
            });
            let resized: Vec<Value> = resized.collect();
            if !resized.is_empty() {
                set(&mut spec, &[field], resized);
            }
        }
        keep(&mut spec, pod.get("spec").unwrap_or(&Value::Null), "resources");
        set(pod, &["spec"], spec);
        keep(pod, old, "status");
        preparation::keep_metadata(pod, old);
    }
    if pod.pointer("/spec/resources").is_none_or(Value::is_null)
        && let Some(resources) = old.pointer("/spec/resources")
    {
        set(pod, &["spec", "resources"], resources.clone());
    }
    complete_resources(pod);
}

/// Adds the labels in `matchLabelKeys` and `mismatchLabelKeys` to the label selector of the same term or constraint.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `mutatePodAffinity` and `mutateTopologySpreadConstraints`.
fn apply_label_keys(pod: &mut Value) {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else { return };
    let entries = |owner: &mut Value, pointer: &str, action: &dyn Fn(&mut Value)| {
        owner.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten().for_each(action);
    };
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let of = |when: &str| format!("/affinity/{affinity}/{when}DuringSchedulingIgnoredDuringExecution");
        entries(spec, &of("preferred"), &|weighted| {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                apply_keys(term, &labels);
            }
        });
        entries(spec, &of("required"), &|term| apply_keys(term, &labels));
    }
    entries(spec, "/topologySpreadConstraints", &|constraint| apply_keys(constraint, &labels));
}

fn apply_keys(owner: &mut Value, labels: &Map<String, Value>) {
    let mut requirements = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = owner.get(field).and_then(Value::as_array).into_iter().flatten();
        for key in keys.filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                requirements.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let Some(selector) = owner.get_mut("labelSelector").and_then(Value::as_object_mut) else { return };
    if requirements.is_empty() {
        return;
    }
    let expressions = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    if let Some(expressions) = expressions.as_array_mut() {
        expressions.extend(requirements);
    }
}

/// Completes the resources of the Pod from the resources of its containers.
///
/// Source: kubernetes pkg/api/pod/util.go, `DefaultPodLevelResources`.
fn complete_resources(pod: &mut Value) {
    let given = |field: &str| list(pod.pointer("/spec/resources"), field);
    let (mut requests, mut limits) = (given("requests"), given("limits"));
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    let of_limits = of_containers(pod, "limits");
    for (name, limit) in of_limits.iter().filter(|(name, _)| is_huge_page(name)) {
        if !requests.contains_key(name) {
            limits.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    for (name, request) in of_containers(pod, "requests") {
        if matches!(name.as_str(), "cpu" | "memory") {
            requests.entry(name).or_insert(request);
        }
    }
    for (name, limit) in limits.iter().filter(|(name, _)| is_pod_level(name)) {
        requests.entry(name.clone()).or_insert_with(|| limit.clone());
    }
    for (name, request) in &requests {
        let every_container_is_limited = || {
            ["containers", "initContainers", "ephemeralContainers"]
                .iter()
                .flat_map(|field| containers(pod, field))
                .all(|container| list(container.get("resources"), "limits").contains_key(name))
        };
        if is_pod_level(name)
            && !limits.contains_key(name)
            && every_container_is_limited()
            && let Some(limit) = of_limits.get(name)
        {
            limits.insert(name.clone(), limit.max(request).clone());
        }
    }
    let Some(resources) = pod.pointer_mut("/spec/resources").and_then(Value::as_object_mut) else { return };
    for (field, amounts) in [("requests", requests), ("limits", limits)] {
        if !amounts.is_empty() {
            let amounts: Map<String, Value> =
                amounts.into_iter().map(|(name, amount)| (name, amount.to_string().into())).collect();
            resources.insert(field.to_owned(), amounts.into());
        }
    }
}

/// Keeps status fields of a Pod that an older kubelet does not set.
pub(crate) fn keep_in_status_of_pod(pod: &mut Value, old: &Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    for field in [
        "qosClass",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
        "observedGeneration",
    ] {
        let is_missing = status
            .get(field)
            .is_none_or(|value| value.is_null() || value.as_str() == Some("") || value.as_i64() == Some(0));
        if is_missing && let Some(value) = old["status"].get(field) {
            status.insert(field.to_owned(), value.clone());
        }
    }
    // Several conditions may have the same type. They are matched in order.
    let mut before: HashMap<Option<Value>, VecDeque<&Value>> = HashMap::new();
    for condition in old.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten() {
        before.entry(condition.get("type").cloned()).or_default().push_back(condition);
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        let same = before.get_mut(&condition.get("type").cloned()).and_then(VecDeque::pop_front);
        if condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0) == 0
            && let Some(generation) = same.and_then(|same| same.get("observedGeneration"))
        {
            condition.insert("observedGeneration".to_owned(), generation.clone());
        }
    }
}
