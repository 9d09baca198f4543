//! Implements `PersistentVolume` objects.

use crate::apimachinery::metadata;
use crate::kinds::kind::Kind;
use serde_json::Value;
use serde_json::json;

/// The behavior of `PersistentVolume` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "persistentvolumes",
    kind: "PersistentVolume",
    set_defaults: Some(crate::kinds::defaulting::core::persistent_volume),
    returns_deleted_object: true,
    prepare_create: prepare_create,
    prepare_status: set_transition_time,
    validate: crate::kinds::validation::volumes::volume,
    warn: |warnings, object, _| crate::kinds::validation::warnings::storage::volume(warnings, object),
    cells: Some(crate::kinds::tables::storage::volume),
    ..Kind::PLAIN
};

const LAST_PHASE_TRANSITION_TIME: &str = "lastPhaseTransitionTime";

fn prepare_create(object: &mut Value) {
    crate::kinds::strategy::create::set_status(
        object,
        json!({"phase": "Pending", "lastPhaseTransitionTime": metadata::now()}),
    );
}

/// Sets the time of the last change of the phase.
fn set_transition_time(object: &mut Value, old: &Value) {
    let status = |object: &Value, field: &str| object["status"].get(field).cloned().unwrap_or_default();
    let is_same = |field: &str| status(object, field) == status(old, field);
    let since = status(object, LAST_PHASE_TRANSITION_TIME);
    let kept = if !is_same("phase") && (since.is_null() || is_same(LAST_PHASE_TRANSITION_TIME)) {
        metadata::now().into()
    } else if is_same("phase") && since.is_null() {
        status(old, LAST_PHASE_TRANSITION_TIME)
    } else {
        return;
    };
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        && !kept.is_null()
    {
        status.insert(LAST_PHASE_TRANSITION_TIME.to_owned(), kept);
    }
}
