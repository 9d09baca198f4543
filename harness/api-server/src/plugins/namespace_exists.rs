//! `NamespaceExists`: rejects writes in missing namespaces.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::status::Status;

use crate::storage::ObjectReader;

/// Rejects writes in a namespace that does not exist.
///
/// Source: kubernetes plugin/pkg/admission/namespace/exists/admission.go.
pub(crate) struct NamespaceExists {
    objects: Arc<dyn ObjectReader>,
}

impl NamespaceExists {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }
}

impl Plugin for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let name = &attributes.namespace;
        let is_namespace = attributes.kind.group.is_empty() && attributes.kind.kind == "Namespace";
        let concerns = !name.is_empty() && !is_namespace && attributes.operation != Operation::Connect;
        if concerns && self.objects.get("", "namespaces", "", name).is_none() {
            return Err(Box::new(Status::not_found("", "namespaces", name)));
        }
        Ok(())
    }
}
