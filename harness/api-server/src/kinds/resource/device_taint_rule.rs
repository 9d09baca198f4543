//! Implements `DeviceTaintRule` objects.

use crate::apimachinery::metadata;
use crate::kinds::kind::{Kind, StatusKeeps};
use serde_json::Value;

/// The behavior of `DeviceTaintRule` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "devicetaintrules",
    kind: "DeviceTaintRule",
    set_defaults: Some(crate::kinds::defaulting::devices::device_taint_rule),
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    has_status_table: false,
    prepare_update: set_time_added,
    validate: crate::kinds::validation::devices::taint_rule,
    validate_subresources: &[("status", crate::kinds::validation::devices::taint_rule_status)],
    cells: Some(crate::kinds::tables::cluster::device_taint),
    ..Kind::COUNTED
};

/// Sets the time of a taint with a new effect, which counts as newly added.
fn set_time_added(object: &mut Value, old: &Value) {
    let changed = |field: &str| {
        let pointer = format!("/spec/taint/{field}");
        object.pointer(&pointer) != old.pointer(&pointer)
    };
    if changed("effect")
        && !changed("timeAdded")
        && let Some(taint) = object.pointer_mut("/spec/taint").and_then(Value::as_object_mut)
    {
        taint.insert("timeAdded".to_owned(), metadata::now().into());
    }
}
