//! Describes the resources that the server serves.

pub(crate) mod api_services;
pub(crate) mod built_in;
pub(crate) mod custom;
pub(crate) mod storage_hash;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use kubernetes_admission::attributes::{GroupVersionKind, GroupVersionResource};
use kubernetes_admission::cluster_state::EquivalentResource;

use crate::kinds::discovery::api_services::ApiService;
use crate::kinds::discovery::built_in::BUILT_IN_RESOURCES;
use crate::kinds::discovery::custom::{CustomResourceInfo, DefinitionStage};
use crate::storage::Key;

/// A resource in one of its versions.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) gvr: GroupVersionResource,
    pub(crate) kind: GroupVersionKind,
    pub(crate) list_kind: String,
    pub(crate) namespaced: bool,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) subresources: Vec<Subresource>,
    /// The attributes that only custom resources have; `None` for a built-in resource.
    pub(crate) custom: Option<CustomResourceInfo>,
}

/// One subresource of a [`Resource`].
#[derive(Clone, Debug)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) kind: GroupVersionKind,
    pub(crate) verbs: Vec<String>,
}

impl Resource {
    /// Returns the kind if it has a Go type; `None` for a custom resource.
    pub(crate) fn built_in_kind(&self) -> Option<&GroupVersionKind> {
        self.custom.is_none().then_some(&self.kind)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Returns the warning for requests to a deprecated resource; `None` if the resource is not deprecated.
    ///
    /// Source: apiserver pkg/endpoints/deprecation/deprecation.go, `WarningMessage`; `APILifecycleDeprecated` and
    /// `APILifecycleReplacement` in api core/v1.
    /// Rule: KND-07, SCH-15.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        if let Some(custom) = &self.custom {
            return custom.deprecation.as_deref();
        }
        match self.gvr.group_resource().as_str() {
            "endpoints" => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            }
            "componentstatuses" => Some("v1 ComponentStatus is deprecated in v1.19+"),
            _ => None,
        }
    }

    /// Returns whether the resource is established, so that discovery lists it and clients can read its objects.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/customresource_discovery_controller.go`, `sync`.
    /// Rule: SCH-17.
    pub(crate) fn is_established(&self) -> bool {
        self.custom.as_ref().is_none_or(|custom| custom.stage != DefinitionStage::Unusable)
    }

    pub(crate) fn shown_verbs(&self) -> Vec<&str> {
        let is_emptied = self.custom.as_ref().is_some_and(|custom| custom.stage == DefinitionStage::Emptied);
        let hidden: &[&str] = if is_emptied { &["patch", "create", "update"] } else { &[] };
        self.verbs.iter().map(String::as_str).filter(|verb| !hidden.contains(verb)).collect()
    }

    /// Returns the group under which objects are stored. Events of both groups are stored under the core group.
    pub(crate) fn storage_group(&self) -> &str {
        storage_group(&self.gvr.group, &self.gvr.resource)
    }

    /// Returns the key of an object; `namespace` is empty for a cluster-scoped resource.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> Key {
        Key {
            group: self.storage_group().to_owned(),
            resource: self.gvr.resource.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

fn storage_group<'a>(group: &'a str, resource: &str) -> &'a str {
    if group == "events.k8s.io" && resource == "events" { "" } else { group }
}

/// A snapshot of all resources that the server serves.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    /// All resources in installation order.
    all: Vec<Arc<Resource>>,
    registered: Vec<Arc<Resource>>,
    by_path: HashMap<GroupVersionResource, Arc<Resource>>,
    /// The first resource of each kind.
    by_kind: HashMap<GroupVersionKind, Arc<Resource>>,
    pub(crate) api_services: Vec<ApiService>,
    /// A cache of the results of [`Self::equivalent_resources`] for served resources.
    equivalents: RwLock<HashMap<GroupVersionResource, Vec<Equivalents>>>,
}

/// The equivalent resources for one subresource.
#[derive(Debug)]
struct Equivalents {
    subresource: String,
    resources: Arc<[EquivalentResource]>,
}

