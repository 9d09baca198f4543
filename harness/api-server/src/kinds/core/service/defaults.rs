//! Sets the defaults of Services.

use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{each, ensure, fill, fill_pointer, is_empty, remove, text, with};

/// Sets the defaults of a Service.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Service`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        ensure(status, "loadBalancer");
    }
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            remove(spec, "sessionAffinityConfig");
        }
        "ClientIP"
            if spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds").is_none_or(Value::is_null) =>
        {
            set(spec, &["sessionAffinityConfig"], json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
        _ => {}
    }
    fill(spec, "type", "ClusterIP");
    each(spec, "ports", |port| {
        fill(port, "protocol", "TCP");
        if port.get("targetPort").is_some_and(|target| target == 0) {
            remove(port, "targetPort");
        }
        if let Some(number) = port.get("port").cloned() {
            fill(port, "targetPort", number);
        }
    });
    let service_type = text(spec, "type").to_owned();
    let externally_accessible = matches!(service_type.as_str(), "LoadBalancer" | "NodePort")
        || (service_type == "ClusterIP" && !is_empty(spec, "externalIPs"));
    if externally_accessible {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(service_type.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill_pointer(spec, "internalTrafficPolicy", "Cluster");
    }
    if service_type == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        with(object, "status", |status| {
            with(status, "loadBalancer", |balancer| {
                each(balancer, "ingress", |ingress| {
                    if !text(ingress, "ip").is_empty() {
                        fill_pointer(ingress, "ipMode", "VIP");
                    }
                });
            });
        });
    }
}
