//! How paths name resources, and how objects name their kinds.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A resource as a path names it: `apps/v1 deployments`. Serialises as in `request.resource`.
///
/// Rule: REQ-05.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version, such as `v1`.
    pub version: String,
    /// The plural, lower-case name, such as `pods`.
    pub resource: String,
}

impl GroupVersionResource {
    /// A resource from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// `pods` or `deployments.apps`: how error messages name a resource.
    ///
    /// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupResource.String`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// `apps/v1, Resource=deployments`.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionResource.String`.
impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

/// A kind as an object names it: `apps/v1, Kind=Deployment`. Serialises as in `request.kind`.
///
/// Rule: REQ-05.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

impl GroupVersionKind {
    /// A kind from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// The `apiVersion` of an object of this kind: `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind that `object` claims in `apiVersion` and `kind`; empty parts where they are missing.
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, text("kind"))
    }

    /// Whether this is the kind that `object` claims, as [`Self::of`] reads it.
    pub fn is_of(&self, object: &Value) -> bool {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let claimed = api_version.split_once('/').unwrap_or(("", api_version));
        claimed == (&*self.group, &*self.version) && text("kind") == self.kind
    }
}

/// `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` for the core group.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionKind.String`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
