//! Updates the `managedFields` of objects that the server and its built-in controllers write.

use std::collections::BTreeMap;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::ownership::OneVersion;
use kubernetes_managed_fields::{FieldManager, Filter, Writer, Written};
use serde_json::Value;

use crate::apimachinery::metadata;

/// The field manager of objects that the server creates at startup.
const SERVER: &str = "kube-apiserver";

/// Returns an object that the server creates, with the field manager `kube-apiserver`.
pub(crate) fn made(object: Value) -> Value {
    made_by(object, SERVER)
}

/// Returns the object with the `managedFields` of a creation by `manager`.
pub(crate) fn made_by(object: Value, manager: &str) -> Value {
    written(None, object, "", &BTreeMap::new(), manager)
}

/// Returns the object with its `managedFields` updated for a write by the server.
pub(crate) fn updated(live: &Value, object: Value) -> Value {
    written(Some(live), object, "", &BTreeMap::new(), SERVER)
}

/// Returns the object with its `managedFields` updated for a status write by the server.
///
/// Source: apiextensions-apiserver `pkg/controller/status/naming_controller.go` and pkg/controller/establish.
pub(crate) fn with_status(live: &Value, object: Value) -> Value {
    let version = GroupVersionKind::from_object(&object).api_version();
    let others = kubernetes_managed_fields::Set::from_fields(&[&["metadata"], &["spec"]]);
    let reset_fields = BTreeMap::from([(version, Filter::Exclude(others))]);
    written(Some(live), object, "status", &reset_fields, SERVER)
}

fn written(
    live: Option<&Value>,
    object: Value,
    subresource: &str,
    reset_fields: &BTreeMap<String, Filter>,
    writer: &str,
) -> Value {
    let kind = GroupVersionKind::from_object(&object);
    let (version, now) = (kind.api_version(), metadata::now());
    let manager = FieldManager {
        versions: &OneVersion { kind: &kind, built_in: true },
        api_version: &version,
        kind: &kind.kind,
        subresource,
        reset_fields,
    };
    manager.update_no_errors(live, object, &Writer { manager: writer, now: &now }).object
}

/// Returns `live` with `fields` force-applied by a controller, and with updated `managedFields`.
pub(crate) fn applied(live: &Value, fields: &Value, manager: &str) -> Value {
    applied_to(live, "", fields, manager)
}

/// Returns `live` with `fields` force-applied to a subresource by a controller, and with updated `managedFields`.
pub(crate) fn applied_to(live: &Value, subresource: &str, fields: &Value, manager: &str) -> Value {
    let kind = GroupVersionKind::from_object(live);
    let (version, now) = (kind.api_version(), metadata::now());
    let field_manager = FieldManager {
        versions: &OneVersion { kind: &kind, built_in: true },
        api_version: &version,
        kind: &kind.kind,
        subresource,
        reset_fields: &BTreeMap::new(),
    };
    let applied = field_manager.apply(Some(live), fields, &Writer { manager, now: &now }, true);
    applied.map_or_else(|_| live.clone(), |Written { object, .. }| object)
}
