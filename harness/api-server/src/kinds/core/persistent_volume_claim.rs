//! Implements `PersistentVolumeClaim` objects.

use crate::kinds::common::fields::{Path, get};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use serde_json::Value;
use serde_json::json;

/// The behavior of `PersistentVolumeClaim` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "persistentvolumeclaims",
    kind: "PersistentVolumeClaim",
    set_defaults: Some(crate::kinds::defaulting::core::persistent_volume_claim),
    returns_deleted_object: true,
    prepare_create: prepare_create,
    prepare_update: |object, old| crate::kinds::strategy::claim::normalize_data_sources(object, Some(old)),
    lacks_late_default: |_| true,
    drop_disabled_fields: |object| {
        crate::kinds::strategy::disabled_fields::drop_all(object.get_mut("status"), &[&["healthStatus"]])
    },
    validate: crate::kinds::validation::storage::claim,
    validate_subresources: &[("status", crate::kinds::validation::storage::claim_status)],
    warn: warn,
    cells: Some(crate::kinds::tables::storage::claim),
    ..Kind::PLAIN
};

fn prepare_create(object: &mut Value) {
    crate::kinds::strategy::claim::normalize_data_sources(object, None);
    // The phase is a default that is set when the claim is read from the storage.
    crate::kinds::strategy::create::set_status(object, json!({}));
}

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    let class = "volume.beta.kubernetes.io/storage-class";
    if crate::kinds::common::warnings::has_annotation(object, class) {
        let message = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        warnings.push(format!("metadata.annotations[{class}]: {message}"));
    }
    crate::kinds::validation::warnings::storage::claim_spec(
        warnings,
        &Path::new("spec"),
        get(object, "spec"),
    );
}
