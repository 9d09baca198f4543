//! The objects that a server creates at startup, except for roles and bindings.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::metrics::identity;
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::endpoints::options::Advertised;
use crate::endpoints::options::Options;
use crate::kinds::core::service::allocation::range;
use crate::kinds::core::service::allocation::range::ServiceRange;
use crate::kinds::defaulting;
use crate::kinds::discovery::{Resources, api_services};
use crate::kinds::flow_control;
use crate::kinds::server_writes;
use crate::storage::Storage;

pub(crate) const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Stores the initial objects of a new server.
///
/// Source: kubernetes pkg/controlplane/controller/{systemnamespaces,kubernetesservice,clusterauthenticationtrust,
/// legacytokentracking,defaultservicecidr}, `pkg/registry/scheduling/rest/storage_scheduling.go`.
/// Rule: RBAC-30.
pub(crate) fn store(storage: &Storage, options: &Options) {
    let resources = Resources::built_in();
    let made = objects(options).into_iter().map(|object| {
        let mut made = server_writes::made(object);
        // The namespace strategy sets these fields, so they do not have a manager.
        if made.get("kind").is_some_and(|kind| kind == "Namespace") {
            set(&mut made, &["spec"], json!({"finalizers": ["kubernetes"]}));
            set(&mut made, &["status"], json!({"phase": "Active"}));
        }
        made
    });
    for mut object in made.chain(api_services::initial()).chain(flow_control::initial()) {
        let Some(resource) = resources.of_kind(&GroupVersionKind::from_object(&object)) else { continue };
        metadata::set(&mut object, "uid", uuid::Uuid::new_v4().to_string().into());
        metadata::set(&mut object, "creationTimestamp", metadata::now().into());
        defaulting::set_defaults(&mut object);
        let key = resource.key(metadata::text(&object, "namespace"), metadata::text(&object, "name"));
        if storage.insert(&key, object).is_err() {
            unreachable!("the storage is new and the names differ");
        }
    }
}

fn objects(options: &Options) -> Vec<Value> {
    let Options { advertised, service_ranges, .. } = options;
    let mut objects: Vec<Value> = NAMESPACES.into_iter().map(namespace).collect();
    objects.extend([
        priority_class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        priority_class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system"},
            "data": {"since": metadata::now().get(..10).unwrap_or_default()},
        }),
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": service_ranges.of_families().map(|range| range.to_string()).collect::<Vec<_>>()},
            "status": {"conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "",
                "message": "Kubernetes default Service CIDR is ready",
                "lastTransitionTime": metadata::now(),
            }]},
        }),
        service(advertised.port, service_ranges.addresses),
        lease(advertised, &options.hostname),
    ]);
    if !advertised.client_authorities.is_empty() {
        objects.push(authentication(&advertised.client_authorities));
    }
    objects.extend(advertised.address.into_iter().flat_map(|address| endpoints(address, advertised.port)));
    objects
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
    })
}

fn priority_class(name: &str, value: i64, description: &str) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "generation": 1},
        "value": value,
        "description": description,
    })
}

/// Returns the ConfigMap with the authentication settings for extension API servers.
fn authentication(client_authorities: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {"client-ca-file": client_authorities},
    })
}

fn service(port: u16, range: ServiceRange) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
            "clusterIP": range.first(),
            "clusterIPs": [range.first()],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": [range.family()],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    })
}

/// Returns the Lease that identifies the server. admit does not renew it.
///
/// Source: component-helpers apimachinery/lease/controller.go; kubernetes pkg/controlplane/apiserver/server.go.
fn lease(advertised: &Advertised, hostname: &str) -> Value {
    let name = identity(hostname);
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": hostname},
        },
        "spec": {
            "holderIdentity": format!("{name}_{}", uuid::Uuid::new_v4()),
            "leaseDurationSeconds": 3600,
            "renewTime": format!("{:.6}", Timestamp::now()),
        },
    });
    if let Some(address) = advertised.external.or(advertised.address) {
        let endpoint = SocketAddr::new(address, advertised.port).to_string();
        metadata::set(&mut lease, "annotations", json!({"kubernetes.io/peer-advertise-address": endpoint}));
    }
    lease
}

fn endpoints(address: IpAddr, port: u16) -> [Value; 2] {
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let address_type = range::family(address);
    [
        json!({
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
            },
            "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "generation": 1,
                "labels": {"kubernetes.io/service-name": "kubernetes"},
            },
            "addressType": address_type,
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            "ports": ports,
        }),
    ]
}
