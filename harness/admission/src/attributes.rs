//! One API request as admission sees it.

use std::collections::BTreeMap;
use std::fmt;

pub use kubernetes_types::group_version::{GroupVersionKind, GroupVersionResource};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
