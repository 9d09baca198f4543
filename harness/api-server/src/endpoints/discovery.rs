//! The discovery documents of the served resources.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::discovery::api_services::{self, Group};
use crate::kinds::discovery::{Resource, Resources};

impl Resources {
    /// Returns the API groups with their versions, sorted by priority, without the core group.
    pub(crate) fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        after_own_group(api_services::by_priority(&self.api_services))
    }

    /// Returns the document of `/apis`: an `APIGroupList`.
    pub(crate) fn group_list(&self) -> Value {
        let groups: Vec<Value> =
            self.groups().into_iter().map(|(name, versions)| group_document(name, &versions)).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// Returns the document of `/apis/GROUP`: an `APIGroup`.
    pub(crate) fn group(&self, group: &str) -> Option<Value> {
        let found = self.groups().into_iter().find(|(name, _)| *name == group);
        // A group without an `APIService` is served, but not listed.
        let (name, versions) = found.or_else(|| {
            let mut versions: Vec<&str> = Vec::new();
            for resource in self.all().iter().filter(|resource| resource.gvr.group == group) {
                if !versions.contains(&resource.gvr.version.as_str()) {
                    versions.push(&resource.gvr.version);
                }
            }
            (!versions.is_empty()).then_some((group, versions))
        })?;
        let mut document = group_document(name, &versions);
        set(&mut document, &["kind"], "APIGroup");
        set(&mut document, &["apiVersion"], "v1");
        Some(document)
    }

    /// Returns the document of `/api/v1` or `/apis/GROUP/VERSION`: an `APIResourceList`.
    pub(crate) fn version(&self, group: &str, version: &str) -> Option<Value> {
        let mut resources = Vec::new();
        for resource in self.of_version(group, version) {
            let mut entry = json!({
                "name": resource.gvr.resource,
                "singularName": resource.singular,
                "namespaced": resource.namespaced,
                "kind": resource.kind.kind,
                "verbs": resource.shown_verbs(),
            });
            if let Some(hash) = self.storage_hash(resource) {
                set(&mut entry, &["storageVersionHash"], hash);
            }
            if !resource.short_names.is_empty() {
                set(&mut entry, &["shortNames"], json!(resource.short_names));
            }
            if !resource.categories.is_empty() {
                set(&mut entry, &["categories"], json!(resource.categories));
            }
            resources.push(entry);
            for subresource in &resource.subresources {
                let mut entry = json!({
                    "name": format!("{}/{}", resource.gvr.resource, subresource.name),
                    "singularName": "",
                    "namespaced": resource.namespaced,
                    "kind": subresource.kind.kind,
                    "verbs": subresource.verbs,
                });
                if subresource.kind.group != group || subresource.kind.version != version {
                    set(&mut entry, &["group"], &*subresource.kind.group);
                    set(&mut entry, &["version"], &*subresource.kind.version);
                }
                resources.push(entry);
            }
        }
        if resources.is_empty() {
            return None;
        }
        let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let mut list =
            json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
        // Upstream's document of the core group has no `apiVersion`.
        if !group.is_empty() {
            set(&mut list, &["apiVersion"], "v1");
        }
        Some(list)
    }

    /// Returns the aggregated discovery document of `/api`.
    pub(crate) fn aggregated_core(&self) -> Value {
        aggregated(&[self.aggregated_group("", &["v1"])])
    }

    /// Returns the aggregated discovery document of `/apis`.
    pub(crate) fn aggregated_groups(&self) -> Value {
        let groups = after_own_group(api_services::by_highest_priority(&self.api_services));
        let groups = groups.into_iter().map(|(name, versions)| self.aggregated_group(name, &versions));
        aggregated(&groups.collect::<Vec<_>>())
    }

    fn aggregated_group(&self, group: &str, versions: &[&str]) -> Value {
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                // admit does not query the Service, so the version is always stale.
                if self.is_remote(group, version) {
                    return json!({"version": version, "freshness": "Stale"});
                }
                let resources: Vec<Value> =
                    self.of_version(group, version).map(|resource| aggregated_resource(resource)).collect();
                json!({"version": version, "resources": resources, "freshness": "Current"})
            })
            .collect();
        let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
        json!({"metadata": metadata, "versions": versions})
    }
}

/// Returns the groups with the names of their versions. The group `apiregistration.k8s.io` comes first.
///
/// Source: kube-aggregator `pkg/apiserver/handler_apis.go`, which lists its own group first.
fn after_own_group(groups: Vec<Group<'_>>) -> Vec<(&str, Vec<&str>)> {
    let mut named = vec![(api_services::GROUP, vec!["v1"])];
    for (group, services) in groups {
        named.push((group, services.into_iter().map(|service| &*service.version).collect()));
    }
    named
}

fn group_document(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

fn aggregated(items: &[Value]) -> Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

/// Source: apiserver pkg/endpoints/discovery/aggregated, `ConvertGroupVersionIntoToDiscovery`.
fn aggregated_resource(resource: &Resource) -> Value {
    // Upstream does not repeat the group and the version of a built-in resource.
    let response_kind = |kind: &GroupVersionKind| {
        let is_same = (&kind.group, &kind.version) == (&resource.gvr.group, &resource.gvr.version);
        if resource.custom.is_none() && is_same {
            json!({"group": "", "version": "", "kind": kind.kind})
        } else {
            json!(kind)
        }
    };
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|subresource| {
            json!({
                "subresource": subresource.name,
                "responseKind": response_kind(&subresource.kind),
                "verbs": subresource.verbs,
            })
        })
        .collect();
    let mut entry = json!({
        "resource": resource.gvr.resource,
        "responseKind": response_kind(&resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.shown_verbs(),
    });
    for (field, values) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !values.is_empty() {
            set(&mut entry, &[field], json!(values));
        }
    }
    if !subresources.is_empty() {
        set(&mut entry, &["subresources"], json!(subresources));
    }
    entry
}
