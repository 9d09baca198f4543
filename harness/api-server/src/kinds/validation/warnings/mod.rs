//! Warns about accepted objects.

pub(crate) mod pod;
pub(crate) mod secret;
pub(crate) mod storage;
pub(crate) mod volumes;

use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use serde_json::Value;

use crate::kinds::common::addresses;
use crate::kinds::common::fields::{Path, get, int, list, set, text, texts};
use crate::kinds::common::warnings::{
    POD_NAMES, Warnings, has_annotation, has_next_generation, is_managed_by, named_as_host,
};
use crate::kinds::validation::warnings::storage::claim_spec;

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

pub(crate) fn of_template(warnings: &mut Warnings, spec: &Value) {
    let path = Path::new("spec");
    pod::template(warnings, &path.child("template"), get(spec, "template"));
}

pub(crate) fn stateful_set(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let spec = get(object, "spec");
    if has_next_generation(object, old) {
        of_template(warnings, spec);
    }
    let path = Path::new("spec");
    let path = path.child("volumeClaimTemplates");
    for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let item = path.index(index);
        // The path is also spelled differently in an update.
        let path = if old.is_some() { item.child("Spec") } else { item };
        claim_spec(warnings, &path, get(claim, "spec"));
    }
    if int(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        let message = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(format!("spec.revisionHistoryLimit: {message}"));
    }
}

/// Warns about a Job or a `CronJob`.
///
/// Source: kubernetes pkg/api/job/warnings.go.
pub(crate) fn job(warnings: &mut Warnings, object: &Value, old: Option<&Value>, by_schedule: bool) {
    const COMPLETIONS: i64 = 100_000;
    const PARALLELISM: i64 = 10_000;
    let (root, of_jobs) = (Path::new("spec"), get(object, "spec"));
    let template = root.child("jobTemplate");
    let (path, spec) = if by_schedule {
        (template.child("spec"), get(get(of_jobs, "jobTemplate"), "spec"))
    } else {
        (root, of_jobs)
    };
    if old.is_none() {
        named_as_host(warnings, object, POD_NAMES);
    }
    if has_next_generation(object, old) {
        let number = |field| int(spec, field).unwrap_or(0);
        if text(spec, "completionMode") == "Indexed"
            && number("completions") > COMPLETIONS
            && number("parallelism") > PARALLELISM
        {
            warnings.push(format!(
                "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than \
                 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
            ));
        }
        pod::template(warnings, &path.child("template"), get(spec, "template"));
    }
    if by_schedule && old.is_some() && text(of_jobs, "schedule").contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
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

/// Warns about the deprecated annotation with the class of an Ingress.
///
/// Source: kubernetes pkg/registry/networking/ingress/strategy.go, `WarningsOnCreate`.
/// Rule: KND-07.
pub(crate) fn deprecated_class(warnings: &mut Warnings, ingress: &Value) {
    let annotation = "kubernetes.io/ingress.class";
    if has_annotation(ingress, annotation) && set(get(ingress, "spec"), "ingressClassName").is_none() {
        let message = "is deprecated, please use 'spec.ingressClassName' instead";
        warnings.push(format!("annotation \"{annotation}\" {message}"));
    }
}

pub(crate) fn network_policy(warnings: &mut Warnings, spec: &Value) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let path = Path::new("spec");
        let path = path.child(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let item = path.index(index);
            let path = item.child(peers);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                let item = path.index(index);
                let path = item.child("ipBlock");
                let block = get(peer, "ipBlock");
                addresses::unusual_range(warnings, &path.child("cidr"), text(block, "cidr"));
                let path = path.child("except");
                for (index, except) in texts(block, "except").enumerate() {
                    addresses::unusual_range(warnings, &path.index(index), except);
                }
            }
        }
    }
}

/// Warns about requests in a quota that exceed the limits.
///
/// Source: kubernetes pkg/registry/core/resourcequota/strategy.go, `WarningsOnCreate`.
pub(crate) fn quota(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if old.is_some() {
        return;
    }
    let hard = get(get(object, "spec"), "hard");
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let of = |name: &str| set(hard, name).and_then(quantity::from_value);
        let mut request_name = format!("requests.{name}");
        let mut request: Option<Quantity> = of(&request_name);
        if request.is_none() && ["cpu", "memory"].contains(&name) {
            name.clone_into(&mut request_name);
            request = of(name);
        }
        let limit_name = format!("limits.{name}");
        if let (Some(request), Some(limit)) = (request, of(&limit_name))
            && request > limit
        {
            warnings.push(format!(
                "ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})"
            ));
        }
    }
}

/// Warns about addresses in Endpoints that are not standard or not canonical.
///
/// Source: kubernetes pkg/registry/core/endpoint/strategy.go, `endpointsWarnings`.
pub(crate) fn endpoints(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    if is_managed_by(object, "endpoints.kubernetes.io/managed-by", &["endpoint-controller"]) {
        return;
    }
    let path = Path::new("subsets");
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let item = path.index(index);
        for field in ["addresses", "notReadyAddresses"] {
            let path = item.child(field);
            for (index, address) in list(subset, field).iter().enumerate() {
                let path = path.index(index);
                addresses::unusual_ip(warnings, &path.child("ip"), text(address, "ip"));
            }
        }
    }
}

/// Warns about an `EndpointSlice`.
///
/// Source: kubernetes pkg/registry/discovery/endpointslice/strategy.go.
pub(crate) fn endpoint_slice(warnings: &mut Warnings, slice: &Value, is_new: bool) {
    if is_new && text(slice, "addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    let managers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if is_managed_by(slice, "endpointslice.kubernetes.io/managed-by", &managers) {
        return;
    }
    let path = Path::new("endpoints");
    for (index, endpoint) in list(slice, "endpoints").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("addresses");
        for (index, address) in texts(endpoint, "addresses").enumerate() {
            addresses::unusual_ip(warnings, &path.index(index), address);
        }
    }
}

/// Warns about a Node.
///
/// Source: kubernetes pkg/registry/core/node/strategy.go, `nodeWarnings`.
pub(crate) fn node(warnings: &mut Warnings, spec: &Value) {
    if !text(spec, "externalID").is_empty() {
        let message = "this field is deprecated, and is unused by Kubernetes";
        warnings.push(format!("spec.externalID: {message}"));
    }
    let path = Path::new("spec");
    let path = path.child("podCIDRs");
    for (index, range) in texts(spec, "podCIDRs").enumerate() {
        addresses::unusual_range(warnings, &path.index(index), range);
    }
}
