//! Implements `ResourceSlice` objects.

use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use serde_json::Value;

/// The behavior of `ResourceSlice` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceslices",
    kind: "ResourceSlice",
    set_defaults: Some(crate::kinds::defaulting::devices::resource_slice),
    returns_deleted_object: true,
    drop_disabled_fields: |object| {
        crate::kinds::strategy::disabled_fields::drop_all(
            object.get_mut("spec"),
            crate::kinds::strategy::disabled_fields::OF_SLICES,
        )
    },
    validate: crate::kinds::validation::devices::slices::slice,
    warn: warn,
    cells: Some(crate::kinds::tables::cluster::resource_slice),
    selectable_fields: Some(&["metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"]),
    ..Kind::COUNTED
};

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    if let Some(warning) = crate::kinds::validation::devices::slices::uppercase_driver(object) {
        warnings.push(warning);
    }
}
