//! Implements `CSINode` objects.

use std::collections::HashSet;

use kubernetes_types::names;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, items, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, text, texts};
use crate::kinds::common::{disabled_fields, formats};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `CSINode` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csinodes",
    kind: "CSINode",
    returns_deleted_object: true,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    drop_disabled_fields: |object| disabled_fields::drop_all(object.get_mut("status"), &[&["storageHealth"]]),
    validate,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Validates a `CSINode`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateCSINode` and `ValidateCSINodeUpdate`.
/// Rule: VLO-42.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const CSI_NODE_ID_MAX_LENGTH: usize = 256;
    let path = Path::new("spec");
    let path = path.child("drivers");
    let drivers = list(get(object, "spec"), "drivers");
    let mut seen = HashSet::new();
    for (index, driver) in drivers.iter().enumerate() {
        let path = path.index(index);
        let name = text(driver, "name");
        formats::driver_name(errors, &path.child("name"), name);
        let (id_path, id) = (path.child("nodeID"), text(driver, "nodeID"));
        if id.is_empty() {
            errors.required(&id_path, "");
        }
        if id.len() > CSI_NODE_ID_MAX_LENGTH {
            errors.invalid_text(&id_path, id, format!("must be {CSI_NODE_ID_MAX_LENGTH} characters or less"));
        }
        let count = int(get(driver, "allocatable"), "count");
        errors.not_negative(&path.child("allocatable").child("count"), count);
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        let mut keys = HashSet::new();
        for key in texts(driver, "topologyKeys") {
            if key.is_empty() {
                errors.required(&path, "");
            }
            if !keys.insert(key) {
                errors.duplicate(&path, key);
            }
            errors.all_invalid(&path, key, names::label_key(key));
        }
    }
    let Some(change) = change else { return };
    for old in list(get(change.old, "spec"), "drivers") {
        for new in drivers.iter().filter(|new| text(new, "name") == text(old, "name")) {
            let keys = |driver| texts(driver, "topologyKeys").collect::<Vec<_>>();
            if text(new, "nodeID") != text(old, "nodeID") || keys(new) != keys(old) {
                let mut driver = new.clone();
                driver.as_object_mut().and_then(|members| members.remove("allocatable"));
                errors.invalid_structure(&path, "storage.CSINodeDriver", &driver, IMMUTABLE);
            }
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), items(object, &["spec", "drivers"]).len(), age_of(object, context)]
}
