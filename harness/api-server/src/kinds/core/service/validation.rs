//! Validates Services.
//!
//! Addresses and IP families are validated during allocation.

use std::collections::HashSet;

use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, set, text, texts, word};
use crate::kinds::common::{addresses, formats};

/// Validates a Service.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateServiceCreate` and `ValidateServiceUpdate`.
/// Rule: VLO-21.
pub(crate) fn service(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if let Some(change) = change {
        changed(errors, &path, spec, get(change.old, "spec"));
    }
    let kind = text(spec, "type");
    let is_headless = is_headless(spec);
    if list(spec, "ports").is_empty() && !is_headless && kind != "ExternalName" {
        errors.required(&path.child("ports"), "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.invalid_text(&path.child("clusterIPs").index(0), "None", why);
        }
        "ExternalName" => external_name(errors, &path, spec),
        _ => {}
    }
    ports(errors, &path.child("ports"), spec);
    formats::labels(errors, &path.child("selector"), get(spec, "selector"));
    affinity(errors, &path, spec);
    let addresses_path = path.child("externalIPs");
    for (index, address) in texts(spec, "externalIPs").enumerate() {
        let before = errors.len();
        addresses::ip(errors, &addresses_path.index(index), address);
        if errors.len() == before {
            addresses::reachable(errors, &addresses_path.index(index), address);
        }
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    errors.required_one_of(&path.child("type"), kind, &kinds);
    repeated_ports(errors, &path.child("ports"), spec, kind);
    if !list(spec, "loadBalancerSourceRanges").is_empty() {
        let path = path.child("LoadBalancerSourceRanges");
        if kind != "LoadBalancer" {
            errors.forbidden(&path, "may only be used when `type` is 'LoadBalancer'");
        }
        for (index, range) in texts(spec, "loadBalancerSourceRanges").enumerate() {
            addresses::range(errors, &path.index(index), range.trim());
        }
    }
    if kind == "LoadBalancer" {
        if set(spec, "allocateLoadBalancerNodePorts").is_none() {
            errors.required(&Path::new("allocateLoadBalancerNodePorts"), "");
        }
    } else if set(spec, "allocateLoadBalancerNodePorts").is_some() {
        let path = path.child("allocateLoadBalancerNodePorts");
        errors.forbidden(&path, "may only be used when `type` is 'LoadBalancer'");
    }
    load_balancer_class(errors, &path, spec);
    traffic(errors, &path, spec);
}

fn is_headless(spec: &Value) -> bool {
    matches!(list(spec, "clusterIPs"), [only] if only.as_str() == Some("None"))
}

/// Validates that an update keeps the first cluster IP and IP family, and releases or replaces a second one as allowed.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateUpgradeDowngradeClusterIPs` and
/// `validateUpgradeDowngradeIPFamilies`.
fn changed_families(errors: &mut Errors, path: &Path<'_>, new: &Value, old: &Value) {
    let is_external = |spec| text(spec, "type") == "ExternalName";
    let was_headless = is_headless(old);
    if is_external(new) || is_external(old) || (was_headless && is_headless(new)) {
        return;
    }
    let encode = kubernetes_types::quoting::encode;
    let addresses = encode(get(new, "clusterIPs"));
    let policy = text(new, "ipFamilyPolicy");
    for (field, what) in [("clusterIPs", "clusterIP"), ("ipFamilies", "ipFamily")] {
        if field == "ipFamilies" && was_headless != is_headless(new) {
            return;
        }
        let field_path = path.child(field);
        let (before, after) = (list(old, field), list(new, field));
        if before.len() == after.len() {
            for (index, _) in before.iter().zip(after).enumerate().filter(|(_, (old, new))| old != new) {
                let index = if field == "clusterIPs" { index } else { 0 };
                errors.invalid(&field_path.index(index), encode(get(new, field)), "may not change once set");
            }
            continue;
        }
        if before.len() > after.len() && list(new, "clusterIPs").is_empty() {
            let why = format!("primary {what} can not be unset");
            errors.invalid(&field_path.index(0), encode(get(new, field)), why);
        }
        if let (Some(old), Some(new)) = (before.first(), after.first())
            && old != new
        {
            errors.invalid(&field_path.index(0), addresses.clone(), "may not change once set");
        }
        if before.len() > after.len() && after.len() == 1 && policy != "SingleStack" {
            let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
            errors.invalid_text(&path.child("ipFamilyPolicy"), policy, why);
        }
    }
}

fn changed(errors: &mut Errors, path: &Path<'_>, new: &Value, old: &Value) {
    changed_families(errors, path, new, old);
    let of = |spec| word(spec, "loadBalancerClass");
    let both = |kind: &str| text(new, "type") == kind && text(old, "type") == kind;
    if both("LoadBalancer") && of(new) != of(old) {
        let shown = of(new).map_or_else(|| "null".to_owned(), kubernetes_types::quoting::quote);
        errors.invalid(&path.child("loadBalancerClass"), shown, "may not change once set");
    }
    load_balancer_class(errors, path, new);
    let port = |spec| int(spec, "healthCheckNodePort").unwrap_or(0);
    if needs_health_check(new) && needs_health_check(old) && port(new) != port(old) {
        errors.forbidden(&path.child("healthCheckNodePort"), IMMUTABLE);
    }
}

fn external_name(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const WHY: &str = "may not be set for ExternalName services";
    for field in ["clusterIPs", "ipFamilies"] {
        if !list(spec, field).is_empty() {
            errors.forbidden(&path.child(field), WHY);
        }
    }
    if set(spec, "ipFamilyPolicy").is_some() {
        errors.forbidden(&path.child("ipFamilyPolicy"), WHY);
    }
    let name = text(spec, "externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        errors.required(&path.child("externalName"), "");
    } else {
        formats::dns_subdomain(errors, &path.child("externalName"), name);
    }
}

/// Validates the ports of a Service.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateServicePort`.
fn ports(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let ports = list(spec, "ports");
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            formats::dns_label(errors, &path.child("name"), name);
            if !names.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
        } else if ports.len() > 1 {
            errors.required(&path.child("name"), "");
        }
        formats::port(errors, &path.child("port"), int(port, "port").unwrap_or(0));
        let protocols = ["SCTP", "TCP", "UDP"];
        errors.required_one_of(&path.child("protocol"), text(port, "protocol"), &protocols);
        formats::port_or_name(errors, &path.child("targetPort"), get(port, "targetPort"));
        if let Some(protocol) = word(port, "appProtocol") {
            formats::qualified_name(errors, &path.child("appProtocol"), protocol);
        }
    }
}

