//! Manages `APIService`s and the order of groups in discovery.
//!
//! admit stores `APIService`s that refer to a Service but does not proxy requests to the Service. Requests to their
//! groups get 503, as if the Service were unavailable.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use kubernetes_types::json::{at, set, text};
use kubernetes_types::quoting::quote;
use serde_json::{Value, json};

use crate::apimachinery::{metadata, status_conditions};
use crate::kinds::discovery::{compare, custom};
use crate::kinds::server_writes;
use crate::storage::{Key, ObjectReader as _, Storage};

pub(crate) const GROUP: &str = "apiregistration.k8s.io";

const RESOURCE: &str = "apiservices";

/// The label of the `APIService`s that kube-aggregator creates.
///
/// Source: kube-aggregator `pkg/controllers/autoregister/autoregister_controller.go`.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The priorities of the groups and versions of custom resources.
///
/// Source: kubernetes `pkg/controlplane/controller/crdregistration/crdregistration_controller.go`,
/// `handleVersionUpdate`.
const CUSTOM_GROUP_PRIORITY: i64 = 1000;

const CUSTOM_VERSION_PRIORITY: i64 = 100;

/// The built-in groups and versions, with the priorities of the group and of the version.
///
/// Source: kubernetes pkg/controlplane/apiserver/aggregator.go, `DefaultGenericAPIServicePriorities`;
/// pkg/controlplane/instance.go, `defaultAPIServicePriorities`.
const BUILT_IN: [(&str, &str, i64, i64); 22] = [
    ("", "v1", 18_000, 1),
    ("apps", "v1", 17_800, 15),
    ("events.k8s.io", "v1", 17_750, 15),
    ("authentication.k8s.io", "v1", 17_700, 15),
    ("authorization.k8s.io", "v1", 17_600, 15),
    ("autoscaling", "v1", 17_500, 15),
    ("autoscaling", "v2", 17_500, 30),
    ("batch", "v1", 17_400, 15),
    ("certificates.k8s.io", "v1", 17_300, 15),
    ("networking.k8s.io", "v1", 17_200, 15),
    ("policy", "v1", 17_100, 15),
    ("rbac.authorization.k8s.io", "v1", 17_000, 15),
    ("storage.k8s.io", "v1", 16_800, 15),
    ("admissionregistration.k8s.io", "v1", 16_700, 15),
    ("apiextensions.k8s.io", "v1", 16_700, 15),
    ("scheduling.k8s.io", "v1", 16_600, 15),
    ("coordination.k8s.io", "v1", 16_500, 15),
    ("node.k8s.io", "v1", 16_300, 15),
    ("discovery.k8s.io", "v1", 16_200, 15),
    ("resource.k8s.io", "v1", 16_200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16_100, 21),
    ("storagemigration.k8s.io", "v1", 15_800, 15),
];

/// The part of an `APIService` that discovery and routing use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiService {
    pub(crate) group: String,
    pub(crate) version: String,
    group_priority: i64,
    version_priority: i64,
    /// Whether a Service serves the group and version.
    pub(crate) is_remote: bool,
}

impl ApiService {
    fn from_object(object: &Value) -> Self {
        let number = |field: &str| at(object, &["spec", field]).as_i64().unwrap_or_default();
        Self {
            group: text(object, &["spec", "group"]).to_owned(),
            version: text(object, &["spec", "version"]).to_owned(),
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            is_remote: is_remote(object),
        }
    }

    /// Returns the `APIService` for a group and version of custom resources.
    fn of_custom(group: &str, version: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            group_priority: CUSTOM_GROUP_PRIORITY,
            version_priority: CUSTOM_VERSION_PRIORITY,
            is_remote: false,
        }
    }

    fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    fn spec(&self) -> Value {
        let mut spec = json!({
            "version": self.version,
            "groupPriorityMinimum": self.group_priority,
            "versionPriority": self.version_priority,
        });
        if !self.group.is_empty() {
            set(&mut spec, &["group"], self.group.as_str());
        }
        spec
    }

    /// Returns the object that kube-aggregator creates; `managed` is the value of its label [`MANAGED`].
    fn object(&self, managed: &str) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": self.name(), "labels": {(MANAGED): managed}},
            "spec": self.spec(),
        })
    }
}

