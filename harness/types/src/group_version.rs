//! Identifies resources in paths, and kinds in objects.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A resource in a request path: `apps/v1 deployments`. It is serialized as in `request.resource`.
///
/// Rule: REQ-05.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version, such as `v1`.
    pub version: String,
    /// The plural, lowercase name, such as `pods`.
    pub resource: String,
}

impl GroupVersionResource {
    /// Creates a resource from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// Returns the name for error messages: `pods` or `deployments.apps`.
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

/// Formats the resource as `apps/v1, Resource=deployments`.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionResource.String`.
impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

/// The kind of an object: `apps/v1, Kind=Deployment`. It is serialized as in `request.kind`.
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
    /// Creates a kind from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Returns the `apiVersion` of an object of this kind: `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Reads the kind of `object` from its `apiVersion` and `kind`; missing parts are empty.
    pub fn from_object(object: &Value) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, text("kind"))
    }

    /// Returns whether `object` is of this kind, as determined by [`Self::from_object`].
    pub fn is_of(&self, object: &Value) -> bool {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let claimed = api_version.split_once('/').unwrap_or(("", api_version));
        claimed == (&*self.group, &*self.version) && text("kind") == self.kind
    }
}

/// Formats the kind as `apps/v1, Kind=Deployment`, or `/v1, Kind=Pod` for the core group.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionKind.String`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
