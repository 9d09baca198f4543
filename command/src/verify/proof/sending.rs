//! Expresses the request of a proof as steps: the objects that exist before it, and the `When` step that sends it.

use std::collections::BTreeMap;

use harness::attributes::{Attributes, Operation};
use harness::json::{at, set};
use harness::server::ClusterFixture;
use harness::verify::corpus;
use harness::verify::sample_request::SampleRequest;
use serde_json::{Value, json};

use super::feature::{Steps, long};
use crate::verify::api_server::KNOWN_NAMESPACES;

pub(super) const RENAMED: &str = "kube-apiserver rejects an update that changes the object's name";

/// Returns the reason why no step can send the request, as the end of a sentence.
pub(super) fn obstacle(request: &Attributes) -> Option<String> {
    let name =
        |object: &Option<Value>| object.as_ref().map(|object| at(object, &["metadata", "name"]).clone());
    if request.operation == Operation::Update && name(&request.object) != name(&request.old_object) {
        return Some(RENAMED.to_owned());
    }
    if is_namespace(request) && KNOWN_NAMESPACES.contains(&request.name.as_str()) {
        return Some(format!("every API server has the Namespace {} from the start", request.name));
    }
    None
}

/// Returns whether the request is about a Namespace.
pub(super) fn is_namespace(request: &Attributes) -> bool {
    request.resource.group.is_empty() && request.resource.resource == "namespaces"
}

/// Returns whether the request affects objects outside of the scenario's namespace.
///
/// Such a request requires a server that was started for the run, and no other scenario may run at the same time.
pub(super) fn is_outside(shown: &SampleRequest) -> bool {
    shown.is_about_namespace || shown.request.namespace.is_empty() || is_namespace(&shown.request)
}

/// Adds the steps of a request for an object rather than a subresource.
pub(super) fn of_object(
    steps: &mut Steps,
    number: usize,
    shown: &SampleRequest,
    manifests: &mut BTreeMap<String, String>,
) {
    let request = &shown.request;
    let sent = |object: &Value| sent(object, shown.is_about_namespace);
    let word = request.kind.kind.to_lowercase();
    if let Some(stored) = &request.old_object {
        match long(&sent(stored), format!("stored-{number}.yaml"), manifests) {
            Some(name) => steps.given(&format!("the objects in the file \"{name}\" exist"), None),
            None => steps.given("this object exists:", Some(sent(stored))),
        }
        if at(stored, &["metadata", "deletionTimestamp"]).is_string() {
            steps.given(&format!("the {word} \"{}\" is being deleted", request.name), None);
        }
    }
    if request.dry_run {
        steps.given("requests are dry runs", None);
    }
    let does = match request.operation {
        Operation::Update => "updated",
        Operation::Create | Operation::Connect => "created",
        Operation::Delete if request.name.is_empty() => {
            return steps.add("When", &format!("all {} are deleted", request.resource.resource), None);
        }
        Operation::Delete => {
            return steps.add("When", &format!("the {word} \"{}\" is deleted", request.name), None);
        }
    };
    let object = request.object.as_ref().map(sent).unwrap_or_default();
    match long(&object, format!("sent-{number}.yaml"), manifests) {
        Some(name) => steps.add("When", &format!("the object in the file \"{name}\" is {does}"), None),
        None => steps.add("When", &format!("this object is {does}:"), Some(object)),
    }
}

/// Adds the steps of a request for a subresource, and for its parent object.
///
/// # Errors
/// Returns the reason why there are no steps, as the end of a sentence.
pub(super) fn of_subresource(
    steps: &mut Steps,
    request: &Attributes,
    cluster_fixture: &ClusterFixture,
) -> Result<(), String> {
    let (subresource, name) = (&request.subresource, &request.name);
    let resources = cluster_fixture.resources();
    let served = resources.into_iter().find(|served| served.name == request.resource);
    let served = served.ok_or("the resource of the subresource is not known")?;
    let word = served.kind.kind.to_lowercase();
    let object = request.object.as_ref().map(|object| sent(object, false)).unwrap_or_default();
    let path = format!("the {subresource} subresource of the {word} \"{name}\"");
    if request.operation == Operation::Connect {
        // Admission runs before the connection, so the target need not exist.
        steps.add("When", &format!("a client connects to {path} with:"), Some(object));
        return Ok(());
    }
    let stored = request.old_object.as_ref().filter(|old| at(old, &["kind"]) == &*served.kind.kind).cloned();
    let parent = stored.or_else(|| corpus::example(&served.kind, cluster_fixture));
    let mut parent = sent(&parent.ok_or("admit has no object that has the subresource")?, false);
    set(&mut parent, &["metadata", "name"], name.as_str());
    let change = match (request.operation, subresource.as_str()) {
        (Operation::Create, _) => None,
        // This subresource supports only replacement.
        (Operation::Update, "finalize") => {
            steps.given("this object exists:", Some(parent));
            steps.add("When", &format!("{path} is updated:"), Some(object));
            return Ok(());
        }
        (Operation::Update, "scale" | "resize" | "ephemeralcontainers") => {
            Some(json!({"spec": at(&object, &["spec"])}))
        }
        // An empty patch sends a request for an object without changes.
        (Operation::Update, "status") => {
            let status = object.get("status");
            Some(status.map_or_else(|| json!({}), |status| json!({ "status": status })))
        }
        // The server updates only these fields.
        (Operation::Update, "approval") => {
            Some(json!({"status": {"conditions": at(&object, &["status", "conditions"])}}))
        }
        (operation, _) => return Err(format!("no step sends the {operation} of `{subresource}`")),
    };
    steps.given("this object exists:", Some(parent));
    match change {
        None => steps.add("When", &format!("{path} is created:"), Some(object)),
        Some(change) => steps.add("When", &format!("{path} is patched:"), Some(change)),
    }
    Ok(())
}

/// Returns the object as a client sends it, without generated fields.
///
/// The namespace of the object is removed unless `keeps_namespace` is set.
fn sent(object: &Value, keeps_namespace: bool) -> Value {
    const SERVERS_OWN: [&str; 7] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !SERVERS_OWN.contains(&name.as_str()));
        if !keeps_namespace {
            metadata.remove("namespace");
        }
    }
    object
}
