//! The constraints of a `LimitRange` on a Pod or a `PersistentVolumeClaim`.
//!
//! kube-apiserver reports the resources of one item in random order; admit sorts them by name.

use kubernetes_types::quantity::Quantity;
use serde_json::Value;

use crate::kinds::core::pod::pod_resources::{ResourceList, containers, list, of_pod as resources_of_pod};

/// The requests and limits of a container or a Pod.
struct Resources {
    requests: ResourceList,
    limits: ResourceList,
}

/// Returns the violations of a Pod, in kube-apiserver's order.
///
/// Source: kubernetes plugin/pkg/admission/limitranger/admission.go, `PodValidateLimitFunc`.
pub(super) fn of_pod(limit_range: &Value, pod: &Value) -> Vec<String> {
    let mut violations = Vec::new();
    for item in items(limit_range) {
        let observed: Vec<Resources> = match item_type(item) {
            "Container" => ["containers", "initContainers"]
                .into_iter()
                .flat_map(|field| containers(pod, field))
                .map(|container| Resources {
                    requests: list(container.get("resources"), "requests"),
                    limits: list(container.get("resources"), "limits"),
                })
                .collect(),
            "Pod" => vec![Resources {
                requests: resources_of_pod(pod, "requests"),
                limits: resources_of_pod(pod, "limits"),
            }],
            _ => Vec::new(),
        };
        for resources in observed {
            violations.extend(of_item(item, &resources));
        }
    }
    violations
}

/// Returns the violations of a `PersistentVolumeClaim`. Checks its requests, not its limits.
///
/// Source: kubernetes plugin/pkg/admission/limitranger/admission.go, `PersistentVolumeClaimValidateLimitFunc`.
pub(super) fn of_claim(limit_range: &Value, claim: &Value) -> Vec<String> {
    const TYPE: &str = "PersistentVolumeClaim";
    let requests = list(claim.pointer("/spec/resources"), "requests");
    let resources = Resources { requests, limits: ResourceList::new() };
    let mut violations = Vec::new();
    for item in items(limit_range).filter(|item| item_type(item) == TYPE) {
        for (name, least) in list(Some(item), "min") {
            violations.extend(minimum(TYPE, &name, &least, &resources));
        }
        for (name, most) in list(Some(item), "max") {
            let bound = format!("maximum {name} usage per {TYPE} is {most}");
            match resources.requests.get(&name) {
                None => violations.push(format!("{bound}.  No request is specified")),
                Some(request) if *request > most => {
                    violations.push(format!("{bound}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
    violations
}

fn items(limit_range: &Value) -> impl Iterator<Item = &Value> {
    limit_range.pointer("/spec/limits").and_then(Value::as_array).into_iter().flatten()
}

fn item_type(item: &Value) -> &str {
    item.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn of_item(item: &Value, resources: &Resources) -> Vec<String> {
    let limit_type = item_type(item);
    let mut violations = Vec::new();
    for (name, least) in list(Some(item), "min") {
        violations.extend(minimum(limit_type, &name, &least, resources));
    }
    for (name, most) in list(Some(item), "max") {
        violations.extend(maximum(limit_type, &name, &most, resources));
    }
    for (name, most) in list(Some(item), "maxLimitRequestRatio") {
        violations.extend(ratio(limit_type, &name, &most, resources));
    }
    violations
}

fn minimum(limit_type: &str, name: &str, least: &Quantity, resources: &Resources) -> Option<String> {
    let bound = format!("minimum {name} usage per {limit_type} is {least}");
    let values = Values::new(name, least, resources);
    let Some(request) = resources.requests.get(name) else {
        return Some(format!("{bound}.  No request is specified"));
    };
    if values.request < values.bound {
        return Some(format!("{bound}, but request is {request}"));
    }
    let limit = resources.limits.get(name).filter(|_| values.limit < values.bound)?;
    Some(format!("{bound}, but limit is {limit}"))
}

fn maximum(limit_type: &str, name: &str, most: &Quantity, resources: &Resources) -> Option<String> {
    let bound = format!("maximum {name} usage per {limit_type} is {most}");
    let values = Values::new(name, most, resources);
    let Some(limit) = resources.limits.get(name) else {
        return Some(format!("{bound}.  No limit is specified"));
    };
    if values.limit > values.bound {
        return Some(format!("{bound}, but limit is {limit}"));
    }
    let request = resources.requests.get(name).filter(|_| values.request > values.bound)?;
    Some(format!("{bound}, but request is {request}"))
}

/// The values to compare, in thousandths, or in whole units if a quantity is too large for thousandths.
struct Values {
    request: i64,
    limit: i64,
    bound: i64,
}

impl Values {
    /// Converts the bound and the resource's request and limit to comparable values.
    ///
    /// Source: kubernetes plugin/pkg/admission/limitranger/admission.go, `requestLimitEnforcedValues`.
    fn new(name: &str, bound: &Quantity, resources: &Resources) -> Self {
        let request = resources.requests.get(name).unwrap_or(&Quantity::ZERO);
        let limit = resources.limits.get(name).unwrap_or(&Quantity::ZERO);
        let values = [request, limit, bound];
        let read = if values.iter().all(|amount| amount.value() <= MAX_MILLI_VALUE) {
            Quantity::milli_value
        } else {
            Quantity::value
        };
        let [request, limit, bound] = values.map(read);
        Self { request, limit, bound }
    }
}

/// The largest quantity that can be expressed in thousandths.
///
/// Source: apimachinery pkg/api/resource/math.go, `MaxMilliValue`.
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

#[expect(clippy::cast_precision_loss, reason = "the server divides in floating point too")]
fn ratio(limit_type: &str, name: &str, most: &Quantity, resources: &Resources) -> Option<String> {
    let bound = format!("{name} max limit to request ratio per {limit_type} is {most}");
    let values = Values::new(name, most, resources);
    if values.request == 0 {
        return Some(format!("{bound}, but no request is specified or request is 0"));
    }
    if values.limit == 0 {
        return Some(format!("{bound}, but no limit is specified or limit is 0"));
    }
    let observed = values.limit as f64 / values.request as f64;
    let exceeds = if most.value() <= MAX_MILLI_VALUE {
        observed * 1000.0 > most.milli_value() as f64
    } else {
        observed > most.value() as f64
    };
    exceeds.then(|| format!("{bound}, but provided ratio is {observed:.6}"))
}