/// Returns the `APIService`s of the built-in groups and versions.
pub(crate) fn built_in() -> Vec<ApiService> {
    BUILT_IN
        .iter()
        .map(|&(group, version, group_priority, version_priority)| ApiService {
            group: group.to_owned(),
            version: version.to_owned(),
            group_priority,
            version_priority,
            is_remote: false,
        })
        .collect()
}

/// Returns the initial objects.
pub(crate) fn initial() -> Vec<Value> {
    let create = |service: ApiService| {
        let mut object = server_writes::made(service.object("onstart"));
        set_available(&mut object, &LOCAL);
        object
    };
    built_in().into_iter().map(create).collect()
}

/// Returns the stored `APIService`s. If there are none, returns those that kube-aggregator creates.
pub(crate) fn stored(storage: &Storage) -> Vec<ApiService> {
    let stored = storage.list(GROUP, RESOURCE, "");
    if !stored.is_empty() {
        return stored.iter().map(|object| ApiService::from_object(object)).collect();
    }
    built_in().into_iter().chain(of_definitions(storage).into_values()).collect()
}

/// A group with the `APIService`s of its versions.
pub(crate) type Group<'a> = (&'a str, Vec<&'a ApiService>);

/// Returns the groups, except the core group, and their versions in the order that `/apis` uses.
///
/// Source: kube-aggregator pkg/apis/apiregistration/v1/helper/helpers.go, `SortedByGroupAndVersion`.
pub(crate) fn by_priority(services: &[ApiService]) -> Vec<Group<'_>> {
    let mut sorted: Vec<(String, &ApiService)> = named(services).map(|it| (it.name(), it)).collect();
    sorted.sort_by(|(one_name, one), (other_name, other)| {
        other.group_priority.cmp(&one.group_priority).then_with(|| one_name.cmp(other_name))
    });
    grouped(sorted.into_iter().map(|(_, service)| service))
}

/// Returns the groups, except the core group, and their versions in the order that aggregated discovery uses.
///
/// Source: apiserver pkg/endpoints/discovery/aggregated/handler.go, `calculateAPIGroupsLocked`.
pub(crate) fn by_highest_priority(services: &[ApiService]) -> Vec<Group<'_>> {
    let mut groups = grouped(named(services));
    let highest = |services: &[&ApiService]| services.iter().map(|service| service.group_priority).max();
    groups.sort_by(|(one, one_services), (other, other_services)| {
        highest(other_services).cmp(&highest(one_services)).then_with(|| one.cmp(other))
    });
    groups
}

fn named(services: &[ApiService]) -> impl Iterator<Item = &ApiService> {
    services.iter().filter(|service| !service.group.is_empty())
}

fn grouped<'a>(services: impl Iterator<Item = &'a ApiService>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for service in services {
        match groups.iter_mut().find(|(group, _)| *group == service.group) {
            Some((_, versions)) => versions.push(service),
            None => groups.push((&service.group, vec![service])),
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by(|one, other| by_version_priority(one, other));
    }
    groups
}

fn by_version_priority(one: &ApiService, other: &ApiService) -> Ordering {
    other.version_priority.cmp(&one.version_priority).then_with(|| compare(&other.version, &one.version))
}

/// Returns whether the `APIService` refers to a Service.
fn is_remote(object: &Value) -> bool {
    !at(object, &["spec", "service"]).is_null()
}

