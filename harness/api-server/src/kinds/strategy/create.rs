//! Prepares new objects between mutating admission and validation.

use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::kinds::{defaulting, table};

/// Applies the part of the create strategy that depends only on the object.
///
/// The caller must already have generated a name from `generateName`.
///
/// Source: apiserver pkg/registry/rest/create.go, `BeforeCreate`, and the resources' `PrepareForCreate`.
/// Rule: KND-03.
pub(crate) fn prepare_for_create(object: &mut Value, resource: &Resource) {
    metadata::remove(object, "deletionTimestamp");
    metadata::remove(object, "deletionGracePeriodSeconds");
    metadata::set(object, "uid", uuid::Uuid::new_v4().to_string().into());
    metadata::set(object, "creationTimestamp", metadata::now().into());
    let kind = table::of(resource);
    if resource.custom.is_some() || kind.starts_generation {
        metadata::set(object, "generation", 1.into());
    }
    if resource.has_status() && !kind.keeps_status {
        reset_status(object);
    }
    (kind.prepare_create)(object);
    (kind.drop_disabled_fields)(object);
}

/// Replaces the status with the initial status of the kind.
fn reset_status(object: &mut Value) {
    let mut bare = json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind")});
    defaulting::set_defaults(&mut bare);
    let Some(members) = object.as_object_mut() else { return };
    match bare.get_mut("status").map(Value::take) {
        Some(status) => members.insert("status".to_owned(), status),
        None => members.remove("status"),
    };
}
