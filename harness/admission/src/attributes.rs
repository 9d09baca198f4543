//! Defines the API request that the admission chain processes.

use std::collections::BTreeMap;
use std::fmt;

pub use kubernetes_types::group_version::{GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The operation of a request: `request.operation` of an `AdmissionReview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(clippy::exhaustive_enums, reason = "the API has these four")]
pub enum Operation {
    /// Creates an object.
    Create,
    /// Changes an object.
    Update,
    /// Deletes an object.
    Delete,
    /// Opens a connection, such as `pods/exec`.
    Connect,
}

impl Operation {
    /// Returns the value on the wire: `CREATE`, `UPDATE`, `DELETE`, or `CONNECT`.
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

/// The user who makes the request: `request.userInfo`. Empty fields are omitted on the wire.
///
/// Rule: REQ-07.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInfo {
    /// The user's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The user's UID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The user's groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Additional information from the authenticator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An API request in the admission chain.
///
/// `object` is in the version of `kind`. It is the only field that mutating admission changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes {
    /// The operation that the user requests.
    pub operation: Operation,
    /// The resource in the request path.
    pub resource: GroupVersionResource,
    /// The subresource in the request path, such as `status`; empty for the main resource.
    pub subresource: String,
    /// The kind of `object`; for a DELETE, the kind of `old_object`; for a CONNECT, the kind of the options.
    pub kind: GroupVersionKind,
    /// The namespace; empty for a cluster-scoped object. For a Namespace, this is its own name.
    pub namespace: String,
    /// The name; empty for a delete collection, and for a CREATE with `generateName` until the name is generated.
    pub name: String,
    /// The new object; `None` for a DELETE.
    pub object: Option<Value>,
    /// The stored object; `None` for a CREATE or a CONNECT.
    pub old_object: Option<Value>,
    /// `CreateOptions`, `UpdateOptions`, or `DeleteOptions` with their `apiVersion` and `kind`; `None` for a CONNECT.
    pub options: Option<Value>,
    /// Whether the request is a dry run. A dry run does not store anything.
    pub dry_run: bool,
    /// The user who makes the request.
    pub user: UserInfo,
}