impl Resources {
    /// Creates a snapshot of the built-in resources.
    pub(crate) fn built_in() -> Self {
        Self::new([], api_services::built_in())
    }

    /// Creates a snapshot of the built-in resources and the `custom` resources, with the groups in `api_services`.
    pub(crate) fn new(
        custom: impl IntoIterator<Item = Arc<Resource>>,
        api_services: Vec<ApiService>,
    ) -> Self {
        let mut all = BUILT_IN_RESOURCES.clone();
        let mut registered = all.clone();
        // The API of a built-in group and version never includes a custom resource.
        // Source: kube-aggregator: these requests do not reach the handler of custom resources.
        let is_built_in = |resource: &Arc<Resource>| {
            BUILT_IN_RESOURCES.iter().any(|built_in| {
                (&built_in.gvr.group, &built_in.gvr.version) == (&resource.gvr.group, &resource.gvr.version)
            })
        };
        for resource in custom.into_iter().filter(|resource| !is_built_in(resource)) {
            if resource.custom.as_ref().is_none_or(|custom| custom.served) {
                all.push(Arc::clone(&resource));
            }
            registered.push(resource);
        }
        let by_path = all.iter().map(|resource| (resource.gvr.clone(), Arc::clone(resource))).collect();
        let mut by_kind = HashMap::new();
        for resource in &registered {
            by_kind.entry(resource.kind.clone()).or_insert_with(|| Arc::clone(resource));
        }
        Self { all, registered, by_path, by_kind, api_services, equivalents: RwLock::default() }
    }

    pub(crate) fn get(&self, gvr: &GroupVersionResource) -> Option<&Arc<Resource>> {
        self.by_path.get(gvr)
    }

    /// Returns the first API version that serves a kind with this name.
    pub(crate) fn version_of_kind(&self, kind: &str) -> Option<String> {
        self.all
            .iter()
            .find(|resource| resource.kind.kind == kind)
            .map(|resource| resource.kind.api_version())
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.all.iter().any(|resource| resource.gvr.group == group)
    }

    pub(crate) fn is_custom_group(&self, group: &str) -> bool {
        self.all
            .iter()
            .filter(|resource| resource.gvr.group == group)
            .all(|resource| resource.custom.is_some())
    }

