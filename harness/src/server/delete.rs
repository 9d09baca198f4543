//! Deletes objects.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::answer::{Answer, List};
use super::deletion::{self, Marked};
use super::options::RequestOptions;
use super::request::ObjectRequest;
use super::{body, create, custom_resources, metadata, options, read};
use crate::attributes::Operation;
use crate::ownership::Times;
use crate::status::Status;

/// The resources whose DELETE is answered with the object that is gone; for the others it is a Status.
///
/// Source: `ReturnDeletedObject` in kubernetes `pkg/registry/*/*/storage/storage.go`.
const ANSWERED_WITH_THE_OBJECT: [&str; 18] = [
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

/// What became of a deleted object.
pub(super) enum Deleted {
    /// It is gone.
    Gone(Arc<Value>),
    /// It waits for its finalizers.
    Waits(Arc<Value>),
}

/// DELETE of one object.
///
/// Source: apiserver pkg/endpoints/handlers/delete.go and pkg/registry/generic/registry/store.go.
pub(super) async fn delete(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let options = read_options(request)?;
    let resource = Arc::clone(&request.target.resource);
    let name = request.target.name.clone();
    let deleted = delete_one(request, &name, &options, &name).await?;
    let shows_object = ANSWERED_WITH_THE_OBJECT.contains(&resource.gvr.group_resource().as_str());
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
    let options = read_options(request)?;
    let (selected, _) = read::selected(request)?;
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

/// The `DeleteOptions` of the body and the query; the audit log is told of those of the body.
fn read_options(request: &mut ObjectRequest<'_>) -> Result<options::RequestOptions, Box<Status>> {
    let document = body::document(&request.headers, &request.body)?;
    let has_body = document.is_some();
    let options = options::of_delete(document, &request.query)?;
    if has_body {
        // The audit log encodes the internal type.
        let mut noted = options.document.clone();
        noted["apiVersion"] = "meta.k8s.io/__internal".into();
        request.note_decoded(&noted);
    }
    Ok(options)
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

    let marked = deletion::mark(&stored, &options.document, &resource.gvr.group_resource());
    let Marked::Changed { object: marked, gone } = marked else { return Ok(Deleted::Waits(old)) };
    let mut attributes = request.attributes(Operation::Delete, &resource.kind);
    admitted_name.clone_into(&mut attributes.name);
    attributes.old_object = Some((*old).clone());
    attributes.options =
        Some(normalised(&options.document, &marked, &resource.gvr.group_resource(), admitted_name));
    attributes.dry_run = options.dry_run;
    request.passage.mutate(&mut attributes, Times::Whole).await?;
    request.passage.validate(&attributes).await?;
    if options.dry_run {
        let shown = Arc::new(marked);
        let shown =
            request.server.state.in_version_of(&shown, &resource).map_err(create::conversion_failed)?;
        return Ok(if gone { Deleted::Gone(shown) } else { Deleted::Waits(shown) });
    }
    remove(request, &key, &stored, marked, gone)
}

/// Removes an object, or stores it as marked if it has to wait.
pub(super) fn remove(
    request: &ObjectRequest<'_>,
    key: &super::storage::Key,
    stored: &Arc<Value>,
    mut marked: Value,
    gone: bool,
) -> Result<Deleted, Box<Status>> {
    let resource = &request.target.resource;
    let server = request.server;
    let raced = || {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Box::new(Status::conflict(&resource.gvr.group, &resource.gvr.resource, &key.name, why))
    };
    let shown =
        |object: &Arc<Value>| server.state.in_version_of(object, resource).map_err(create::conversion_failed);
    if !gone {
        if marked == **stored {
            return Ok(Deleted::Waits(shown(stored)?));
        }
        let owners = server.state.storage.owners(key);
        let marked =
            server.state.storage.replace(key, Some(stored), marked, owners).ok().ok_or_else(raced)?;
        if resource.gvr.group_resource() == "namespaces" {
            server.empty_namespace(&key.name)?;
        }
        return Ok(Deleted::Waits(shown(&marked)?));
    }
    let removed = server.state.storage.remove(key, stored).ok().ok_or_else(raced)?;
    // Source: apiserver pkg/storage/etcd3/store.go, `conditionalDelete`.
    metadata::set(&mut marked, "resourceVersion", removed.to_string().into());
    if let [custom, ..] = custom_resources::resources(stored).as_slice()
        && resource.gvr.group == custom_resources::GROUP
    {
        server.state.storage.remove_resource(&custom.gvr.group, &custom.gvr.resource);
    }
    server.has_changed(resource)?;
    Ok(Deleted::Gone(shown(&Arc::new(marked))?))
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

/// The options that admission sees: a negative grace period is one second, but for a collection; of a Pod, how long it
/// really has; of a Namespace, which one it is.
///
/// Source: apiserver pkg/registry/rest/delete.go, `BeforeDelete`; kubernetes pkg/registry/core/pod/strategy.go, `CheckGracefulDelete`; kubernetes
/// pkg/registry/core/namespace/storage/storage.go, `Delete`.
fn normalised(options: &Value, marked: &Value, resource: &str, name: &str) -> Value {
    let mut options = options.clone();
    let grace = options.get("gracePeriodSeconds").and_then(Value::as_i64);
    if !name.is_empty() && grace.is_some_and(|seconds| seconds < 0) {
        options["gracePeriodSeconds"] = 1.into();
    }
    if resource == "namespaces"
        && let Some(members) = options.as_object_mut()
        && let Some(preconditions) =
            members.entry("preconditions").or_insert_with(|| json!({})).as_object_mut()
    {
        preconditions.entry("uid").or_insert_with(|| metadata::text(marked, "uid").into());
    }
    if resource == "pods"
        && !name.is_empty()
        && let Some(seconds) = marked.pointer("/metadata/deletionGracePeriodSeconds")
    {
        options["gracePeriodSeconds"] = seconds.clone();
    }
    options
}
