//! Sets and keeps parts of objects before they are stored.

use serde_json::{Value, json};

use crate::apimachinery::metadata;

pub(crate) fn set_annotation(object: &mut Value, key: &str, value: &str) {
    set_in_metadata(object, "annotations", key, value);
}

/// Sets a label of an object.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_Namespace`.
pub(crate) fn set_label(object: &mut Value, key: &str, value: &str) {
    set_in_metadata(object, "labels", key, value);
}

fn set_in_metadata(object: &mut Value, field: &str, key: &str, value: &str) {
    let mut texts = object.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_else(|| json!({}));
    if let Some(members) = texts.as_object_mut() {
        members.insert(key.to_owned(), value.into());
    }
    metadata::set(object, field, texts);
}

pub(crate) fn set_status(object: &mut Value, status: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
}

/// Returns `metadata.generation`. It counts the changes to the spec.
pub(crate) fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Discards changes to the metadata in a write to a subresource.
///
/// Source: apimachinery pkg/apis/meta/v1/meta.go, `ResetObjectMetaForStatus`.
pub(crate) fn keep_metadata(object: &mut Value, old: &Value) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        keep_in_metadata(object, old, field);
    }
}

pub(crate) fn keep_in_metadata(object: &mut Value, old: &Value, field: &str) {
    match old.pointer(&format!("/metadata/{field}")) {
        Some(value) => metadata::set(object, field, value.clone()),
        None => {
            metadata::remove(object, field);
        }
    }
}
