//! `PersistentVolumeClaimResize`: limits the volume claims that can be expanded.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::{at, text};
use kubernetes_types::quantity;
use kubernetes_types::status::Status;
use serde_json::Value;

use super::forbidden;
use crate::storage::ObjectReader;

/// Rejects the expansion of a claim unless it is bound and its class allows expansion.
///
/// Source: kubernetes plugin/pkg/admission/storage/persistentvolume/resize/admission.go.
pub(crate) struct PersistentVolumeClaimResize {
    objects: Arc<dyn ObjectReader>,
}

impl PersistentVolumeClaimResize {
    /// Creates the plugin with a reader for the objects of the server.
    pub(crate) fn new(objects: Arc<dyn ObjectReader>) -> Self {
        Self { objects }
    }

    fn may_grow(&self, claim: &Value, old: &Value) -> bool {
        /// Returns the name of the storage class of a claim.
        ///
        /// Source: kubernetes pkg/apis/core/helper/helpers.go, `GetPersistentVolumeClaimClass`.
        fn class(claim: &Value) -> &str {
            let annotations = at(claim, &["metadata", "annotations"]);
            let annotation =
                annotations.get("volume.beta.kubernetes.io/storage-class").and_then(Value::as_str);
            annotation.unwrap_or_else(|| text(claim, &["spec", "storageClassName"]))
        }
        let name = class(claim);
        let found = self.objects.get("storage.k8s.io", "storageclasses", "", name);
        !name.is_empty()
            && name == class(old)
            && found.is_some_and(|class| at(&class, &["allowVolumeExpansion"]) == true)
    }
}

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let is_claim = attributes.subresource.is_empty()
            && attributes.resource.group_resource() == "persistentvolumeclaims"
            && attributes.operation == Operation::Update;
        let (true, Some(claim), Some(old)) = (is_claim, &attributes.object, &attributes.old_object) else {
            return Ok(());
        };
        let size =
            |claim: &Value| quantity::from_value(at(claim, &["spec", "resources", "requests", "storage"]));
        // A claim without a size requests no storage.
        if size(claim) <= size(old) {
            return Ok(());
        }
        // Validation, which comes first, also rejects this.
        if text(old, &["status", "phase"]) != "Bound" {
            return Err(forbidden(attributes, "Only bound persistent volume claims can be expanded"));
        }
        if self.may_grow(claim, old) {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        Err(forbidden(attributes, why))
    }
}
