//! Computes the total resources and the `QoS` class of a Pod.

use std::collections::BTreeMap;

use kubernetes_types::quantity::Quantity;
use serde_json::Value;

/// The quantities of resources, by resource name.
pub(crate) type ResourceList = BTreeMap<String, Quantity>;

/// Returns the resource list in `object[field]`, without invalid quantities.
pub(crate) fn list(object: Option<&Value>, field: &str) -> ResourceList {
    object
        .and_then(|object| object.get(field))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, quantity)| Some((name.clone(), Quantity::parse(quantity.as_str()?).ok()?)))
        .collect()
}

/// Returns the total requests or limits of a Pod; `field` is `requests` or `limits`.
///
/// Returns the same result as [`of_containers`], except that CPU and memory in `spec.resources` of the Pod take
/// precedence.
///
/// Source: kubernetes plugin/pkg/admission/limitranger/admission.go, `podRequests` and `podLimits`.
pub(crate) fn of_pod(pod: &Value, field: &str) -> ResourceList {
    let mut total = of_containers(pod, field);
    for (name, quantity) in list(pod.pointer("/spec/resources"), field) {
        if matches!(name.as_str(), "cpu" | "memory") {
            total.insert(name, quantity);
        }
    }
    total
}

/// Returns the total requests of a Pod as the scheduler counts them, with the overhead.
///
/// Source: component-helpers resource/helpers.go, `PodRequests`.
pub(crate) fn of_pod_with_overhead(pod: &Value) -> ResourceList {
    let mut total = of_containers(pod, "requests");
    let own = list(pod.pointer("/spec/resources"), "requests");
    total.extend(own.into_iter().filter(|(name, _)| is_pod_level(name)));
    add(&mut total, &list(pod.get("spec"), "overhead"));
    total
}

/// Returns, for each resource, the sum over the containers or the largest init container, whichever is larger.
///
/// `field` is `requests` or `limits`.
///
/// An init container with `restartPolicy: Always` counts toward the sum.
///
/// Source: component-helpers resource/helpers.go, `AggregateContainerRequests` and `AggregateContainerLimits`.
pub(crate) fn of_containers(pod: &Value, field: &str) -> ResourceList {
    aggregate(pod, |container| list(container.get("resources"), field))
}

/// Returns the total of what `resources` returns for each container, as [`of_containers`] does.
///
/// Source: component-helpers resource/helpers.go, `aggregateContainerResourcesByFn`.
pub(crate) fn aggregate(pod: &Value, resources: impl Fn(&Value) -> ResourceList) -> ResourceList {
    let mut total = ResourceList::new();
    for container in containers(pod, "containers") {
        add(&mut total, &resources(container));
    }
    let mut restartable = ResourceList::new();
    let mut initial = ResourceList::new();
    for container in containers(pod, "initContainers") {
        let own = resources(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut total, &own);
            add(&mut restartable, &own);
            raise(&mut initial, &restartable);
        } else {
            let mut together = own;
            add(&mut together, &restartable);
            raise(&mut initial, &together);
        }
    }
    raise(&mut total, &initial);
    total
}

/// Returns the items of `spec.<list>`.
pub(crate) fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array).into_iter().flatten()
}

/// Adds the quantities of `more` to those of `total`.
pub(crate) fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, quantity) in more {
        let sum = total.get(name).map_or_else(|| quantity.clone(), |sum| plus(sum, quantity));
        total.insert(name.clone(), sum);
    }
}

/// Returns the sum of two quantities, or the larger quantity if the sum would have too many digits.
pub(crate) fn plus(left: &Quantity, right: &Quantity) -> Quantity {
    left.plus(right).unwrap_or_else(|_| left.max(right).clone())
}

/// Replaces the quantities that are smaller than those in `other`, and adds the missing ones.
pub(crate) fn raise(total: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        if total.get(name).is_none_or(|present| quantity > present) {
            total.insert(name.clone(), quantity.clone());
        }
    }
}

/// Returns whether a resource name is a huge-page resource, such as `hugepages-2Mi`.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Returns whether `spec.resources` of a Pod may contain this resource.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Computes the `QoS` class of a Pod.
///
/// Source: kubernetes pkg/apis/core/helper/qos/qos.go, `ComputePodQOS`.
pub(crate) fn quality_of_service(pod: &Value) -> &'static str {
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

/// Returns the common `QoS` class; `Burstable` if the classes differ; `BestEffort` if the iterator is empty.
fn agreed(mut qualities: impl Iterator<Item = &'static str>) -> &'static str {
    let first = qualities.next().unwrap_or("BestEffort");
    if qualities.all(|quality| quality == first) { first } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
