//! Sets the initial status of Pods and fields derived from labels and resources.

use kubernetes_types::json::set;
use kubernetes_types::quantity::Quantity;
use serde_json::{Map, Value, json};

use super::super::metadata;
use super::super::pod_resources::{ResourceList, containers, list, of_containers};
use super::create::set_status;
use super::update;

/// Source: kubernetes pkg/registry/core/pod/strategy.go, `PrepareForCreate`.
pub(super) fn prepare_for_create(pod: &mut Value) {
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

/// Discards all changes except for changes of ephemeral containers.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `dropNonEphemeralContainerUpdates`.
pub(super) fn keep_all_but_ephemeral_containers(pod: &mut Value, old: &Value) {
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
    update::keep_metadata(pod, old);
}

/// Adds the labels in `matchLabelKeys` and `mismatchLabelKeys` to the label selectors of the same term.
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

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Source: kubernetes pkg/apis/core/helper/qos/qos.go, `ComputePodQOS`.
fn quality_of_service(pod: &Value) -> &'static str {
    let of = |owner: Option<&Value>| requirements_quality(&list(owner, "requests"), &list(owner, "limits"));
    let own = pod.pointer("/spec/resources");
    let is_set = |field: &str| list(own, field).keys().any(|name| is_pod_level(name));
    if is_set("requests") || is_set("limits") {
        return of(own);
    }
    let qualities = containers(pod, "initContainers")
        .chain(containers(pod, "containers"))
        .map(|container| of(container.get("resources")));
    agreed(qualities)
}

fn requirements_quality(requests: &ResourceList, limits: &ResourceList) -> &'static str {
    agreed(["cpu", "memory"].into_iter().map(|name| {
        let amount = |list: &ResourceList| list.get(name).cloned().unwrap_or(Quantity::ZERO);
        let (request, limit) = (amount(requests), amount(limits));
        match (request == limit, request.is_zero()) {
            (false, _) => "Burstable",
            (true, true) => "BestEffort",
            (true, false) => "Guaranteed",
        }
    }))
}

/// Returns the common `QoS` class; `Burstable` if the classes differ.
fn agreed(mut qualities: impl Iterator<Item = &'static str>) -> &'static str {
    let first = qualities.next().unwrap_or("BestEffort");
    if qualities.all(|quality| quality == first) { first } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_quality(spec: &Value, expected: &str) {
        assert_eq!(quality_of_service(&json!({"spec": spec})), expected, "{spec}");
    }

    #[test]
    fn qos_class_depends_on_cpu_and_memory() {
        let container =
            |requests: Value, limits: Value| json!({"resources": {"requests": requests, "limits": limits}});
        let both = json!({"cpu": "1", "memory": "1Gi"});
        check_quality(&json!({"containers": [{}]}), "BestEffort");
        check_quality(&json!({"containers": [container(both.clone(), both.clone())]}), "Guaranteed");
        let same = json!({"cpu": "1000m", "memory": "1024Mi"});
        check_quality(&json!({"containers": [container(same, both.clone())]}), "Guaranteed");
        check_quality(&json!({"containers": [container(both.clone(), both.clone()), {}]}), "Burstable");
        check_quality(
            &json!({"containers": [container(json!({"cpu": "1"}), json!({"cpu": "1"}))]}),
            "Burstable",
        );
        check_quality(&json!({"containers": [container(json!({"cpu": "0"}), json!({}))]}), "BestEffort");
        let other = json!({"example.com/gpu": "1"});
        check_quality(&json!({"containers": [container(other.clone(), other)]}), "BestEffort");
        check_quality(
            &json!({"containers": [{}], "resources": {"limits": both, "requests": both}}),
            "Guaranteed",
        );
    }
}
