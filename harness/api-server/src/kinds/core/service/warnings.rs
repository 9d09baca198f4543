//! Warns about Services.

use serde_json::Value;

use crate::kinds::common::addresses;
use crate::kinds::common::fields::{Path, get, list, text, texts};
use crate::kinds::common::warnings::{Warnings, has_annotation};

/// Warns about the addresses of a load balancer.
pub(crate) fn balancer(warnings: &mut Warnings, object: &Value) {
    let status = Path::new("status");
    let path = status.child("loadBalancer");
    let path = path.child("ingress");
    let balancer = get(get(object, "status"), "loadBalancer");
    for (index, ingress) in list(balancer, "ingress").iter().enumerate() {
        addresses::unusual_ip(warnings, &path.index(index), text(ingress, "ip"));
    }
}

/// Warns about a Service.
///
/// Source: kubernetes pkg/api/service/warnings.go.
pub(crate) fn service(warnings: &mut Warnings, object: &Value) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let hints = "service.kubernetes.io/topology-aware-hints";
    if has_annotation(object, hints) {
        let instead = "service.kubernetes.io/topology-mode";
        warnings.push(format!("annotation {hints} is deprecated, please use {instead} instead"));
    }
    let (kind, address) = (text(spec, "type"), text(spec, "clusterIP"));
    let is_headless = kind == "ClusterIP" && address == "None";
    let all = |warnings: &mut Warnings, field: &str| {
        let path = path.child(field);
        for (index, address) in texts(spec, field).enumerate() {
            addresses::unusual_ip(warnings, &path.index(index), address);
        }
    };
    if !address.is_empty() && address != "None" {
        all(warnings, "clusterIPs");
    }
    let externals = !list(spec, "externalIPs").is_empty();
    if is_headless {
        let ignored = [
            (!text(spec, "loadBalancerIP").is_empty(), "loadBalancerIP"),
            (externals, "externalIPs"),
            (text(spec, "sessionAffinity") != "None", "SessionAffinity"),
        ];
        for (_, field) in ignored.into_iter().filter(|(is_set, _)| *is_set) {
            warnings.push(format!("spec.{field} is ignored for headless services"));
        }
    }
    all(warnings, "externalIPs");
    if externals && !is_headless && kind != "ExternalName" {
        let message = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(message.to_owned());
    }
    addresses::unusual_ip(warnings, &path.child("loadBalancerIP"), text(spec, "loadBalancerIP"));
    let ranges = path.child("loadBalancerSourceRanges");
    for (index, range) in texts(spec, "loadBalancerSourceRanges").enumerate() {
        addresses::unusual_range(warnings, &ranges.index(index), range);
    }
    if kind == "ExternalName" && externals {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !text(spec, "externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        let message = "\"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(format!("spec.trafficDistribution: {message}"));
    }
}
