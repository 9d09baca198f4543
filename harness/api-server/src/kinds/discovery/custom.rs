//! Describes custom resources.

use std::sync::Arc;

use kubernetes_types::status::Unsupported;
use kubernetes_types::structural::Compiled;

use crate::kinds::common::custom_columns::CustomColumns;
use crate::kinds::conversion::Strategy;

pub(crate) const GROUP: &str = "apiextensions.k8s.io";

pub(crate) const RESOURCE: &str = "customresourcedefinitions";

/// The attributes that only custom resources have.
#[derive(Clone, Debug)]
pub(crate) struct CustomResourceInfo {
    /// The version in which objects are stored.
    pub(crate) storage_version: String,
    /// Whether this version is served.
    pub(crate) served: bool,
    /// The conversion strategy in `spec.conversion.strategy`.
    pub(crate) conversion: Strategy,
    /// The paths in `subresources.scale`; `None` if the version does not have a scale subresource.
    pub(crate) scale: Option<ScalePaths>,
    /// The compiled `schema.openAPIV3Schema`; an error if admit does not support a construct in it.
    pub(crate) schema: Result<Arc<Compiled>, Unsupported>,
    /// The resource version of the definition that introduced this schema.
    ///
    /// The server wrote older objects with a different schema.
    pub(crate) schema_since: u64,
    /// The resource version of the definition that introduced its present `spec` and accepted names.
    ///
    /// The server ends older watches.
    pub(crate) served_since: u64,
    /// The selectable fields in addition to the name and the namespace, such as `spec.size`.
    pub(crate) selectable: Vec<String>,
    /// The warning for each request to this version; `None` if the version is not deprecated.
    pub(crate) deprecation: Option<String>,
    /// The lifecycle stage of the definition.
    pub(crate) stage: DefinitionStage,
    /// The `storageVersionHash` in discovery.
    pub(crate) storage_hash: String,
    /// The columns of Tables; an error if admit does not support a construct in their definition.
    pub(crate) columns: Result<Arc<CustomColumns>, Unsupported>,
    /// The columns of Tables for the scale subresource.
    pub(crate) scale_columns: Result<Arc<CustomColumns>, Unsupported>,
}

/// The lifecycle stage of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionStage {
    /// The definition was never established because its `caBundle` is invalid.
    Unusable,
    /// The server serves the objects of the definition.
    Established,
    /// The definition is being deleted. The server rejects new objects.
    Terminating,
    /// The objects of the definition are being deleted. Discovery does not list mutating verbs.
    Emptied,
}

impl CustomResourceInfo {
    /// Returns the compiled schema.
    ///
    /// # Errors
    /// Returns an error if admit does not support a construct in the schema.
    pub(crate) fn schema(&self) -> Result<&Compiled, Unsupported> {
        self.schema.as_deref().map_err(Clone::clone)
    }
}

/// The JSON pointers to the fields of a custom resource that its `Scale` contains.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) label_selector: Option<String>,
}
