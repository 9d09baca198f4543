//! One API request as admission sees it.

use std::collections::BTreeMap;
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
}

/// `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` for the core group.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionKind.String`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// What the request does: the `operation` of an `AdmissionReview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(clippy::exhaustive_enums, reason = "the API has these four")]
pub enum Operation {
    /// An object comes to be.
    Create,
    /// An object changes.
    Update,
    /// An object goes.
    Delete,
    /// A connection is opened, as by `pods/exec`.
    Connect,
}

impl Operation {
    /// The word on the wire: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who makes the request: `request.userInfo`. Empty members are left out on the wire.
///
/// Rule: REQ-07.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInfo {
    /// The user's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The user's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The user's groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else the authenticator knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// One API request as admission sees it.
///
/// `object` is in the version of `kind`, and is the one part that mutating admission changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes {
    /// What the request does.
    pub operation: Operation,
    /// The resource that the path names.
    pub resource: GroupVersionResource,
    /// The subresource that the path names, such as `status`; empty for the main resource.
    pub subresource: String,
    /// The kind of `object` (of `old_object` for a DELETE; of the options for a CONNECT).
    pub kind: GroupVersionKind,
    /// The namespace; empty for a cluster-scoped object. A Namespace object has its own name here.
    pub namespace: String,
    /// The name; empty for a CREATE with `generateName` before the name is made, and in a delete collection.
    pub name: String,
    /// The new object; none for a DELETE.
    pub object: Option<Value>,
    /// The stored object; none for a CREATE and a CONNECT.
    pub old_object: Option<Value>,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions` with their `apiVersion` and `kind`; none for a CONNECT.
    pub options: Option<Value>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// Who makes the request.
    pub user: UserInfo,
}
