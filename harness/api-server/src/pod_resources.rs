//! Computes the total resources of a Pod.

use std::collections::BTreeMap;

use serde_json::Value;

use kubernetes_types::quantity::Quantity;

/// Quantities by resource name.
pub(super) type ResourceList = BTreeMap<String, Quantity>;

/// Returns the resource list at `object[field]` without invalid quantities.
pub(super) fn list(object: Option<&Value>, field: &str) -> ResourceList {
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
/// Like [`of_containers`], but CPU and memory in the resources of the Pod take precedence.
///
/// Source: kubernetes plugin/pkg/admission/limitranger/admission.go, `podRequests` and `podLimits`.
pub(super) fn of_pod(pod: &Value, field: &str) -> ResourceList {
    let mut total = of_containers(pod, field);
    for (name, quantity) in list(pod.pointer("/spec/resources"), field) {
        if matches!(name.as_str(), "cpu" | "memory") {
            total.insert(name, quantity);
        }
    }
    total
}

/// Returns the sum over the containers or, if larger, the resources of an init container.
///
/// `field` is `requests` or `limits`.
///
/// An init container with `restartPolicy: Always` counts toward the sum.
///
/// Source: component-helpers resource/helpers.go, `AggregateContainerRequests` and `AggregateContainerLimits`.
pub(super) fn of_containers(pod: &Value, field: &str) -> ResourceList {
    let mut total = ResourceList::new();
    for container in containers(pod, "containers") {
        add(&mut total, &list(container.get("resources"), field));
    }
    let mut restartable = ResourceList::new();
    let mut initial = ResourceList::new();
    for container in containers(pod, "initContainers") {
        let own = list(container.get("resources"), field);
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
pub(super) fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array).into_iter().flatten()
}

fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, quantity) in more {
        let sum = total.get(name).map_or_else(|| quantity.clone(), |sum| plus(sum, quantity));
        total.insert(name.clone(), sum);
    }
}

/// Adds two quantities. If one is so small that the sum would take 100,000 digits, returns the other.
fn plus(left: &Quantity, right: &Quantity) -> Quantity {
    left.plus(right).unwrap_or_else(|_| left.max(right).clone())
}

fn raise(total: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        if total.get(name).is_none_or(|present| quantity > present) {
            total.insert(name.clone(), quantity.clone());
        }
    }
}
