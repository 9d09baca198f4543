//! Namespace deletion: deletes the content of a terminating namespace, then the namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;
use kubernetes_types::json::set;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use super::actors::{Actor, Actors, Change, JSON, path};
use super::queue::Outcome;
use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::storage::ObjectReader as _;

/// The finalizer of the controller, in `spec.finalizers`.
const FINALIZER: &str = "kubernetes";

/// The condition types in order, each with the reason and the message for status `False`.
///
/// Source: kubernetes `pkg/controller/namespace/deletion/status_condition_utils.go`.
const CONDITIONS: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// The content that remains after an attempt to empty a namespace.
#[derive(Debug, Default)]
struct RemainingContent {
    /// The number of remaining objects, by `RESOURCE.GROUP`.
    objects: BTreeMap<String, usize>,
    /// The number of remaining objects, by finalizer.
    finalizers: BTreeMap<String, usize>,
    /// The errors of failed deletions.
    errors: Vec<String>,
}

/// Deletes the content of a terminating namespace and removes the controller's finalizer when the namespace is empty.
///
/// Source: kubernetes `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`, `Delete` and
/// `deleteAllContent`.
/// Rule: CTL-03, CTL-04.
pub(super) async fn finish(actors: &Actors, name: &str) -> Outcome {
    let stored = || actors.server.registry.state.storage.get("", "namespaces", "", name);
    let Some(namespace) = stored().filter(|namespace| metadata::is_deleting(namespace)) else {
        return Outcome::Done;
    };
    if !has_finalizer(&namespace) {
        return Outcome::Done;
    }
    let mut left = RemainingContent::default();
    // Pods are deleted before the objects that they may need.
    let (pods, others): (Vec<_>, Vec<_>) = actors
        .deletable()
        .into_iter()
        .filter(|resource| resource.namespaced)
        .partition(|resource| is_pods(resource));
    for resource in &pods {
        empty(actors, resource, name, &mut left).await;
    }
    let waits_for_pods = !left.objects.is_empty();
    if waits_for_pods {
        // The other objects have not been counted.
        left.objects.clear();
        left.finalizers.clear();
    } else {
        for resource in &others {
            empty(actors, resource, name, &mut left).await;
        }
    }
    if let Some(next) = with_conditions(&namespace, &left) {
        let path = format!("/api/v1/namespaces/{name}/status");
        let change = Change { method: Method::PUT, path, media_type: JSON, body: &next };
        // If this fails because another write came first, that write enqueues the namespace again.
        let _ = actors.send(Actor::Namespaces, change).await;
    }
    if !left.errors.is_empty() {
        return Outcome::Retry;
    }
    if waits_for_pods || !left.objects.is_empty() {
        // The namespace is enqueued again when one of the remaining objects is deleted.
        return Outcome::Done;
    }
    let Some(namespace) = stored() else { return Outcome::Done };
    let mut finalized = (*namespace).clone();
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    let kept: Vec<Value> = finalizers.into_iter().flatten().filter(|it| *it != FINALIZER).cloned().collect();
    set(&mut finalized, &["spec", "finalizers"], Value::Array(kept));
    let path = format!("/api/v1/namespaces/{name}/finalize");
    let change = Change { method: Method::PUT, path, media_type: JSON, body: &finalized };
    match actors.send(Actor::Namespaces, change).await {
        Ok(()) => Outcome::Done,
        Err(status) if status.code == 404 => Outcome::Done,
        Err(_) => Outcome::Retry,
    }
}

fn is_pods(resource: &Resource) -> bool {
    resource.gvr.group_resource() == "pods"
}

fn has_finalizer(namespace: &Value) -> bool {
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|all| all.iter().any(|known| known == FINALIZER))
}

