//! Loads the built-in resources of kube-apiserver.

use std::sync::{Arc, LazyLock};

use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource};
use serde::Deserialize;

use crate::kinds::discovery::{Resource, Subresource};

/// The built-in resources of kube-apiserver, as recorded by `tools/discovery.sh`.
///
/// Rule: CFG-01, CFG-02, SEL-13.
const BUILT_IN: &str = include_str!("../discovery.json");

#[derive(Deserialize)]
struct GroupEntry {
    group: String,
    versions: Vec<VersionEntry>,
}

#[derive(Deserialize)]
struct VersionEntry {
    version: String,
    resources: Vec<ResourceEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceEntry {
    resource: String,
    response_kind: GroupVersionKind,
    scope: String,
    singular_resource: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<SubresourceEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceEntry {
    subresource: String,
    response_kind: GroupVersionKind,
    verbs: Vec<String>,
}

pub(crate) static BUILT_IN_RESOURCES: LazyLock<Vec<Arc<Resource>>> = LazyLock::new(|| {
    let groups: Vec<GroupEntry> = match serde_json::from_str(BUILT_IN) {
        Ok(groups) => groups,
        Err(error) => unreachable!("discovery.json is part of the program: {error}"),
    };
    groups.into_iter().flat_map(of_group).map(Arc::new).collect()
});

fn of_group(group: GroupEntry) -> Vec<Resource> {
    let mut resources = Vec::new();
    for version in group.versions {
        // The documents omit a group and version that equal those of the resource.
        let full = |kind: GroupVersionKind| {
            if kind.group.is_empty() && kind.version.is_empty() {
                GroupVersionKind::new(group.group.clone(), version.version.clone(), kind.kind)
            } else {
                kind
            }
        };
        for entry in version.resources {
            let subresources = entry.subresources.into_iter().map(|subresource| Subresource {
                name: subresource.subresource,
                kind: full(subresource.response_kind),
                verbs: subresource.verbs,
            });
            resources.push(Resource {
                gvr: GroupVersionResource::new(group.group.clone(), version.version.clone(), entry.resource),
                list_kind: format!("{}List", entry.response_kind.kind),
                subresources: subresources.collect(),
                kind: full(entry.response_kind),
                namespaced: entry.scope == "Namespaced",
                singular: entry.singular_resource,
                short_names: entry.short_names,
                categories: entry.categories,
                verbs: entry.verbs,
                custom: None,
            });
        }
    }
    resources
}
