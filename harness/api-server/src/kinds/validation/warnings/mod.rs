//! Warns about accepted objects.

pub(crate) mod pod;
pub(crate) mod secret;
pub(crate) mod storage;
pub(crate) mod volumes;

use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use kubernetes_types::schema::Type;
use serde_json::Value;

use crate::kinds::common::addresses;
use crate::kinds::common::fields::{Path, get, int, list, set, text, texts};
use crate::kinds::common::warnings::{
    POD_NAMES, Warnings, has_annotation, has_next_generation, is_managed_by, named_as_host,
};
use crate::kinds::discovery::Resource;
use crate::kinds::strategy::TEMPLATE_GENERATION;
use crate::kinds::validation::devices::slices;
use crate::kinds::validation::warnings::storage::{claim_spec, driver, of_labels_of_nodes, volume};

/// Returns kube-apiserver's warnings for a creation, or for an update of `old`.
///
/// Source: `WarningsOnCreate` and `WarningsOnUpdate` in kubernetes `pkg/registry/*/*/strategy.go`.
/// Rule: VLO-26, VLO-27, VLO-28.
pub(crate) fn warnings(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Vec<String> {
    let mut warnings = Warnings::default();
    let kind = resource.gvr.group_resource();
    match (subresource, kind.as_str()) {
        ("", "csidrivers.storage.k8s.io") => {
            let of = Type::for_kind(&resource.kind).member("spec").member("tokenRequests");
            driver(&mut warnings, get(object, "spec"), old.map(|old| get(old, "spec")), of);
        }
        ("", _) => of_object(&mut warnings, object, old, &kind),
        ("status", "services" | "ingresses.networking.k8s.io") => {
            let status = Path::new("status");
            let path = status.child("loadBalancer");
            let path = path.child("ingress");
            let balancer = get(get(object, "status"), "loadBalancer");
            for (index, ingress) in list(balancer, "ingress").iter().enumerate() {
                addresses::unusual_ip(&mut warnings, &path.index(index), text(ingress, "ip"));
            }
        }
        ("status", "pods") => {
            for field in ["podIPs", "hostIPs"] {
                let path = Path::new("status");
                let path = path.child(field);
                for (index, address) in list(get(object, "status"), field).iter().enumerate() {
                    let path = path.index(index);
                    addresses::unusual_ip(&mut warnings, &path.child("ip"), text(address, "ip"));
                }
            }
        }
        _ => {}
    }
    warnings.into_texts()
}

fn of_object(warnings: &mut Warnings, object: &Value, old: Option<&Value>, kind: &str) {
    let spec = get(object, "spec");
    match kind {
        "pods" if old.is_none() => {
            named_as_host(warnings, object, "the Pod's hostname");
            pod::pod(warnings, object);
        }
        "podtemplates" if has_next_generation(object, old) => {
            pod::template(warnings, &Path::new("template"), get(object, "template"));
        }
        "replicationcontrollers" if has_next_generation(object, old) => {
            if old.is_none() {
                named_as_host(warnings, object, POD_NAMES);
            }
            // An update warns about the replaced template.
            of_template(warnings, get(old.unwrap_or(object), "spec"));
        }
        "deployments.apps" | "replicasets.apps" if has_next_generation(object, old) => {
            if old.is_none() {
                named_as_host(warnings, object, POD_NAMES);
            }
            of_template(warnings, spec);
        }
        "daemonsets.apps" => {
            let generation = |set| text(get(get(set, "metadata"), "annotations"), TEMPLATE_GENERATION);
            if old.is_none_or(|old| generation(old) != generation(object)) {
                of_template(warnings, spec);
            }
        }
        "statefulsets.apps" => stateful_set(warnings, object, old),
        "jobs.batch" | "cronjobs.batch" => job(warnings, object, old, kind == "cronjobs.batch"),
        "services" => service(warnings, object),
        "ingresses.networking.k8s.io" if old.is_none() => deprecated_class(warnings, object),
        "networkpolicies.networking.k8s.io" => network_policy(warnings, spec),
        "resourceslices.resource.k8s.io" => {
            if let Some(warning) = slices::uppercase_driver(object) {
                warnings.push(warning);
            }
        }
        "persistentvolumes" => volume(warnings, object),
        "persistentvolumeclaims" => {
            let class = "volume.beta.kubernetes.io/storage-class";
            if has_annotation(object, class) {
                let message = "deprecated since v1.8; use \"storageClassName\" attribute instead";
                warnings.push(format!("metadata.annotations[{class}]: {message}"));
            }
            claim_spec(warnings, &Path::new("spec"), spec);
        }
        "secrets" => secret::secret(warnings, object),
        "serviceaccounts" => {
            let enforce = "kubernetes.io/enforce-mountable-secrets";
            if has_annotation(object, enforce) && !old.is_some_and(|old| has_annotation(old, enforce)) {
                warnings.push(format!(
                    "metadata.annotations[{enforce}]: deprecated in v1.32+; prefer separate namespaces to isolate \
                     access to mounted secrets"
                ));
            }
        }
        "resourcequotas" if old.is_none() => quota(warnings, get(spec, "hard")),
        "endpoints" => endpoints(warnings, object),
        "endpointslices.discovery.k8s.io" => endpoint_slice(warnings, object, old.is_none()),
        "nodes" => node(warnings, spec),
        _ => of_labels_of_nodes(warnings, object, kind),
    }
}

fn of_template(warnings: &mut Warnings, spec: &Value) {
    let path = Path::new("spec");
    pod::template(warnings, &path.child("template"), get(spec, "template"));
}

fn stateful_set(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
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
fn job(warnings: &mut Warnings, object: &Value, old: Option<&Value>, by_schedule: bool) {
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
fn service(warnings: &mut Warnings, object: &Value) {
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
fn deprecated_class(warnings: &mut Warnings, ingress: &Value) {
    let annotation = "kubernetes.io/ingress.class";
    if has_annotation(ingress, annotation) && set(get(ingress, "spec"), "ingressClassName").is_none() {
        let message = "is deprecated, please use 'spec.ingressClassName' instead";
        warnings.push(format!("annotation \"{annotation}\" {message}"));
    }
}

fn network_policy(warnings: &mut Warnings, spec: &Value) {
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
fn quota(warnings: &mut Warnings, hard: &Value) {
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
fn endpoints(warnings: &mut Warnings, object: &Value) {
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
fn endpoint_slice(warnings: &mut Warnings, slice: &Value, is_new: bool) {
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
fn node(warnings: &mut Warnings, spec: &Value) {
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
