//! Implements the behavior of a DELETE that depends on the resource.

use std::sync::Arc;

use kubernetes_types::json::set;
use kubernetes_types::schema;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::apiextensions::definition_deletion;
use crate::kinds::deletion;
use crate::kinds::deletion::DeleteEffect;
use crate::kinds::discovery::Resource;
use crate::kinds::strategy::TEMPLATE_GENERATION;

/// The resources whose DELETE returns the deleted object; the others return a Status.
///
/// Source: `ReturnDeletedObject` in kubernetes `pkg/registry/*/*/storage/storage.go`.
const RETURNS_DELETED_OBJECT: [&str; 18] = [
    "namespaces",
    "persistentvolumes",
    "persistentvolumeclaims",
    "pods",
    "podtemplates",
    "resourcequotas",
    "services",
    "serviceaccounts",
    "deviceclasses.resource.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "resourcepoolstatusrequests.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "storageclasses.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
];

const CUSTOM_RESOURCE_DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Returns whether a DELETE returns the deleted object instead of a Status.
pub(crate) fn returns_deleted_object(resource: &Resource) -> bool {
    RETURNS_DELETED_OBJECT.contains(&resource.gvr.group_resource().as_str())
}

/// Returns whether the resource is `customresourcedefinitions`.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.gvr.group_resource() == CUSTOM_RESOURCE_DEFINITIONS
}

/// Rejects the deletion of an object that cannot be deleted.
///
/// # Errors
/// Returns 403 for a system priority class.
///
/// Source: kubernetes pkg/registry/scheduling/priorityclass/storage/storage.go, `Delete`. Upstream does not check the
/// deletion of a collection.
/// Rule: KND-17.
pub(crate) fn check_deletion(resource: &Resource, name: &str) -> Result<(), Box<Status>> {
    let is_system = ["system-node-critical", "system-cluster-critical"].contains(&name);
    if !is_system || resource.gvr.group_resource() != "priorityclasses.scheduling.k8s.io" {
        return Ok(());
    }
    let why = "this is a system priority class and cannot be deleted";
    Err(Box::new(Status::forbidden(&resource.gvr.group, &resource.gvr.resource, name, why)))
}

/// Returns the warning for a DELETE with these options.
///
/// Source: kubernetes pkg/registry/batch/job/storage/storage.go, `Delete` and `DeleteCollection`.
/// Rule: KND-07.
pub(crate) fn deletion_warning(resource: &Resource, options: &Value) -> Option<&'static str> {
    let is_decided = ["propagationPolicy", "orphanDependents"]
        .iter()
        .any(|field| options.get(field).is_some_and(|value| !value.is_null()));
    (resource.gvr.group_resource() == "jobs.batch" && !is_decided).then_some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
         set propagationPolicy=Orphan to suppress this warning",
    )
}

/// Returns the message for a failed precondition; `None` if the resource does not check preconditions itself.
///
/// `by_name` is false for the deletion of a collection.
pub(crate) fn failed_precondition(resource: &Resource, by_name: bool) -> Option<&'static str> {
    match resource.gvr.group_resource().as_str() {
        CUSTOM_RESOURCE_DEFINITIONS if by_name => Some("precondition failed"),
        "namespaces" => Some("Precondition failed"),
        _ => None,
    }
}

/// Returns the effect of a DELETE. `by_name` is false for the deletion of a collection.
pub(crate) fn mark_as_deleting(
    stored: &Arc<Value>,
    options: &Value,
    resource: &Resource,
    by_name: bool,
) -> DeleteEffect {
    if by_name && is_definition(resource) && !metadata::is_deleting(stored) {
        return DeleteEffect::Changed { object: definition_deletion::mark(stored), gone: false };
    }
    deletion::mark(stored, options, &resource.gvr.group_resource())
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
    match resource.gvr.group_resource().as_str() {
        "deployments.apps" | "replicasets.apps" | "statefulsets.apps" => {
            set(&mut nothing, &["spec", "replicas"], 0);
        }
        "daemonsets.apps" => {
            let annotations = json!({TEMPLATE_GENERATION: "0"});
            set(&mut nothing, &["metadata", "annotations"], annotations);
        }
        _ => {}
    }
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
    resource: &str,
    name: &str,
) -> Value {
    let mut options = options.clone();
    let grace = options.get("gracePeriodSeconds").and_then(Value::as_i64);
    if !name.is_empty() && grace.is_some_and(|seconds| seconds < 0) {
        set(&mut options, &["gracePeriodSeconds"], 1);
    }
    let is_named_definition = resource == CUSTOM_RESOURCE_DEFINITIONS && !name.is_empty();
    if (resource == "namespaces" || is_named_definition)
        && let Some(members) = options.as_object_mut()
        && let Some(preconditions) =
            members.entry("preconditions").or_insert_with(|| json!({})).as_object_mut()
    {
        preconditions.entry("uid").or_insert_with(|| metadata::text(marked, "uid").into());
    }
    if deletion::is_graceful(stored, resource)
        && !name.is_empty()
        && let Some(seconds) = marked.pointer("/metadata/deletionGracePeriodSeconds")
    {
        set(&mut options, &["gracePeriodSeconds"], seconds.clone());
    }
    options
}
