//! Sets the defaults of kinds in various API groups, such as networking, policy, and RBAC.

use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{each, ensure, fill, fill_pointer, has, is_empty, text, with};

/// Sets the defaults of a `CustomResourceDefinition`.
///
/// Source: apiextensions-apiserver pkg/apis/apiextensions/v1/defaults.go.
pub(crate) fn custom_resource_definition(object: &mut Value) {
    ensure(object, "metadata");
    let Some(spec) = ensure(object, "spec") else { return };
    if let Some(names) = ensure(spec, "names") {
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            fill(names, "singular", kind.to_lowercase());
            fill(names, "listKind", format!("{kind}List"));
        }
    }
    fill_pointer(spec, "conversion", json!({"strategy": "None"}));
    with(spec, "conversion", |conversion| {
        with(conversion, "webhook", |webhook| {
            with(webhook, "clientConfig", |client| {
                with(client, "service", |service| fill(service, "port", 443));
            });
        });
    });
    let stored: Vec<Value> = spec
        .get("versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    if let Some(status) = ensure(object, "status") {
        for field in ["conditions", "storedVersions"] {
            if !has(status, field) {
                set(status, &[field], Value::Null);
            }
        }
        if is_empty(status, "storedVersions") && !stored.is_empty() {
            set(status, &["storedVersions"], stored);
        }
        if let Some(names) = ensure(status, "acceptedNames") {
            for field in ["kind", "plural"] {
                fill(names, field, "");
            }
        }
    }
}

/// Sets the defaults of an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/v1/defaults.go.
pub(crate) fn api_service(object: &mut Value) {
    with(object, "spec", |spec| with(spec, "service", |service| fill(service, "port", 443)));
}

/// Sets the defaults of a `TokenRequest`.
///
/// Source: kubernetes pkg/apis/authentication/v1/defaults.go, `SetDefaults_TokenRequestSpec`.
pub(crate) fn token_request(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "expirationSeconds", 3600);
    }
}

pub(crate) fn lease(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "spec");
}

pub(crate) fn ingress(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "spec");
    if let Some(status) = ensure(object, "status") {
        ensure(status, "loadBalancer");
    }
}

/// Sets the defaults of an `IngressClass`.
///
/// Source: kubernetes pkg/apis/networking/v1/defaults.go, `SetDefaults_IngressClass`.
pub(crate) fn ingress_class(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "parameters", |parameters| fill_pointer(parameters, "scope", "Cluster"));
    });
}

/// Sets the defaults of an `EndpointSlice`.
///
/// Source: kubernetes pkg/apis/discovery/v1/defaults.go, `SetDefaults_EndpointPort`.
pub(crate) fn endpoint_slice(object: &mut Value) {
    each(object, "ports", |port| {
        if !has(port, "name") {
            fill_pointer(port, "name", "");
        }
        fill_pointer(port, "protocol", "TCP");
    });
}

/// Sets the defaults of a `PodCertificateRequest`.
///
/// Source: the `+default` marks of api certificates/v1/types.go.
pub(crate) fn pod_certificate_request(object: &mut Value) {
    with(object, "spec", |spec| fill(spec, "maxExpirationSeconds", 86400));
}

/// Sets the defaults of a `NetworkPolicy`.
///
/// Source: kubernetes pkg/apis/networking/v1/defaults.go.
pub(crate) fn network_policy(object: &mut Value) {
    ensure(object, "metadata");
    let Some(spec) = ensure(object, "spec") else { return };
    ensure(spec, "podSelector");
    if is_empty(spec, "policyTypes") {
        let types = if is_empty(spec, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        set(spec, &["policyTypes"], types);
    }
    for rules in ["ingress", "egress"] {
        each(spec, rules, |rule| each(rule, "ports", |port| fill_pointer(port, "protocol", "TCP")));
    }
}

/// Sets the defaults of a `PodDisruptionBudget`.
pub(crate) fn pod_disruption_budget(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "spec");
    if let Some(status) = ensure(object, "status") {
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            fill(status, field, 0);
        }
    }
}

/// Sets the defaults of a `RoleBinding` or a `ClusterRoleBinding`.
///
/// Source: kubernetes pkg/apis/rbac/v1/defaults.go.
pub(crate) fn role_binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    ensure(object, "metadata");
    if let Some(role) = ensure(object, "roleRef") {
        fill(role, "apiGroup", GROUP);
    }
    each(object, "subjects", |subject| {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill(subject, "apiGroup", GROUP);
        }
    });
}

/// Sets the defaults of a `PriorityClass`.
///
/// Source: kubernetes pkg/apis/scheduling/v1/defaults.go.
pub(crate) fn priority_class(object: &mut Value) {
    ensure(object, "metadata");
    fill_pointer(object, "preemptionPolicy", "PreemptLowerPriority");
}
