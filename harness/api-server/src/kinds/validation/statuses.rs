//! Validates the status of workloads, Services, and disruption budgets.

use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, word};
use crate::kinds::common::{addresses, conditions, formats};

/// Validates the counters in the status of a workload. The counters in `parts` cannot be greater than the replicas.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `Validate*StatusUpdate`;
/// pkg/apis/core/validation/validation.go, `ValidateReplicationControllerStatus`.
/// Rule: VLO-39.
pub(crate) fn counters(
    errors: &mut Errors,
    object: &Value,
    change: Change<'_>,
    counters: &[&str],
    parts: &[&str],
    shown_parent: &str,
) {
    let (path, status) = (Path::new("status"), get(object, "status"));
    errors.none_negative(&path, status, counters);
    let count = |field: &str| int(status, field).unwrap_or(0);
    for part in parts.iter().filter(|part| count(part) > count("replicas")) {
        errors.invalid(&path.child(part), count(part), "cannot be greater than status.replicas");
    }
    if !parts.is_empty() && count("availableReplicas") > count("readyReplicas") {
        let why = format!("cannot be greater than {shown_parent}readyReplicas");
        errors.invalid(&path.child("availableReplicas"), count("availableReplicas"), why);
    }
    let collisions = |object| int(get(object, "status"), "collisionCount");
    if let Some(before) = collisions(change.old)
        && collisions(object).unwrap_or(-1) < before
    {
        let now = collisions(object).unwrap_or(0);
        errors.invalid(&path.child("collisionCount"), now, "cannot be decremented");
    }
}

/// Validates the status of a Service.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateLoadBalancerStatus`.
/// Rule: VLO-39.
pub(crate) fn service(errors: &mut Errors, object: &Value, change: Change<'_>) {
    let balancers = |object| list(get(get(object, "status"), "loadBalancer"), "ingress");
    let path = Path::new("status");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    if text(get(object, "spec"), "type") != "LoadBalancer" && !balancers(object).is_empty() {
        errors.forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    let known: Vec<&str> = balancers(change.old).iter().map(|found| text(found, "ip")).collect();
    for (index, found) in balancers(object).iter().enumerate() {
        let path = path.index(index);
        let (address, host) = (text(found, "ip"), text(found, "hostname"));
        if !address.is_empty() && !known.contains(&address) {
            addresses::ip(errors, &path.child("ip"), address);
        }
        let mode_path = path.child("ipMode");
        match (word(found, "ipMode"), address.is_empty()) {
            (None, false) => errors.required(&mode_path, "must be specified when `ip` is set"),
            (Some(_), true) => {
                errors.forbidden(&mode_path, "may not be specified when `ip` is not set");
            }
            (mode, _) => errors.one_of(&mode_path, mode, &["Proxy", "VIP"]),
        }
        if !host.is_empty() {
            let path = path.child("hostname");
            formats::dns_subdomain(errors, &path, host);
            if host.parse::<std::net::IpAddr>().is_ok() {
                errors.invalid_text(&path, host, "must be a DNS name, not an IP address");
            }
        }
    }
}

/// Validates the status of a `PodDisruptionBudget`.
///
/// Source: kubernetes pkg/apis/policy/validation/validation.go, `ValidatePodDisruptionBudgetStatusUpdate`.
/// Rule: VLO-39.
pub(crate) fn budget(errors: &mut Errors, object: &Value, _: Change<'_>) {
    let counters = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    if set(object, "status").is_some() {
        conditions::of_status(errors, object);
        errors.none_negative(&Path::new("status"), get(object, "status"), &counters);
    }
}
