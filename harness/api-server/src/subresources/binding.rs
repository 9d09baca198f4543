//! Handles Bindings. A Binding assigns a Pod to a node.

use kubernetes_admission::attributes::GroupVersionResource;
use kubernetes_types::names;
use kubernetes_types::status::{FieldError, Status, aggregate};
use serde_json::{Map, Value, json};

use super::eviction::success;
use crate::apimachinery::{metadata, status_conditions};
use crate::registry::answer::Answer;
use crate::registry::preconditions;
use crate::registry::request::ObjectRequest;

/// Rejects a binding unless its target is a node with a valid name.
///
/// # Errors
/// Returns 500 with the validation errors, as in kube-apiserver.
pub(crate) fn check(binding: &Value) -> Result<(), Box<Status>> {
    let errors = errors(binding);
    if errors.is_empty() {
        return Ok(());
    }
    Err(Box::new(Status::failure(500, "", aggregate(errors.iter().map(ToString::to_string)))))
}

/// Returns the validation errors of a binding.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodBinding`.
pub(crate) fn errors(binding: &Value) -> Vec<FieldError> {
    let text = |field: &str| {
        binding.get("target").and_then(|target| target.get(field)).and_then(Value::as_str).unwrap_or_default()
    };
    let (kind, name) = (text("kind"), text("name"));
    let is_node = ["", "Node"].contains(&kind);
    let mut errors = Vec::new();
    if !is_node {
        errors.push(FieldError::not_supported("target.kind", Value::from(kind), "\"Node\", \"<empty>\""));
    }
    if name.is_empty() {
        errors.push(FieldError::required("target.name", ""));
    } else if is_node {
        let wrong = names::dns1123_subdomain(name);
        errors.extend(wrong.iter().map(|why| FieldError::invalid("target.name", Value::from(name), why)));
    }
    errors
}

/// Assigns the Pod of an admitted binding to the node.
///
/// # Errors
/// Returns 404 if the Pod does not exist, or 409 if it cannot be bound or its UID or `resourceVersion` differs.
///
/// Source: kubernetes pkg/registry/core/pod/storage/storage.go, `setPodNodeAndMetadata` and `assignPod`.
pub(crate) fn bind(
    request: &ObjectRequest<'_>,
    binding: &Value,
    dry_run: bool,
) -> Result<Answer, Box<Status>> {
    // A POST to `bindings` also applies to a Pod.
    let pods = GroupVersionResource::new("", "v1", "pods");
    let resources = request.registry.state.resources();
    let Some(pods) = resources.get(&pods) else { return Err(Box::new(Status::not_found("", "pods", ""))) };
    let key = pods.key(&request.target.namespace, metadata::text(binding, "name"));
    loop {
        let Some(stored) = request.registry.state.storage.at(&key) else {
            return Err(Box::new(Status::not_found("", "pods", &key.name)));
        };
        let wanted = |field: &str| Some(metadata::text(binding, field)).filter(|text| !text.is_empty());
        preconditions::check_versions(
            &stored,
            wanted("uid"),
            wanted("resourceVersion"),
            dry_run,
            pods,
            &key,
        )?;
        let name = &key.name;
        let node = stored.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        let gates = stored.pointer("/spec/schedulingGates").and_then(Value::as_array);
        let why = if metadata::is_deleting(&stored) {
            format!("pod {name} is being deleted, cannot be assigned to a host")
        } else if !node.is_empty() {
            format!("pod {name} is already assigned to node \"{node}\"")
        } else if gates.is_some_and(|gates| !gates.is_empty()) {
            format!("pod {name} has non-empty .spec.schedulingGates")
        } else {
            if dry_run {
                return Ok(success());
            }
            let storage = &request.registry.state.storage;
            let bound = bound(&stored, binding);
            if storage.replace(&key, Some(&stored), bound).is_ok() {
                return Ok(success());
            }
            // Another write came first.
            continue;
        };
        return Err(Box::new(Status::conflict("", "pods/binding", name, &why)));
    }
}

/// Returns the Pod with the node, labels, and annotations of the binding.
fn bound(pod: &Value, binding: &Value) -> Value {
    let mut pod = pod.clone();
    let node = binding.pointer("/target/name").cloned().unwrap_or_default();
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("nodeName".to_owned(), node);
    }
    if let Some(status) = status_conditions::status_mut(&mut pod) {
        status.remove("nominatedNodeName");
    }
    for field in ["annotations", "labels"] {
        let given = binding.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        if let Some(given) = given.filter(|given| !given.is_empty()) {
            let mut all: Map<String, Value> = pod
                .pointer(&format!("/metadata/{field}"))
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            all.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
            metadata::set(&mut pod, field, all.into());
        }
    }
    status_conditions::set(
        &mut pod,
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null}),
    );
    pod
}