/// Deletes the objects of a resource in a namespace and counts the remaining objects.
///
/// Does not send a request for an empty collection, because the server would not call webhooks for it.
async fn empty(actors: &Actors, resource: &Arc<Resource>, namespace: &str, left: &mut RemainingContent) {
    let (group, plural) = (resource.storage_group(), resource.gvr.resource.as_str());
    let list = || actors.server.registry.state.storage.list(group, plural, namespace);
    let objects = list();
    if objects.is_empty() {
        return;
    }
    let failed = |status: &Status| {
        if is_pods(resource) {
            format!("failed to delete pods for namespace: {namespace}, err: {}", status.message)
        } else {
            status.message.clone()
        }
    };
    if let Err(status) = delete(actors, resource, namespace, &objects).await {
        left.errors.push(failed(&status));
        return;
    }
    let remaining = list();
    if remaining.is_empty() {
        return;
    }
    left.objects.insert(format!("{plural}.{}", resource.gvr.group), remaining.len());
    let mut waits = false;
    for object in &remaining {
        for finalizer in metadata::finalizers(object) {
            *left.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            waits = true;
        }
        let grace = object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        waits |= grace.is_some_and(|seconds| seconds > 0);
    }
    if !waits {
        let gvr = &resource.gvr;
        left.errors.push(format!(
            "unexpected items still remain in namespace: {namespace} for gvr: {}/{}, Resource={}",
            gvr.group, gvr.version, gvr.resource
        ));
    }
}

/// Deletes the objects with one DELETE of the collection if the resource supports it, otherwise one by one.
async fn delete(
    actors: &Actors,
    resource: &Resource,
    namespace: &str,
    objects: &[Arc<Value>],
) -> Result<(), Box<Status>> {
    let options =
        json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "propagationPolicy": "Background"});
    let at = |name: &str| Change {
        method: Method::DELETE,
        path: path(resource, namespace, name),
        media_type: JSON,
        body: &options,
    };
    if resource.verbs.iter().any(|verb| verb == "deletecollection") {
        return actors.send(Actor::Namespaces, at("")).await;
    }
    for object in objects {
        match actors.send(Actor::Namespaces, at(metadata::text(object, "name"))).await {
            Err(status) if status.code != 404 && status.code != 405 => return Err(status),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Returns the namespace with updated conditions; `None` if they did not change.
fn with_conditions(namespace: &Value, left: &RemainingContent) -> Option<Value> {
    let mut conditions =
        namespace.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut has_changed = false;
    for (kind, good_reason, good_message) in CONDITIONS {
        let (status, reason, message) = match problem(kind, left) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", good_reason, good_message.to_owned()),
        };
        let known =
            conditions.iter_mut().find(|condition| condition.get("type").is_some_and(|it| it == kind));
        let Some(known) = known else {
            conditions.push(json!({
                "type": kind, "status": status, "lastTransitionTime": metadata::now(), "reason": reason,
                "message": message,
            }));
            has_changed = true;
            continue;
        };
        let is = |field: &str, value: &str| known.get(field).is_some_and(|it| it == value);
        let is_in_transition = !is("status", status);
        if is_in_transition || !is("reason", reason) || !is("message", &message) {
            has_changed = true;
            if is_in_transition {
                set(known, &["lastTransitionTime"], metadata::now());
            }
            set(known, &["status"], status);
            set(known, &["reason"], reason);
            set(known, &["message"], message);
        }
    }
    if !has_changed {
        return None;
    }
    let mut next = namespace.clone();
    set(&mut next, &["status", "conditions"], Value::Array(conditions));
    Some(next)
}

/// Returns the reason and the message of a true condition; `None` if the condition is false.
fn problem(kind: &str, left: &RemainingContent) -> Option<(&'static str, String)> {
    let listed = |counts: &BTreeMap<String, usize>, word: &str| {
        let mut all: Vec<String> =
            counts.iter().map(|(what, count)| format!("{what} {word} {count} resource instances")).collect();
        all.sort();
        all.join(", ")
    };
    match kind {
        "NamespaceDeletionContentFailure" if !left.errors.is_empty() => {
            let mut errors = left.errors.clone();
            errors.sort();
            let message = format!(
                "Failed to delete all resource types, {} remaining: {}",
                errors.len(),
                errors.join(", ")
            );
            Some(("ContentDeletionFailed", message))
        }
        "NamespaceContentRemaining" if !left.objects.is_empty() => {
            let message = format!("Some resources are remaining: {}", listed(&left.objects, "has"));
            Some(("SomeResourcesRemain", message))
        }
        "NamespaceFinalizersRemaining" if !left.finalizers.is_empty() => {
            let message = format!(
                "Some content in the namespace has finalizers remaining: {}",
                listed(&left.finalizers, "in")
            );
            Some(("SomeFinalizersRemain", message))
        }
        _ => None,
    }
}