/// Updates the stored `APIService`s as kube-aggregator's controllers do. Returns whether any `APIService` has changed.
///
/// Writes to the storage without admission, before the response to the request that caused the write.
///
/// Source: kube-aggregator `pkg/controllers/autoregister/autoregister_controller.go`, `checkAPIService`;
/// `pkg/controllers/status/{local,remote}`.
pub(crate) fn reconcile(storage: &Storage) -> bool {
    let mut has_changed = register(storage);
    for stored in storage.list(GROUP, RESOURCE, "") {
        let condition = if is_remote(&stored) { remote(storage, &stored) } else { LOCAL };
        let mut next = (*stored).clone();
        set_available(&mut next, &condition);
        if next != *stored {
            let next = server_writes::with_status(&stored, next);
            has_changed |= storage.replace(&key(&stored), Some(&stored), next).is_ok();
        }
    }
    has_changed
}

/// Creates, updates, and deletes the `APIService`s of custom resources.
fn register(storage: &Storage) -> bool {
    let mut missing = of_definitions(storage);
    let mut has_changed = false;
    for stored in storage.list(GROUP, RESOURCE, "") {
        let wanted = missing.remove(metadata::text(&stored, "name"));
        if text(&stored, &["metadata", "labels", MANAGED]) != "true" {
            continue;
        }
        let key = key(&stored);
        has_changed |= match wanted {
            None => storage.remove(&key, &stored).is_ok(),
            Some(wanted) if ApiService::from_object(&stored) != wanted => {
                let mut next = (*stored).clone();
                set(&mut next, &["spec"], wanted.spec());
                storage.replace(&key, Some(&stored), server_writes::updated(&stored, next)).is_ok()
            }
            Some(_) => false,
        };
    }
    for service in missing.into_values() {
        let mut object = server_writes::made(service.object("true"));
        set_available(&mut object, &LOCAL);
        metadata::set(&mut object, "uid", uuid::Uuid::new_v4().to_string().into());
        metadata::set(&mut object, "creationTimestamp", metadata::now().into());
        has_changed |= storage.insert(&key(&object), object).is_ok();
    }
    has_changed
}

/// Returns the `APIService`s of the served versions of all definitions, by name.
fn of_definitions(storage: &Storage) -> BTreeMap<String, ApiService> {
    let mut services = BTreeMap::new();
    for definition in storage.list(custom::GROUP, custom::RESOURCE, "") {
        let versions = at(&definition, &["spec", "versions"]).as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let service =
                ApiService::of_custom(text(&definition, &["spec", "group"]), text(version, &["name"]));
            services.insert(service.name(), service);
        }
    }
    services
}

fn key(object: &Value) -> Key {
    Key::cluster_scoped(GROUP, RESOURCE, metadata::text(object, "name"))
}

/// The condition `Available` of an `APIService`, without `lastTransitionTime`.
struct Available {
    status: &'static str,
    reason: &'static str,
    message: Cow<'static, str>,
}

/// The condition of an `APIService` that kube-apiserver itself serves.
const LOCAL: Available = Available {
    status: "True",
    reason: "Local",
    message: Cow::Borrowed("Local APIServices are always available"),
};

/// Sets the condition `Available`. `lastTransitionTime` changes only if the status changes.
///
/// Source: kube-aggregator pkg/apis/apiregistration/v1/helper/helpers.go, `SetAPIServiceCondition`.
fn set_available(object: &mut Value, condition: &Available) {
    let condition = json!({
        "type": "Available", "status": condition.status, "reason": condition.reason, "message": condition.message,
    });
    status_conditions::set(object, condition);
}

