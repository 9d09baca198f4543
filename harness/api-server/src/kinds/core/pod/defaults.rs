//! Sets the defaults of Pods and pod templates.

use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{
    each, ensure, fill, fill_zero, has, is_empty, resource_list, text, with,
};
use crate::kinds::common::volume_defaults;

/// Sets the defaults of a Pod.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Pod`.
pub(crate) fn pod(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        addresses(status);
    }
    let Some(spec) = ensure(object, "spec") else { return };
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        set(spec, &["terminationGracePeriodSeconds"], 1);
    }
    for list in ["containers", "initContainers"] {
        each(spec, list, requests_from_limits);
    }
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            each(spec, list, |container| each(container, "ports", host_port));
        }
    }
    fill(spec, "enableServiceLinks", true);
    pod_spec(spec);
}

/// Synchronizes `podIP` and `podIPs`; `podIP` takes precedence.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PodStatus`.
fn addresses(status: &mut Value) {
    let first = status.pointer("/podIPs/0/ip").and_then(Value::as_str).unwrap_or_default().to_owned();
    let address = text(status, "podIP").to_owned();
    if address.is_empty() && !is_empty(status, "podIPs") {
        set(status, &["podIP"], first);
    } else if !address.is_empty() && address != first {
        set(status, &["podIPs"], json!([{"ip": address}]));
    }
}

/// Sets the defaults of a pod template, except `enableServiceLinks` and the resource requests that default to limits.
pub(crate) fn template(template: &mut Value) {
    ensure(template, "metadata");
    if let Some(spec) = ensure(template, "spec") {
        pod_spec(spec);
    }
}

/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PodSpec`.
fn pod_spec(spec: &mut Value) {
    let account = text(spec, "serviceAccountName").to_owned();
    if account.is_empty() {
        let deprecated = text(spec, "serviceAccount").to_owned();
        if !deprecated.is_empty() {
            fill(spec, "serviceAccountName", deprecated);
        }
    } else {
        set(spec, &["serviceAccount"], account);
    }
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, container);
    }
    resource_list(spec, "overhead");
    with(spec, "resources", |resources| {
        resource_list(resources, "limits");
        resource_list(resources, "requests");
    });
    each(spec, "volumes", volume_defaults::volume);
}

/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Container`.
fn container(container: &mut Value) {
    let policy = volume_defaults::pull_policy(text(container, "image"));
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    if let Some(resources) = ensure(container, "resources") {
        resource_list(resources, "limits");
        resource_list(resources, "requests");
    }
    each(container, "ports", |port| fill(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        with(variable, "valueFrom", volume_defaults::field_reference);
    });
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        with(container, field, probe);
    }
    with(container, "lifecycle", |lifecycle| {
        for field in ["postStart", "preStop"] {
            with(lifecycle, field, http_get);
        }
    });
}

fn requests_from_limits(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    if limits.is_empty() {
        return;
    }
    if let Some(requests) = ensure(resources, "requests") {
        for (name, limit) in limits {
            fill(requests, &name, limit);
        }
    }
}

fn host_port(port: &mut Value) {
    if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
        fill_zero(port, "hostPort", number);
    }
}

/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Probe`.
fn probe(probe: &mut Value) {
    fill_zero(probe, "timeoutSeconds", 1);
    fill_zero(probe, "periodSeconds", 10);
    fill_zero(probe, "successThreshold", 1);
    fill_zero(probe, "failureThreshold", 3);
    http_get(probe);
    with(probe, "grpc", |grpc| {
        if !has(grpc, "service") {
            fill(grpc, "service", "");
        }
    });
}

fn http_get(action: &mut Value) {
    with(action, "httpGet", |get| {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    });
}
