//! Sets the defaults of objects in the core group, except Pods.

use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{
    each, ensure, fill, fill_pointer, has, is_empty, remove, resource_list, text, with,
};
use crate::kinds::common::volume_defaults;

/// Sets the defaults of a Namespace. A Namespace without a name does not get the name label.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Namespace` and `SetDefaults_NamespaceStatus`.
pub(crate) fn namespace(object: &mut Value) {
    ensure(object, "spec");
    if let Some(status) = ensure(object, "status") {
        fill(status, "phase", "Active");
    }
    let Some(metadata) = ensure(object, "metadata") else { return };
    let name = text(metadata, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = ensure(metadata, "labels")
    {
        set(labels, &["kubernetes.io/metadata.name"], name);
    }
}

/// Sets the defaults of a Node: `allocatable` defaults to `capacity`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_NodeStatus`.
pub(crate) fn node(object: &mut Value) {
    with(object, "status", |status| {
        resource_list(status, "capacity");
        resource_list(status, "allocatable");
        if !has(status, "allocatable")
            && let Some(capacity) = status.get("capacity").cloned()
        {
            set(status, &["allocatable"], capacity);
        }
    });
}

/// Sets the defaults of a Service.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Service`.
pub(crate) fn service(object: &mut Value) {
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

/// Sets the defaults of a `LimitRange`.
///
/// For containers, `default` defaults to `max`, and `defaultRequest` to `default` or, if that is not set, to `min`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_LimitRangeItem`.
pub(crate) fn limit_range(object: &mut Value) {
    ensure(object, "metadata");
    let Some(spec) = ensure(object, "spec") else { return };
    if !has(spec, "limits") {
        set(spec, &["limits"], Value::Null);
    }
    each(spec, "limits", |item| {
        for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            resource_list(item, field);
        }
        if text(item, "type") == "Container" {
            fill_from(item, "default", "max");
            fill_from(item, "defaultRequest", "default");
            fill_from(item, "defaultRequest", "min");
        }
    });
}

/// Sets the defaults of a Secret.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Secret`.
pub(crate) fn secret(object: &mut Value) {
    ensure(object, "metadata");
    fill(object, "type", "Opaque");
}

/// Sets the defaults of a `ResourceQuota`.
///
/// Source: api core/v1/types.go, `ResourceQuota`.
pub(crate) fn resource_quota(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(spec) = ensure(object, "spec") {
        resource_list(spec, "hard");
    }
    if let Some(status) = ensure(object, "status") {
        resource_list(status, "hard");
        resource_list(status, "used");
    }
}

/// Removes empty maps from a `ConfigMap`. The server omits them when encoding.
///
/// Source: api core/v1/types.go, `ConfigMap`.
pub(crate) fn config_map(object: &mut Value) {
    ensure(object, "metadata");
    for field in ["data", "binaryData"] {
        if is_empty(object, field) {
            remove(object, field);
        }
    }
}

/// Sets the defaults of a `PersistentVolumeClaim`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PersistentVolumeClaim`.
pub(crate) fn persistent_volume_claim(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        fill(status, "phase", "Pending");
        resource_list(status, "capacity");
        resource_list(status, "allocatedResources");
    }
    if let Some(spec) = ensure(object, "spec") {
        claim_spec(spec);
    }
}

/// Sets the defaults of the `spec` of a `PersistentVolumeClaim`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PersistentVolumeClaimSpec`.
pub(crate) fn claim_spec(spec: &mut Value) {
    fill_pointer(spec, "volumeMode", "Filesystem");
    if let Some(resources) = ensure(spec, "resources") {
        resource_list(resources, "limits");
        resource_list(resources, "requests");
    }
}

/// Sets the defaults of a `PersistentVolume`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PersistentVolume`.
pub(crate) fn persistent_volume(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        fill(status, "phase", "Pending");
    }
    if let Some(spec) = ensure(object, "spec") {
        resource_list(spec, "capacity");
        fill(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill_pointer(spec, "volumeMode", "Filesystem");
        volume_defaults::persistent_source(spec);
    }
}

/// Sets the defaults of an Endpoints object.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Endpoints`.
pub(crate) fn endpoints(object: &mut Value) {
    ensure(object, "metadata");
    each(object, "subsets", |subset| each(subset, "ports", |port| fill(port, "protocol", "TCP")));
}

/// Adds the entries of `item[from]` to `item[to]`, but keeps the entries that `item[to]` already has.
fn fill_from(item: &mut Value, to: &str, from: &str) {
    let Some(source) = item.get(from).and_then(Value::as_object).filter(|list| !list.is_empty()).cloned()
    else {
        return;
    };
    if let Some(list) = ensure(item, to) {
        for (name, quantity) in source {
            fill(list, &name, quantity);
        }
    }
}