fn repeated_ports(errors: &mut Errors, path: &Path<'_>, spec: &Value, kind: &str) {
    let ports = list(spec, "ports");
    let of = |port, field| int(port, field).unwrap_or(0);
    let with_node_port = || ports.iter().enumerate().filter(|(_, port)| of(port, "nodePort") != 0);
    if kind == "ClusterIP" {
        for (index, _) in with_node_port() {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.forbidden(&path.index(index).child("nodePort"), why);
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in with_node_port() {
        let number = of(port, "nodePort");
        if !seen.insert((text(port, "protocol"), number)) {
            let field = path.index(index).child("nodePort").to_string();
            errors.push(kubernetes_types::status::FieldError::duplicate(field, number));
        }
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), of(port, "port"));
        if !seen.insert((protocol, number)) {
            let protocol = kubernetes_types::quoting::quote(protocol);
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors
                .push(kubernetes_types::status::FieldError::duplicate(path.index(index).to_string(), shown));
        }
    }
}

/// Validates the session affinity of a Service.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateClientIPAffinityConfig`.
fn affinity(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const WHEN: &str = "when session affinity type is ClientIP";
    /// The maximum session affinity timeout in seconds: one day.
    const MAX_CLIENT_IP_SERVICE_AFFINITY_SECONDS: i64 = 86400;
    let affinity = text(spec, "sessionAffinity");
    errors.required_one_of(&path.child("sessionAffinity"), affinity, &["ClientIP", "None"]);
    let path = path.child("sessionAffinityConfig");
    let config = set(spec, "sessionAffinityConfig");
    if affinity == "None" && config.is_some() {
        errors.forbidden(&path, "must not be set when session affinity is None");
    }
    if affinity != "ClientIP" {
        return;
    }
    let Some(config) = config else { return errors.required(&path, WHEN) };
    let path = path.child("clientIP");
    let Some(client) = set(config, "clientIP") else { return errors.required(&path, WHEN) };
    let path = path.child("timeoutSeconds");
    match int(client, "timeoutSeconds") {
        None => errors.required(&path, WHEN),
        Some(seconds) if seconds <= 0 || seconds > MAX_CLIENT_IP_SERVICE_AFFINITY_SECONDS => {
            errors.invalid(
                &path,
                seconds,
                format!("must be greater than 0 and less than {MAX_CLIENT_IP_SERVICE_AFFINITY_SECONDS}"),
            );
        }
        Some(_) => {}
    }
}

fn load_balancer_class(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let Some(class) = word(spec, "loadBalancerClass") else { return };
    let path = path.child("loadBalancerClass");
    if text(spec, "type") == "LoadBalancer" {
        formats::qualified_name(errors, &path, class);
    } else {
        errors.forbidden(&path, "may only be used when `type` is 'LoadBalancer'");
    }
}

/// Returns whether a Service needs a health check node port.
///
/// Source: kubernetes pkg/api/service/util.go, `NeedsHealthCheck`.
fn needs_health_check(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Validates the traffic policies and the traffic distribution of a Service.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateServiceExternalTrafficPolicy`,
/// `validateServiceInternalTrafficFieldsValue` and `validateServiceTrafficDistribution`; pkg/api/service/util.go,
/// `ExternallyAccessible`.
fn traffic(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let kind = text(spec, "type");
    let is_accessible = ["LoadBalancer", "NodePort"].contains(&kind)
        || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty());
    let (policy, policy_path) = (text(spec, "externalTrafficPolicy"), path.child("externalTrafficPolicy"));
    if is_accessible {
        errors.required_one_of(&policy_path, policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        errors.invalid_text(&policy_path, policy, "may only be set for externally-accessible services");
    }
    let (port, port_path) =
        (int(spec, "healthCheckNodePort").unwrap_or(0), path.child("healthCheckNodePort"));
    match (needs_health_check(spec), port) {
        (true, 0) => errors.required(&port_path, ""),
        (true, port) => formats::port(errors, &port_path, port),
        (false, 0) => {}
        (false, port) => {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&port_path, port, why);
        }
    }
    let (policy, policy_path) = (word(spec, "internalTrafficPolicy"), path.child("internalTrafficPolicy"));
    if policy.is_none() && ["NodePort", "LoadBalancer", "ClusterIP"].contains(&kind) {
        errors.required(&policy_path, "");
    }
    errors.one_of(&policy_path, policy, &["Cluster", "Local"]);
    let distribution = word(spec, "trafficDistribution");
    let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    errors.one_of(&path.child("trafficDistribution"), distribution, &supported);
}
