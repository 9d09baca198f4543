//! Handles changes to the type of a Service.

use serde_json::{Map, Value, json};

/// Removes fields that do not apply to the new type of a Service and that the client did not change.
///
/// Source: kubernetes pkg/registry/core/service/strategy.go, `dropTypeDependentFields`.
/// Rule: KND-05.
pub(crate) fn drop_type_dependent_fields(service: &mut Value, old: &Value) {
    let before = old.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let now = spec.clone();
    let ended = |applies: fn(&Map<String, Value>) -> bool| applies(&before) && !applies(&now);
    let is_same = |field: &str| before.get(field) == now.get(field);
    let mut dropped = Vec::new();
    if ended(|spec| kind(spec) != "ExternalName") {
        if is_same("clusterIP") && is_same("clusterIPs") {
            dropped.extend(["clusterIP", "clusterIPs"]);
        }
        dropped.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|field| is_same(field)));
    }
    for (field, has_ended) in [
        ("healthCheckNodePort", ended(is_checked)),
        ("allocateLoadBalancerNodePorts", ended(|spec| kind(spec) == "LoadBalancer")),
        ("loadBalancerClass", ended(|spec| kind(spec) == "LoadBalancer")),
        ("externalTrafficPolicy", ended(is_externally_accessible)),
    ] {
        if has_ended && is_same(field) {
            dropped.push(field);
        }
    }
    for field in dropped {
        spec.remove(field);
    }
    let had_node_ports = ended(|spec| matches!(kind(spec), "NodePort" | "LoadBalancer"));
    let known = node_ports(&before);
    if had_node_ports && node_ports(&now).iter().all(|port| known.contains(port)) {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
        for port in ports.filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    if kind(&now) != "LoadBalancer"
        && let Some(status) = service.get_mut("status").and_then(Value::as_object_mut)
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}

fn kind(spec: &Map<String, Value>) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_checked(spec: &Map<String, Value>) -> bool {
    kind(spec) == "LoadBalancer" && spec.get("externalTrafficPolicy").is_some_and(|policy| policy == "Local")
}

/// Returns whether a Service is accessible from outside the cluster.
///
/// Source: kubernetes pkg/api/service/util.go, `ExternallyAccessible`.
fn is_externally_accessible(spec: &Map<String, Value>) -> bool {
    let has_addresses = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    matches!(kind(spec), "NodePort" | "LoadBalancer") || (kind(spec) == "ClusterIP" && has_addresses)
}

fn node_ports(spec: &Map<String, Value>) -> Vec<&Value> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| port.get("nodePort")).collect()
}
