//! Implements the behavior of a DELETE that depends on the resource.

use std::sync::Arc;

use kubernetes_types::json::set;
use kubernetes_types::schema;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::kinds::kind::DeleteEffect;
use crate::kinds::{deletion, table};

/// Returns whether a DELETE returns the deleted object instead of a Status.
pub(crate) fn returns_deleted_object(resource: &Resource) -> bool {
    table::of(resource).returns_deleted_object
}

/// Returns whether the objects of a resource define custom resources.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    table::of(resource).is_definition
}

/// Rejects the deletion of an object that cannot be deleted.
///
/// # Errors
/// Returns 403 with the reason.
///
/// Rule: KND-17.
pub(crate) fn check_deletion(resource: &Resource, name: &str) -> Result<(), Box<Status>> {
    match (table::of(resource).forbids_deletion)(name) {
        None => Ok(()),
        Some(why) => Err(Box::new(Status::forbidden(&resource.gvr.group, &resource.gvr.resource, name, why))),
    }
}

/// Returns the warning for a DELETE with these options.
///
/// Rule: KND-07.
pub(crate) fn deletion_warning(resource: &Resource, options: &Value) -> Option<&'static str> {
    let is_decided = ["propagationPolicy", "orphanDependents"]
        .iter()
        .any(|field| options.get(field).is_some_and(|value| !value.is_null()));
    table::of(resource).deletion_warning.filter(|_| !is_decided)
}

/// Returns the message for a failed precondition; `None` if the resource does not check preconditions itself.
///
/// `by_name` is false for the deletion of a collection.
pub(crate) fn failed_precondition(resource: &Resource, by_name: bool) -> Option<&'static str> {
    let [of_name, of_collection] = table::of(resource).failed_precondition;
    if by_name { of_name } else { of_collection }
}

/// Returns the effect of a DELETE. `by_name` is false for the deletion of a collection.
pub(crate) fn mark_as_deleting(
    stored: &Arc<Value>,
    options: &Value,
    resource: &Resource,
    by_name: bool,
) -> DeleteEffect {
    deletion::mark(stored, options, table::of(resource), by_name)
}

/// Returns an empty object of the kind, as the server encodes it from the internal type.
///
/// Source: kubernetes pkg/apis/apps/v1/conversion.go.
pub(crate) fn empty_object(resource: &Resource) -> Value {
    let kind = &resource.kind;
    let mut nothing = json!({"kind": kind.kind, "apiVersion": kind.api_version()});
    if resource.custom.is_some() {
        return nothing;
    }
    set(&mut nothing, &["metadata"], json!({}));
    schema::normalize(&mut nothing, kind);
    (table::of(resource).fill_empty)(&mut nothing);
    nothing
}

/// Returns the delete options that admission receives.
///
/// A negative grace period becomes one second, except for a collection. A Pod gets its actual grace period. A Namespace
/// or a custom resource definition gets a UID precondition.
///
/// Source: apiserver pkg/registry/rest/delete.go, `BeforeDelete`; kubernetes pkg/registry/core/pod/strategy.go,
/// `CheckGracefulDelete`; kubernetes pkg/registry/core/namespace/storage/storage.go, `Delete`.
/// Rule: REQ-13.
pub(crate) fn normalized_options(
    options: &Value,
    stored: &Value,
    marked: &Value,
    resource: &Resource,
    name: &str,
) -> Value {
    let mut options = options.clone();
    let grace = options.get("gracePeriodSeconds").and_then(Value::as_i64);
    if !name.is_empty() && grace.is_some_and(|seconds| seconds < 0) {
        set(&mut options, &["gracePeriodSeconds"], 1);
    }
    let kind = table::of(resource);
    let [of_name, of_collection] = kind.has_uid_precondition;
    if (if name.is_empty() { of_collection } else { of_name })
        && let Some(members) = options.as_object_mut()
        && let Some(preconditions) =
            members.entry("preconditions").or_insert_with(|| json!({})).as_object_mut()
    {
        preconditions.entry("uid").or_insert_with(|| metadata::text(marked, "uid").into());
    }
    if deletion::is_graceful(stored, kind)
        && !name.is_empty()
        && let Some(seconds) = marked.pointer("/metadata/deletionGracePeriodSeconds")
    {
        set(&mut options, &["gracePeriodSeconds"], seconds.clone());
    }
    options
}
