//! Implements `VolumeAttributesClass` objects.

use kubernetes_types::{json, names};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, map, text};
use crate::kinds::kind::Kind;
use crate::kinds::storage::storage_class;

/// The behavior of `VolumeAttributesClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattributesclasses",
    kind: "VolumeAttributesClass",
    returns_deleted_object: true,
    validate,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Validates a `VolumeAttributesClass`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateVolumeAttributesClass` and
/// `ValidateVolumeAttributesClassUpdate`.
/// Rule: VLO-42.
pub(crate) fn validate(errors: &mut Errors, class: &Value, change: Option<Change<'_>>) {
    if let Some(change) = change {
        for field in ["driverName", "parameters"] {
            if !change.is_same(&[field]) {
                errors.forbidden(&Path::new(field), format!("updates to {field} are forbidden."));
            }
        }
    }
    let (path, driver) = (Path::new("driverName"), text(class, "driverName").to_lowercase());
    if driver.is_empty() {
        errors.required(&path, "");
    } else {
        errors.all_invalid(&path, &driver, names::label_key(&driver));
    }
    let parameters = Path::new("parameters");
    storage_class::parameters(errors, &parameters, class);
    if map(class, "parameters").is_none_or(serde_json::Map::is_empty) {
        errors.required(&parameters, "must contain at least one key/value pair");
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), json::text(object, &["driverName"]), age_of(object, context)]
}