/// Returns the condition of an `APIService` that refers to a Service.
///
/// Source: kube-aggregator `pkg/controllers/status/remote/remote_available_controller.go`, `sync`.
fn remote(storage: &Storage, object: &Value) -> Available {
    let reference = at(object, &["spec", "service"]);
    let (namespace, name) = (text(reference, &["namespace"]), text(reference, &["name"]));
    let port = at(reference, &["port"]).as_i64().unwrap_or_default();
    let not = |reason, message: String| Available { status: "False", reason, message: message.into() };
    let Some(service) = storage.get("", "services", namespace, name) else {
        return not("ServiceNotFound", format!("service/{name} in {} is not present", quote(namespace)));
    };
    if text(&service, &["spec", "type"]) == "ClusterIP" {
        let ports = at(&service, &["spec", "ports"]).as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(found) = ports.iter().find(|found| found["port"] == port) else {
            let why = format!("service/{name} in {} is not listening on port {port}", quote(namespace));
            return not("ServicePortError", why);
        };
        let port_name = text(found, &["name"]);
        let slices = storage.list("discovery.k8s.io", "endpointslices", namespace);
        let is_of_service =
            |slice: &&Arc<Value>| text(slice, &["metadata", "labels", "kubernetes.io/service-name"]) == name;
        let slices: Vec<&Arc<Value>> = slices.iter().filter(is_of_service).collect();
        if slices.is_empty() {
            let why = format!("cannot find endpointslices for service/{name} in {}", quote(namespace));
            return not("EndpointsNotFound", why);
        }
        if !slices.iter().any(|slice| has_endpoint(slice, port_name)) {
            let why = format!(
                "endpointslices for service/{name} in {} have no addresses with port name {}",
                quote(namespace),
                quote(port_name)
            );
            return not("MissingEndpoints", why);
        }
    }
    let host = match text(&service, &["spec", "type"]) {
        "ExternalName" => text(&service, &["spec", "externalName"]),
        _ => text(&service, &["spec", "clusterIP"]),
    };
    let (group, version) = (text(object, &["spec", "group"]), text(object, &["spec", "version"]));
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let why = "admit does not connect to aggregated API servers";
    not(
        "FailedDiscoveryCheck",
        format!("failing or missing response from https://{host}:{port}{path}: {why}"),
    )
}

/// Returns whether a slice has a ready endpoint and a port with this name.
///
/// Source: kube-aggregator `pkg/controllers/status/remote/remote_available_controller.go`, `hasAvailableEndpoint`.
fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let any = |field: &str, is: &dyn Fn(&Value) -> bool| {
        at(slice, &[field]).as_array().is_some_and(|items| items.iter().any(is))
    };
    let is_ready = |endpoint: &Value| at(endpoint, &["conditions", "ready"]).as_bool().unwrap_or(true);
    let is_port = |port: &Value| {
        port.get("name").and_then(Value::as_str) == Some(port_name) && !at(port, &["port"]).is_null()
    };
    any("endpoints", &is_ready) && any("ports", &is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(group: &str, version: &str, priorities: (i64, i64)) -> ApiService {
        let (group_priority, version_priority) = priorities;
        ApiService { group_priority, version_priority, ..ApiService::of_custom(group, version) }
    }

    #[test]
    fn groups_are_sorted_by_priority() {
        let services = [
            service("b.example.com", "v1", (1000, 100)),
            service("b.example.com", "v2", (1000, 100)),
            service("a.example.com", "v1alpha1", (1000, 100)),
            service("first.example.com", "v1", (2000, 1)),
            service("", "v1", (18_000, 1)),
        ];
        let names = |groups: Vec<Group<'_>>| {
            let versions = |versions: Vec<&ApiService>| {
                versions.iter().map(|service| service.version.clone()).collect::<Vec<_>>().join(",")
            };
            let groups = groups.into_iter().map(|(group, all)| format!("{group} {}", versions(all)));
            groups.collect::<Vec<_>>()
        };
        // `/apis` compares the names of the APIServices, which begin with the version.
        assert_eq!(
            names(by_priority(&services)),
            ["first.example.com v1", "b.example.com v2,v1", "a.example.com v1alpha1"]
        );
        assert_eq!(
            names(by_highest_priority(&services)),
            ["first.example.com v1", "a.example.com v1alpha1", "b.example.com v2,v1"]
        );
    }
}
