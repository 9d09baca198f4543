//! Implements `ResourceSlice` objects.

pub(crate) mod validation;

use kubernetes_types::json::text;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::defaults::{each, with};
use crate::kinds::common::disabled_fields;
use crate::kinds::common::disabled_fields::Path;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use crate::kinds::resource::defaults::taint;
use crate::kinds::resource::resource_slice;

/// The behavior of `ResourceSlice` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceslices",
    kind: "ResourceSlice",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    drop_disabled_fields: |object| disabled_fields::drop_all(object.get_mut("spec"), OF_SLICES),
    validate: resource_slice::validation::validate,
    warn,
    cells: Some(cells),
    selectable_fields: Some(&["metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"]),
    ..Kind::COUNTED
};

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    if let Some(warning) = resource_slice::validation::uppercase_driver(object) {
        warnings.push(warning);
    }
}

/// Sets the defaults of a `ResourceSlice`.
///
/// Source: kubernetes pkg/apis/resource/v1/defaults.go, `SetDefaults_DeviceTaint`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| each(spec, "devices", |device| each(device, "taints", taint)));
}

/// The `ResourceSlice` fields that belong to disabled feature gates.
///
/// The feature gates are `DRADeviceCompatibilityGroups`, `DRANodeAllocatableResources`, `DRAListTypeAttributes`,
/// `DRAPartitionableDevicesType`, and `DRAOptionalNodeOperations`.
pub(crate) const OF_SLICES: &[Path] = &[
    &["devices", "*", "consumesCounters", "*", "compatibilityGroups"],
    &["devices", "*", "nodeAllocatableResources"],
    &["devices", "*", "attributes", "*", "bools"],
    &["devices", "*", "attributes", "*", "ints"],
    &["devices", "*", "attributes", "*", "strings"],
    &["devices", "*", "attributes", "*", "versions"],
    &["partitionTypeAttribute"],
    &["skipNodeOperations"],
];

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, &["spec", "nodeName"]),
        text(object, &["spec", "driver"]),
        text(object, &["spec", "pool", "name"]),
        age_of(object, context),
    ]
}
