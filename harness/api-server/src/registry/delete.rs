//! Handles requests that delete objects.

use std::sync::Arc;

use http::StatusCode;
use kubernetes_admission::attributes::Operation;
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_types::json::set;
use kubernetes_types::status::Status;
use kubernetes_types::weight::weight;
use serde_json::{Value, json};
use tracing::info;

use super::request::ObjectRequest;
use super::state::State;
use super::update::{Attempt, started_from_outdated};
use crate::apimachinery::options::RequestOptions;
use crate::apimachinery::{metadata, options};
use crate::kinds::deletion::is_graceful;
use crate::kinds::kind::DeleteEffect;
use crate::kinds::strategy::deletion;
use crate::kinds::table;
use crate::registry::answer::Answer;
use crate::registry::{body, create, preconditions, read, undecodable, unsafe_deletion};
use crate::storage::Key;

/// Determines whether a deletion runs admission.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DeletePath<'a> {
    /// Runs admission with this object name. The name is empty for a collection.
    Admission(&'a str),
    /// Skips admission, because the request that causes the deletion has already been admitted.
    WithoutAdmission,
}

/// The result of a deletion.
pub(crate) enum DeleteResult {
    /// The object was removed.
    Removed(Arc<Value>),
    /// The object remains until its finalizers are removed or its grace period ends.
    Pending(Arc<Value>),
    /// A dry run that would remove the last finalizers and then the object. The client receives an empty object.
    DryRunRemoved(Arc<Value>),
}

