//! What the server knows beside the request: namespaces, equivalent resources, versions of kinds.

use std::sync::Arc;

use serde_json::Value;

use crate::attributes::{GroupVersionKind, GroupVersionResource};
use crate::status::Unsupported;

/// What the server knows beside the request. All of it is in memory: nothing here does I/O.
pub trait ClusterState: Send + Sync {
    /// A stored Namespace; none if it does not exist.
    fn namespace(&self, name: &str) -> Option<Arc<Value>>;

    /// The resources that lead to the same stored objects as `resource`, itself included, in the order in
    /// which their versions were installed, and the kind that each has for `subresource`.
    ///
    /// Source: apimachinery pkg/runtime/mapper.go, `EquivalentResourceRegistry`.
    fn equivalent_resources(
        &self,
        resource: &GroupVersionResource,
        subresource: &str,
    ) -> Vec<EquivalentResource>;

    /// `object` in the version of `kind`, with `apiVersion` and `kind` set.
    ///
    /// # Errors
    /// [`ConversionError`] when the server cannot convert it, or admit cannot.
    fn convert(&self, object: &Value, kind: &GroupVersionKind) -> Result<Value, ConversionError>;

    /// Fills in what the scheme's or the custom resource's defaults say, in the version that `object` is in.
    fn set_defaults(&self, object: &mut Value);

    /// Whether `kind` is a type of the server, rather than a custom resource: only for those an absent and an
    /// empty map or list are the same.
    fn is_built_in(&self, kind: &GroupVersionKind) -> bool;
}

/// A resource that leads to the same stored objects as another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EquivalentResource {
    /// The resource.
    pub resource: GroupVersionResource,
    /// The kind of its objects; none if the subresource has none there.
    pub kind: Option<GroupVersionKind>,
}

/// Why an object cannot be had in another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// What kube-apiserver's converter says.
    #[error("{0}")]
    Refused(String),
    /// kube-apiserver can and admit cannot.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}
