//! Implements `CSIStorageCapacity` objects.

use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, map, set, text};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{formats, selectors};
use crate::kinds::core::pod;
use crate::kinds::kind::Kind;

/// The behavior of `CSIStorageCapacity` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csistoragecapacities",
    kind: "CSIStorageCapacity",
    requires_resource_version: true,
    validate,
    warn,
    has_default_columns: true,
    ..Kind::PLAIN
};

/// Validates a `CSIStorageCapacity`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateCSIStorageCapacity` and
/// `ValidateCSIStorageCapacityUpdate`.
/// Rule: VLO-38.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    selectors::label_selector(errors, &Path::new("nodeTopology"), get(object, "nodeTopology"));
    let class = text(object, "storageClassName");
    formats::dns_subdomain(errors, &Path::new("storageClassName"), class);
    if let Some(capacity) = set(object, "capacity") {
        formats::quantity_not_negative(errors, &Path::new("capacity"), capacity);
    }
    let Some(change) = change else { return };
    if !change.is_same(&["nodeTopology"]) {
        let shown = selectors::shown(get(object, "nodeTopology"));
        errors.invalid(&Path::new("nodeTopology"), shown, IMMUTABLE);
    }
    if !change.is_same(&["storageClassName"]) {
        errors.invalid_text(&Path::new("storageClassName"), class, IMMUTABLE);
    }
}

/// Warns about deprecated node labels in a `CSIStorageCapacity`.
///
/// Source: kubernetes pkg/api/storage/util.go.
pub(crate) fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    let (path, topology) = (Path::new("nodeTopology"), get(object, "nodeTopology"));
    pod::warnings::node_selector_term(warnings, &path, topology, false);
    let path = path.child("matchLabels");
    for label in map(topology, "matchLabels").into_iter().flatten().map(|(label, _)| label) {
        if let Some(message) = pod::warnings::deprecated_label(label) {
            warnings.push(format!("{}: {message}", path.child(label)));
        }
    }
}