/// Handles a DELETE of one object.
///
/// Source: apiserver pkg/endpoints/handlers/delete.go and pkg/registry/generic/registry/store.go.
/// Rule: REQ-24.
pub(crate) async fn delete(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let options = read_options(request)?;
    if unsafe_deletion::is_asked_for(&options) {
        return Err(Box::pin(unsafe_deletion::refusal(request)).await);
    }
    warn(request, &options);
    let resource = Arc::clone(&request.target.resource);
    let name = request.target.name.clone();
    deletion::check_deletion(&resource, &name)?;
    info!("About to delete object from database");
    let deleted = delete_one(request, &name, &options, DeletePath::Admission(&name)).await?;
    info!("Object deleted from database");
    if deletion::is_definition(&resource) && !options.dry_run {
        request.registry.finish_definitions();
    }
    let shows_object = deletion::returns_deleted_object(&resource);
    match deleted {
        // Source: apiserver pkg/endpoints/handlers/delete.go, `DeleteResource`.
        DeleteResult::Pending(object)
            if options.document.get("orphanDependents") == Some(&Value::Bool(false)) =>
        {
            Ok(Answer::Object(StatusCode::ACCEPTED, object))
        }
        DeleteResult::Pending(object) | DeleteResult::DryRunRemoved(object) => Ok(Answer::ok(object)),
        DeleteResult::Removed(object) if shows_object => Ok(Answer::ok(object)),
        DeleteResult::Removed(object) => {
            let mut details =
                json!({"name": name, "kind": resource.gvr.resource, "uid": metadata::text(&object, "uid")});
            if !resource.gvr.group.is_empty() {
                set(&mut details, &["group"], &*resource.gvr.group);
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

/// Handles a DELETE of all objects that the query selects. Admission runs once per object, with an empty name.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `DeleteCollection`.
/// Rule: LST-07, REQ-14.
pub(crate) async fn delete_collection(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let options = read_options(request)?;
    if unsafe_deletion::is_asked_for(&options) {
        return Err(unsafe_deletion::refused_for_collections());
    }
    warn(request, &options);
    let selected = read::selected(request).await?;
    for item in &selected.items {
        let name = metadata::text(&item.object(), "name").to_owned();
        match delete_one(request, &name, &options, DeletePath::Admission("")).await {
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
            Ok(_) => {}
        }
    }
    Ok(Answer::List(selected))
}

fn warn(request: &mut ObjectRequest<'_>, options: &RequestOptions) {
    let warning = deletion::deletion_warning(&request.target.resource, &options.document);
    request.early_warnings.extend(warning.map(str::to_owned));
}

/// Reads the `DeleteOptions` in the body and the query. The audit log contains only the options in the body.
fn read_options(request: &mut ObjectRequest<'_>) -> Result<options::RequestOptions, Box<Status>> {
    let document = body::document(request)?;
    let has_body = document.is_some();
    let options = options::of_delete(document, &request.query)?;
    if has_body {
        info!("Decoded delete options");
        // The audit log encodes the internal type.
        let mut noted = options.document.clone();
        set(&mut noted, &["apiVersion"], "meta.k8s.io/__internal");
        request.note_decoded(&noted);
        info!("Recorded the audit event");
    }
    Ok(options)
}

/// Admits and performs a deletion.
///
/// If another write came first, the deletion starts over with a new admission run. It also starts over if the first
/// attempt was rejected and the object has changed since.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `Delete`; pkg/storage/etcd3/store.go, `conditionalDelete`.
/// Rule: CHN-02, CHN-06.
pub(crate) async fn delete_one(
    request: &mut ObjectRequest<'_>,
    name: &str,
    options: &RequestOptions,
    delete_path: DeletePath<'_>,
) -> Result<DeleteResult, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    let (group, plural) = (&resource.gvr.group, &resource.gvr.resource);
    let key = request.target.key(name);
    let mut which = Attempt::First;
    let mut at_once = false;
    loop {
        let Some(stored) = request.registry.state.storage.at(&key) else {
            return Err(Box::new(Status::not_found(group, plural, name)));
        };
        let by_name = matches!(delete_path, DeletePath::Admission(name) if !name.is_empty());
        if let Some(message) = deletion::failed_precondition(&resource, by_name) {
            preconditions::check_delete_by_kind(&stored, &options.document, &resource, message)?;
        }
        match which {
            Attempt::First => {
                // Reserves the memory of the decoded object and of its marked copy.
                request.reservation.try_grow(2 * weight(&stored))?;
                preconditions::check_delete(&stored, &options.document, group, &resource.kind.kind, name)?;
            }
            Attempt::Later => preconditions::check_stored(&stored, options, &resource, &key)?,
        }
        let marked = deletion::mark_as_deleting(&stored, &options.document, &resource, by_name);
        let DeleteEffect::Changed { object: marked, gone } = marked else {
            let state = &request.registry.state;
            let shown = state.in_version_of(&stored, &resource).await;
            return Ok(DeleteResult::Pending(
                shown.map_err(|error| undecodable::of_read(error, &stored, &resource))?,
            ));
        };
        // An object that is deleted immediately, without a grace period, is removed even if a finalizer was added in
        // the meantime.
        let (marked, gone) = if at_once { ((*stored).clone(), true) } else { (marked, gone) };
        let is_first_step = !at_once;
        at_once = gone && !is_graceful(&stored, table::of(&resource));
        if at_once && is_first_step && metadata::has_finalizers(&stored) {
            match take_finalizers(request, &stored, options, delete_path, &key).await {
                Ok(Some(shown)) => return Ok(shown),
                Ok(None) => {}
                Err(_) if !options.dry_run && started_from_outdated(request, &key, &stored, which) => {
                    (which, at_once) = (Attempt::Later, false);
                    continue;
                }
                Err(status) => return Err(status),
            }
        }
        // A Pod is marked first, unless its grace period is zero.
        let in_two_steps = gone && !at_once && !options.dry_run;
        let outcome =
            attempt(request, &stored, marked, gone && !in_two_steps, options, delete_path, &key).await;
        match outcome {
            Ok(Some(_)) if in_two_steps => {
                return remove_marked(request, &stored, options, delete_path, &key).await;
            }
            Ok(Some(deleted)) => return Ok(deleted),
            Ok(None) => {}
            Err(_) if !options.dry_run && started_from_outdated(request, &key, &stored, which) => {}
            Err(status) => return Err(status),
        }
        which = Attempt::Later;
    }
}

/// Admits a deletion that removes the last finalizers of an object before it removes the object.
///
/// The server does not store the object without its finalizers, but runs admission again when it removes the object. A
/// dry run ends after the first admission run and returns a result, because kube-apiserver would continue with the
/// `resourceVersion` of an update that does not exist.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `updateForGracefulDeletionAndFinalizers` and `Delete`.
/// Rule: CHN-13.
async fn take_finalizers(
    request: &mut ObjectRequest<'_>,
    stored: &Arc<Value>,
    options: &RequestOptions,
    delete_path: DeletePath<'_>,
    key: &Key,
) -> Result<Option<DeleteResult>, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    admit(request, stored, stored, options, delete_path).await?;
    if options.dry_run {
        return Ok(Some(DeleteResult::DryRunRemoved(Arc::new(deletion::empty_object(&resource)))));
    }
    if options.document.pointer("/preconditions/resourceVersion").is_some_and(Value::is_string) {
        preconditions::check_versions(stored, None, Some(""), false, &resource, key)?;
    }
    Ok(None)
}

/// Admits and performs one attempt of a deletion. Returns `None` if another write came first.
async fn attempt(
    request: &mut ObjectRequest<'_>,
    stored: &Arc<Value>,
    marked: Value,
    gone: bool,
    options: &RequestOptions,
    delete_path: DeletePath<'_>,
    key: &Key,
) -> Result<Option<DeleteResult>, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    admit(request, stored, &marked, options, delete_path).await?;
    if options.dry_run {
        let shown = Arc::new(marked);
        let shown = request.registry.state.in_version_of(&shown, &resource).await;
        let shown = shown.map_err(create::conversion_failed)?;
        return Ok(Some(if gone { DeleteResult::Removed(shown) } else { DeleteResult::Pending(shown) }));
    }
    remove(request, key, stored, marked, gone).await
}

/// Runs admission for the deletion of `stored`.
///
/// Rule: REQ-09.
async fn admit(
    request: &mut ObjectRequest<'_>,
    stored: &Arc<Value>,
    marked: &Value,
    options: &RequestOptions,
    delete_path: DeletePath<'_>,
) -> Result<(), Box<Status>> {
    let DeletePath::Admission(admitted_name) = delete_path else { return Ok(()) };
    let resource = Arc::clone(&request.target.resource);
    let old = request.registry.state.in_version_of(stored, &resource).await;
    let old = old.map_err(|error| undecodable::of_read(error, stored, &resource))?;
    let mut attributes = request.attributes(Operation::Delete, &resource.kind);
    admitted_name.clone_into(&mut attributes.name);
    attributes.old_object = Some((*old).clone());
    attributes.options =
        Some(deletion::normalized_options(&options.document, stored, marked, &resource, admitted_name));
    attributes.dry_run = options.dry_run;
    let mut run = request.admitting.begin(attributes, TimePrecision::Seconds);
    request.admitting.mutate(&mut run).await?;
    request.admitting.validate(&mut run).await
}

/// Removes a Pod that the first step of its deletion has marked; `before` is the Pod before that step.
///
/// Admission runs again for the marked Pod. kube-apiserver first tries to delete the Pod in its cache. The cache does
/// not contain the mark yet. kube-apiserver ignores the result of that attempt unless the request times out.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `Delete`; pkg/storage/cacher/cacher.go, `Delete`.
/// Rule: CHN-06.
async fn remove_marked(
    request: &mut ObjectRequest<'_>,
    before: &Arc<Value>,
    options: &RequestOptions,
    delete_path: DeletePath<'_>,
    key: &Key,
) -> Result<DeleteResult, Box<Status>> {
    let storage = Arc::clone(&request.registry.state.storage);
    let Some(mut marked) = storage.at(key) else { return Ok(DeleteResult::Removed(Arc::clone(before))) };
    // Webhooks receive the precondition that the client sent.
    let mut wanted = options.clone();
    if let Some(version) = wanted.document.pointer_mut("/preconditions/resourceVersion") {
        // The cached Pod does not satisfy the precondition, so admission does not run for that Pod.
        *version = metadata::text(&marked, "resourceVersion").into();
    } else if let Err(status) = admit(request, before, &marked, options, delete_path).await
        && request.admitting.is_out_of_time()
    {
        return Err(status);
    }
    let mut shown = options.clone();
    if matches!(delete_path, DeletePath::Admission(name) if !name.is_empty()) {
        set(&mut shown.document, &["gracePeriodSeconds"], 0);
    }
    loop {
        // If another request removed the Pod first, the result is the same.
        let Some(stored) = storage.at(key) else { return Ok(DeleteResult::Removed(marked)) };
        marked = stored;
        preconditions::check_stored(&marked, &wanted, &request.target.resource, key)?;
        if let Some(deleted) =
            attempt(request, &marked, (*marked).clone(), true, &shown, delete_path, key).await?
        {
            return Ok(deleted);
        }
    }
}

/// Removes an object, or stores the marked object if deletion is delayed. Returns `None` if another write came first.
pub(crate) async fn remove(
    request: &ObjectRequest<'_>,
    key: &Key,
    stored: &Arc<Value>,
    mut marked: Value,
    gone: bool,
) -> Result<Option<DeleteResult>, Box<Status>> {
    let resource = &request.target.resource;
    let registry = request.registry;
    let shown = async |object: &Arc<Value>| {
        let shown = registry.state.in_version_of(object, resource).await;
        shown.map_err(|error| undecodable::of_write(error, object, resource))
    };
    if !gone {
        if marked == **stored {
            return Ok(Some(DeleteResult::Pending(shown(stored).await?)));
        }
        if State::asks_webhook(&marked, resource) {
            // The object is marked in the version of the request.
            let object = Arc::unwrap_or_clone(shown(&Arc::new(marked)).await?);
            marked = registry.state.to_storage(object, resource).await.map_err(create::conversion_failed)?;
            registry.state.complete_stored(&mut marked).map_err(|what| create::unsupported(&what))?;
        }
        let Ok(marked) = registry.state.storage.replace(key, Some(stored), marked) else {
            return Ok(None);
        };
        return Ok(Some(DeleteResult::Pending(shown(&marked).await?)));
    }
    let Ok(removed) = registry.state.storage.remove(key, stored) else { return Ok(None) };
    // Source: apiserver pkg/storage/etcd3/store.go, `conditionalDelete`.
    metadata::set(&mut marked, "resourceVersion", removed.to_string().into());
    registry.has_changed(resource)?;
    Ok(Some(DeleteResult::Removed(shown(&Arc::new(marked)).await?)))
}
