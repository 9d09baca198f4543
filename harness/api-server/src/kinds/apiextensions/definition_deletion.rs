//! Deletes custom resource definitions. A definition remains until all its objects are deleted.
//!
//! In kube-apiserver, a controller deletes the objects shortly after the request. admit deletes the objects before the
//! response, unless a webhook rule matches the writes of the controller.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::custom_resources::group_resource;
use crate::kinds::apiextensions::definition_status;
use crate::kinds::apiextensions::definition_status::{Condition, set_condition};
use crate::kinds::deletion;
use crate::kinds::discovery::Resources;
use crate::kinds::discovery::custom::{GROUP, RESOURCE};
use crate::kinds::kind::{DeleteEffect, Kind};
use crate::storage::{Key, ObjectReader as _, Storage};

/// The finalizer that keeps a definition until its objects are deleted.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The built-in resources whose objects are not deleted with a definition of the same name.
///
/// Source: apiextensions-apiserver `pkg/controller/finalizer/crd_finalizer.go`, `OverlappingBuiltInResources`.
const OVERLAPPING_BUILT_IN_RESOURCES: [(&str, &str); 2] =
    [("apiregistration.k8s.io", "apiservices"), (GROUP, RESOURCE)];

/// Marks a definition as being deleted, and returns it.
///
/// Source: apiextensions-apiserver pkg/registry/customresourcedefinition/etcd.go, `Delete`.
/// Rule: SCH-17.
pub(crate) fn mark(definition: &Value) -> Value {
    let mut marked = definition.clone();
    metadata::set(&mut marked, "deletionTimestamp", metadata::now().into());
    let mut finalizers = finalizers(definition);
    if !finalizers.iter().any(|known| known == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    metadata::set(&mut marked, "finalizers", finalizers.into());
    set_condition(
        &mut marked,
        Condition {
            kind: "Terminating",
            status: "True",
            reason: "InstanceDeletionPending",
            message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        },
    );
    marked
}

/// Deletes the objects of all terminating definitions without admission, then the definitions without objects.
///
/// Source: apiextensions-apiserver `pkg/controller/finalizer/crd_finalizer.go`, `sync` and `deleteInstances`.
/// Rule: SCH-17.
pub(crate) fn finish(storage: &Storage) {
    for stored in storage.list(GROUP, RESOURCE, "") {
        // If another write came first, that writer also finishes the deletion.
        let _ = finish_one(storage, stored);
    }
}

/// Deletes the objects of one definition, then the definition. Returns `None` if another write happened first.
fn finish_one(storage: &Storage, mut stored: Arc<Value>) -> Option<()> {
    let name = metadata::text(&stored, "name").to_owned();
    while let Some(next) = next(storage, &stored) {
        if !metadata::has_finalizers(&next) {
            return storage.remove(&definition_status::key(&name), &stored).ok().map(drop);
        }
        if !definition_status::write(storage, &stored, next) {
            return None;
        }
        stored = storage.get(GROUP, RESOURCE, "", &name)?;
    }
    Some(())
}

/// Returns the definition for the next write of its deletion; `None` if no write is possible or required.
///
/// The first write reports that the deletion of the objects is in progress. The next call deletes the objects and
/// returns the second write, which reports that all objects are deleted and removes the finalizer. The caller must
/// remove a definition without finalizers.
///
/// Source: apiextensions-apiserver `pkg/controller/finalizer/crd_finalizer.go`, `sync`.
/// Rule: SCH-17.
pub(crate) fn next(storage: &Storage, stored: &Value) -> Option<Value> {
    let mut finalizers = finalizers(stored);
    if !metadata::is_deleting(stored) || !finalizers.iter().any(|known| known == FINALIZER) {
        return None;
    }
    let mut next = stored.clone();
    set_condition(
        &mut next,
        Condition {
            kind: "Terminating",
            status: "True",
            reason: "InstanceDeletionInProgress",
            message: "CustomResource deletion is in progress",
        },
    );
    if next != *stored {
        return Some(next);
    }
    let (group, plural) = group_resource(stored);
    let (reason, message) = if OVERLAPPING_BUILT_IN_RESOURCES.contains(&(group, plural)) {
        ("OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
    } else if definition_status::is_true(stored, "Established") {
        if !delete_objects(storage, stored) {
            return None;
        }
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    set_condition(&mut next, Condition { kind: "Terminating", status: "False", reason, message });
    finalizers.retain(|known| known != FINALIZER);
    if finalizers.is_empty() {
        metadata::remove(&mut next, "finalizers");
    } else {
        metadata::set(&mut next, "finalizers", finalizers.into());
    }
    Some(next)
}

/// Deletes the objects of a definition; only marks objects with finalizers. Returns whether all objects are deleted.
fn delete_objects(storage: &Storage, definition: &Value) -> bool {
    let (group, plural) = group_resource(definition);
    // kube-apiserver stores the objects of other built-in resources under other keys.
    if Resources::built_in().all().iter().any(|it| it.gvr.group == group && it.gvr.resource == plural) {
        return true;
    }
    let mut is_empty = true;
    for object in storage.list(group, plural, "") {
        let key = Key {
            group: group.to_owned(),
            resource: plural.to_owned(),
            namespace: metadata::text(&object, "namespace").to_owned(),
            name: metadata::text(&object, "name").to_owned(),
        };
        let marked = deletion::mark(&object, &json!({}), &Kind::PLAIN, false);
        let is_gone = match marked {
            DeleteEffect::Changed { gone: true, .. } => storage.remove(&key, &object).is_ok(),
            DeleteEffect::Changed { object: marked, gone: false } => {
                if marked != *object {
                    // If another write came first, the object is processed again when that writer removes it.
                    let _ = storage.replace(&key, Some(&object), marked);
                }
                false
            }
            DeleteEffect::Pending => false,
        };
        is_empty &= is_gone;
    }
    is_empty
}

fn finalizers(object: &Value) -> Vec<Value> {
    object.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default()
}
