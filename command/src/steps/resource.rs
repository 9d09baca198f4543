//! Finds the resource of a kind, or of a word such as `configmap`, and its path.

use harness::verify::similar_name::most_similar;
use http::{Method, StatusCode};
use serde_json::Value;

use super::api;
use super::failure::{Outcome, StepFailure};
use crate::admission_kinds::no_matches;

/// A resource that the server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// The API version: `v1`, or a group and version such as `apps/v1`.
    pub(crate) api_version: String,
    /// The kind, such as `ConfigMap`.
    pub(crate) kind: String,
    /// The plural name, such as `configmaps`.
    pub(crate) plural: String,
    /// The singular name, such as `configmap`.
    pub(crate) singular: String,
    /// Whether objects of the resource are namespaced or cluster-scoped.
    pub(crate) scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Each object is in a namespace.
    Namespaced,
    /// Objects are not in a namespace.
    Cluster,
}

impl Resource {
    /// Returns the path of the collection, in `namespace` if the resource is namespaced.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let root = root(&self.api_version);
        match self.scope {
            Scope::Namespaced => format!("{root}/namespaces/{namespace}/{}", self.plural),
            Scope::Cluster => format!("{root}/{}", self.plural),
        }
    }

    /// Returns the path of an object.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }

    /// Returns whether a word names this resource, such as `configmap`, `configmaps`, or `ConfigMap`.
    pub(crate) fn is_called(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        [&self.plural, &self.singular, &self.kind.to_lowercase()].contains(&&word)
    }
}

/// Finds the resource that serves `kind` in `api_version`.
///
/// # Errors
/// Returns an error if the server does not serve the kind.
pub(crate) async fn for_kind(client: &kube::Client, api_version: &str, kind: &str) -> Outcome<Resource> {
    let no_matches = |meant: Option<&str>| StepFailure::new(no_matches(kind, api_version, meant));
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let answer = api::send(client, Method::GET, &root(api_version), None).await?;
    if answer.code == StatusCode::NOT_FOUND && !group.is_empty() {
        let group = api::send(client, Method::GET, &format!("/apis/{group}"), None).await?.body;
        let preferred = group.pointer("/preferredVersion/groupVersion");
        return Err(no_matches(preferred.and_then(Value::as_str)));
    }
    let served = served(client, api_version).await?;
    if let Some(resource) = served.iter().find(|resource| resource.kind == kind) {
        return Ok(resource.clone());
    }
    // The group is often wrong, as in `apiVersion: v1` of a Deployment or `apiVersion: apps/v1` of a Pod.
    let core = (!group.is_empty()).then(|| "v1".to_owned());
    for version in core.into_iter().chain(preferred_versions(client).await?) {
        let Ok(others) = self::served(client, &version).await else { continue };
        if others.iter().any(|other| other.kind == kind) {
            return Err(no_matches(Some(&version)));
        }
    }
    Err(no_matches(most_similar(kind, served.iter().map(|it| it.kind.as_str()))))
}

/// Finds the resource that `word` names: first in core/v1, then in the preferred version of every other group.
///
/// # Errors
/// Returns an error if the server does not serve a resource with this name.
pub(crate) async fn named(client: &kube::Client, word: &str) -> Outcome<Resource> {
    let mut versions = vec!["v1".to_owned()];
    versions.extend(preferred_versions(client).await?);
    for version in versions {
        // Another scenario may have removed the group together with its definition.
        let Ok(served) = served(client, &version).await else { continue };
        if let Some(resource) = served.into_iter().find(|resource| resource.is_called(word)) {
            return Ok(resource);
        }
    }
    Err(StepFailure::new(format!("the server does not serve `{word}`")))
}

/// Returns the preferred version of each group, such as `apps/v1`.
async fn preferred_versions(client: &kube::Client) -> Outcome<Vec<String>> {
    let groups = api::send(client, Method::GET, "/apis", None).await?.successful()?.body;
    let groups = groups.get("groups").and_then(Value::as_array).cloned().unwrap_or_default();
    let preferred =
        groups.iter().filter_map(|group| group.pointer("/preferredVersion/groupVersion")?.as_str());
    Ok(preferred.map(str::to_owned).collect())
}

/// Returns the path prefix of an API version.
pub(crate) fn root(api_version: &str) -> String {
    if api_version.contains('/') { format!("/apis/{api_version}") } else { format!("/api/{api_version}") }
}

async fn served(client: &kube::Client, api_version: &str) -> Outcome<Vec<Resource>> {
    let list = api::send(client, Method::GET, &root(api_version), None)
        .await?
        .successful()
        .map_err(|failure| failure.during(format!("the server does not serve {api_version}")))?;
    let list = list.body.get("resources").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(list.iter().filter_map(|entry| described(api_version, entry)).collect())
}

/// Parses a resource in a discovery document; returns `None` for a subresource.
fn described(api_version: &str, entry: &Value) -> Option<Resource> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let plural = text("name");
    let namespaced = entry.get("namespaced").and_then(Value::as_bool).unwrap_or_default();
    (!plural.contains('/')).then(|| Resource {
        api_version: api_version.to_owned(),
        kind: text("kind"),
        plural,
        singular: text("singularName"),
        scope: if namespaced { Scope::Namespaced } else { Scope::Cluster },
    })
}
