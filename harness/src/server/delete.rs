//! Deletes objects.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::answer::{Answer, List};
use super::options::RequestOptions;
use super::request::ObjectRequest;
use super::{body, create, custom_resources, metadata, options, read};
use crate::attributes::Operation;
use crate::status::Status;

/// What became of a deleted object.
enum Deleted {
    /// It is gone.
    Gone(Arc<Value>),
    /// It waits for its finalizers.
    Waits(Arc<Value>),
}

/// DELETE of one object.
///
/// Source: apiserver pkg/endpoints/handlers/delete.go and pkg/registry/generic/registry/store.go.
pub(super) async fn delete(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let document = body::document(&request.headers, &request.body)?;
    if let Some(document) = &document {
        request.note_decoded(document);
    }
    let options = options::of_delete(document, &request.query)?;
    let resource = Arc::clone(&request.target.resource);
    let name = request.target.name.clone();
    let deleted = delete_one(request, &name, &options, &name).await?;
    // Pods and Namespaces go in two steps upstream, and what is answered is the object in the first.
    let shows_object = ["pods", "namespaces"].contains(&resource.gvr.group_resource().as_str());
    match deleted {
        Deleted::Waits(object) => Ok(Answer::ok(object)),
        Deleted::Gone(object) if shows_object => Ok(Answer::ok(object)),
        Deleted::Gone(object) => {
            let mut details =
                json!({"name": name, "kind": resource.gvr.resource, "uid": metadata::text(&object, "uid")});
            if !resource.gvr.group.is_empty() {
                details["group"] = resource.gvr.group.clone().into();
            }
            Ok(Answer::Object(
                StatusCode::OK,
                Arc::new(json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                })),
            ))
        }
    }
}

/// DELETE of all objects that the query selects: one admission for each, without a name.
pub(super) async fn delete_collection(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let document = body::document(&request.headers, &request.body)?;
    if let Some(document) = &document {
        request.note_decoded(document);
    }
    let options = options::of_delete(document, &request.query)?;
    let selected = read::selected(request)?;
    for object in &selected {
        let name = metadata::text(object, "name").to_owned();
        match delete_one(request, &name, &options, "").await {
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
            Ok(_) => {}
        }
    }
    let resource = &request.target.resource;
    Ok(Answer::List(List {
        api_version: resource.kind.api_version(),
        kind: resource.list_kind.clone(),
        resource_version: request.server.state.storage.resource_version().to_string(),
        items: selected,
        typed_items: resource.custom.is_some(),
    }))
}

async fn delete_one(
    request: &mut ObjectRequest<'_>,
    name: &str,
    options: &RequestOptions,
    admitted_name: &str,
) -> Result<Deleted, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    let (group, plural) = (&resource.gvr.group, &resource.gvr.resource);
    let key = create::key(request, name);
    let Some(stored) = request.server.state.storage.at(&key) else {
        return Err(Box::new(Status::not_found(group, plural, name)));
    };
    check_preconditions(&stored, &options.document, group, &resource.kind.kind, name)?;
    let old = request.server.state.in_version_of(&stored, &resource).map_err(create::conversion_failed)?;

    let mut attributes = request.attributes(Operation::Delete, &resource.kind);
    admitted_name.clone_into(&mut attributes.name);
    attributes.old_object = Some((*old).clone());
    attributes.options = Some(normalised(&options.document, &resource.gvr.group_resource(), admitted_name));
    attributes.dry_run = options.dry_run;
    request.passage.mutate(&mut attributes).await?;
    request.passage.validate(&attributes).await?;
    if options.dry_run {
        return Ok(Deleted::Gone(old));
    }
    remove(request, &key, &stored)
}

/// Removes what has no finalizers; marks as deleted what has.
fn remove(
    request: &ObjectRequest<'_>,
    key: &super::storage::Key,
    stored: &Arc<Value>,
) -> Result<Deleted, Box<Status>> {
    let resource = &request.target.resource;
    let server = request.server;
    let raced = || {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Box::new(Status::conflict(&resource.gvr.group, &resource.gvr.resource, &key.name, why))
    };
    let is_namespace = resource.gvr.group_resource() == "namespaces";
    let mut marked = (**stored).clone();
    if !metadata::is_deleting(&marked) {
        metadata::set(&mut marked, "deletionTimestamp", metadata::now().into());
        if !is_namespace {
            metadata::set(&mut marked, "deletionGracePeriodSeconds", 0.into());
        }
        if is_namespace && let Some(members) = marked.as_object_mut() {
            members.insert("status".to_owned(), json!({"phase": "Terminating"}));
        }
    }
    if is_namespace || metadata::has_finalizers(stored) {
        let storage = &server.state.storage;
        let marked = storage.replace(key, Some(stored), marked).ok().ok_or_else(raced)?;
        if is_namespace {
            server.empty_namespace(&key.name)?;
        }
        let shown = server.state.in_version_of(&marked, resource).map_err(create::conversion_failed)?;
        return Ok(Deleted::Waits(shown));
    }
    server.state.storage.remove(key, stored).ok().ok_or_else(raced)?;
    if let [custom, ..] = custom_resources::resources(stored).as_slice()
        && resource.gvr.group == custom_resources::GROUP
    {
        server.state.storage.remove_resource(&custom.gvr.group, &custom.gvr.resource);
    }
    server.has_changed(resource)?;
    let shown = server.state.in_version_of(stored, resource).map_err(create::conversion_failed)?;
    Ok(Deleted::Gone(shown))
}

/// Source: apiserver pkg/registry/rest/delete.go, `BeforeDelete`.
fn check_preconditions(
    stored: &Value,
    options: &Value,
    group: &str,
    kind: &str,
    name: &str,
) -> Result<(), Box<Status>> {
    let wanted = |field: &str| options.pointer(&format!("/preconditions/{field}")).and_then(Value::as_str);
    let (uid, resource_version) = (metadata::text(stored, "uid"), metadata::text(stored, "resourceVersion"));
    let why = match (wanted("uid"), wanted("resourceVersion")) {
        (Some(wanted), _) if wanted != uid => format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        ),
        (_, Some(wanted)) if wanted != resource_version => format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({resource_version}). The object might have been modified"
        ),
        _ => return Ok(()),
    };
    Err(Box::new(Status::conflict(group, kind, name, &why)))
}

/// The options that admission sees: a Pod that no node has is deleted at once, whatever was asked for.
///
/// Source: kubernetes pkg/registry/core/pod/strategy.go, `CheckGracefulDelete`.
fn normalised(options: &Value, resource: &str, name: &str) -> Value {
    let mut options = options.clone();
    if resource == "pods" && !name.is_empty() {
        options["gracePeriodSeconds"] = 0.into();
    }
    options
}