    /// Returns the resources that share stored objects with `gvr`, in installation order.
    ///
    /// The result includes versions of custom resources that are not served.
    ///
    /// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `getOrCreateServingInfoFor`.
    /// Rule: SEL-12, SEL-14.
    pub(crate) fn equivalent<'a>(
        &'a self,
        gvr: &'a GroupVersionResource,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        let place = storage_group(&gvr.group, &gvr.resource);
        let same = move |other: &&Arc<Resource>| {
            other.gvr.resource == gvr.resource && other.storage_group() == place
        };
        self.registered.iter().filter(same)
    }

    /// Returns the resources that share stored objects with `gvr`, each with its kind for `subresource`.
    ///
    /// Caches the result.
    pub(crate) fn equivalent_resources(
        &self,
        gvr: &GroupVersionResource,
        subresource: &str,
    ) -> Arc<[EquivalentResource]> {
        let is_same = |known: &&Equivalents| known.subresource == subresource;
        let known = self.equivalents.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(gvr).and_then(|known| known.iter().find(is_same)) {
            return Arc::clone(&known.resources);
        }
        drop(known);
        // A version without the subresource is not equivalent.
        let found = self.equivalent(gvr).filter_map(|equivalent| {
            let kind = match subresource {
                "" => &equivalent.kind,
                subresource => &equivalent.subresource(subresource)?.kind,
            };
            let (resource, kind) = (Arc::new(equivalent.gvr.clone()), Some(Arc::new(kind.clone())));
            Some(EquivalentResource { resource, kind })
        });
        let found: Arc<[EquivalentResource]> = found.collect();
        // Names made up by clients are not cached.
        if !found.is_empty() && self.by_path.contains_key(gvr) {
            let mut known = self.equivalents.write().unwrap_or_else(PoisonError::into_inner);
            let known = known.entry(gvr.clone()).or_default();
            if !known.iter().any(|known| known.subresource == subresource) {
                known
                    .push(Equivalents { subresource: subresource.to_owned(), resources: Arc::clone(&found) });
            }
        }
        found
    }

    /// Returns the kind in which the objects of `resource` are stored.
    pub(crate) fn storage_kind(&self, resource: &Resource) -> GroupVersionKind {
        if let Some(custom) = &resource.custom {
            return GroupVersionKind { version: custom.storage_version.clone(), ..resource.kind.clone() };
        }
        let first = self.equivalent(&resource.gvr).next().map(|first| first.kind.clone());
        first.unwrap_or_else(|| resource.kind.clone())
    }

    /// Returns the first resource whose objects are of `kind`.
    pub(crate) fn of_kind(&self, kind: &GroupVersionKind) -> Option<&Arc<Resource>> {
        self.by_kind.get(kind)
    }

    /// Returns whether the OpenAPI document of a kind's group and version declares the kind.
    ///
    /// The document declares the kinds of the objects that requests to its resources contain.
    pub(crate) fn documents(&self, kind: &GroupVersionKind) -> bool {
        // The options of a CONNECT are in the query.
        let is_query = kind.kind.ends_with("Options");
        let has_kind = |resource: &Arc<Resource>| {
            resource.kind == *kind
                || !is_query && resource.subresources.iter().any(|subresource| subresource.kind == *kind)
        };
        self.all.iter().any(|resource| {
            (&resource.gvr.group, &resource.gvr.version) == (&kind.group, &kind.version) && has_kind(resource)
        })
    }

    pub(crate) fn all(&self) -> &[Arc<Resource>] {
        &self.all
    }

    /// Returns whether a Service serves a group and version.
    pub(crate) fn is_remote(&self, group: &str, version: &str) -> bool {
        self.api_services
            .iter()
            .any(|service| service.is_remote && service.group == group && service.version == version)
    }

    /// Returns whether a Service serves any group.
    pub(crate) fn has_remote_groups(&self) -> bool {
        self.api_services.iter().any(|service| service.is_remote)
    }

    /// Returns whether `/apis` lists a group.
    pub(crate) fn lists_group(&self, group: &str) -> bool {
        group == api_services::GROUP
            || (!group.is_empty() && self.api_services.iter().any(|service| service.group == group))
    }

    /// Returns the resources that discovery lists for a group and version.
    pub(crate) fn of_version(&self, group: &str, version: &str) -> impl Iterator<Item = &Arc<Resource>> {
        self.all.iter().filter(move |resource| {
            resource.gvr.group == group && resource.gvr.version == version && resource.is_established()
        })
    }

    /// Returns whether discovery lists any resource for a group and version.
    pub(crate) fn has_version(&self, group: &str, version: &str) -> bool {
        self.of_version(group, version).next().is_some()
    }
}

/// Compares versions by preference: `v2`, `v1`, `v2beta1`, `v1alpha1`, then all others in alphabetical order.
///
/// Source: apimachinery pkg/version/helpers.go, `CompareKubeAwareVersionStrings`.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    match (maturity(one), maturity(other)) {
        (None, None) => other.cmp(one),
        (one, other) => one.cmp(&other),
    }
}

/// Returns whether `version` is preferred to `than`.
pub(crate) fn is_newer(version: &str, than: &str) -> bool {
    compare(version, than) == Ordering::Greater
}

/// Returns the stability level, major number, and minor number of a version; `None` for any other format.
fn maturity(version: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| -> Option<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { text.parse().ok() } else { None }
    };
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let (stage, minor) = match (rest, rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        ("", _, _) => (3, 0),
        (_, Some(minor), _) => (2, number(minor)?),
        (_, _, Some(minor)) => (1, number(minor)?),
        _ => return None,
    };
    Some((stage, number(major)?, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_newer_versions_come_first() {
        let sorted =
            ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1beta1", "v1alpha2", "foo", "foo2", "v1beta", "vx"];
        for pair in sorted.windows(2) {
            assert!(is_newer(pair[0], pair[1]) && !is_newer(pair[1], pair[0]), "{pair:?}");
        }
    }
}
