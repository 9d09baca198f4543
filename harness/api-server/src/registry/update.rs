//! Updates and patches objects.

use std::sync::Arc;

use kubernetes_admission::attributes::{GroupVersionKind, Operation};
use kubernetes_admission::cluster_state::ClusterState as _;
use kubernetes_managed_fields::restore_times;
use kubernetes_types::equality::semantically_equal;
use kubernetes_types::schema;
use kubernetes_types::status::{Status, Unsupported, group_resource};
use kubernetes_types::weight::weight;
use serde::de::IgnoredAny;
use serde_json::Value;
use tracing::info;

use super::authorization::{self, escalation, signers, status_fields};
use super::field_manager::{self, ManagedObject};
use super::patches::{self, Change};
use super::request::ObjectRequest;
use super::spans;
use super::state::{State, normalize_stored};
use crate::apimachinery::options::RequestOptions;
use crate::apimachinery::{metadata, options};
use crate::kinds::apiextensions::custom_validation;
use crate::kinds::core::service::reading as service_reading;
use crate::kinds::discovery::Resource;
use crate::kinds::{scale, strategy};
use crate::registry::answer::Answer;
use crate::registry::{apply, body, create, preconditions, undecodable};
use crate::storage::Key;

/// Handles a PUT.
pub(crate) async fn update(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let options = options::of_write("UpdateOptions", &request.query)?;
    let kind = request.target.kind().clone();
    info!("About to convert to expected version");
    let mut object = body::object(request, &kind)?;
    request.note_sent(&object);
    body::set_defaults(request, &mut object)?;
    info!("Conversion done");
    if request.target.subresource == "scale" {
        scale::complete(&mut object);
    }
    request.note_decoded(&object);
    body::check_name(&object, &request.target.name)?;
    create::fill_in_namespace(&mut object, request)?;
    request.early_warnings.extend(metadata::without_duplicate_owners(&mut object, create::DUPLICATE_OWNERS));
    info!("About to store object in database");
    let body_bytes = request.body.len();
    let written = write(request, &Change::Replace(object), &options).await;
    spans::wrote(body_bytes, &written);
    written
}

/// Handles a PATCH.
pub(crate) async fn patch(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let options = if body::media_type(&request.headers) == apply::MEDIA_TYPE {
        options::of_apply(&request.query)?
    } else {
        options::of_write("PatchOptions", &request.query)?
    };
    let change = patches::read(request).map_err(|status| unless_missing(request, status))?;
    info!("Recorded the audit event");
    let answer = write(request, &change, &options).await?;
    info!("Object stored in database");
    Ok(answer)
}

/// Returns the error for a patch that cannot be decoded, or 404 if the object does not exist.
///
/// kube-apiserver decodes a patch that is valid JSON after it has read the object.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `validateAndTranscodePatch` and `jsonPatcher`.
fn unless_missing(request: &ObjectRequest<'_>, status: Box<Status>) -> Box<Status> {
    let is_decoded_later = matches!(status.code, 400 | 413)
        && body::media_type(&request.headers) != apply::MEDIA_TYPE
        && serde_json::from_slice::<IgnoredAny>(&request.body).is_ok();
    let target = &request.target;
    if !is_decoded_later || request.registry.state.storage.at(&target.key(&target.name)).is_some() {
        return status;
    }
    let gvr = &target.resource.gvr;
    Box::new(Status::not_found(&gvr.group, &gvr.resource, &target.name))
}

/// An attempt to write an object.
///
/// The first attempt starts from the server's cache. Later attempts start from the storage.
///
/// Source: apiserver pkg/storage/cacher/cacher.go, `GuaranteedUpdate` and `Delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    Later,
}

/// Admits and stores a change.
///
/// If another write came first, starts over with a new admission run until the request times out. Also starts over if
/// the first attempt was rejected and the object has changed since.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `Update`; pkg/storage/etcd3/store.go, `GuaranteedUpdate`.
/// Rule: CHN-02.
async fn write(
    request: &mut ObjectRequest<'_>,
    change: &Change,
    options: &RequestOptions,
) -> Result<Answer, Box<Status>> {
    let key = request.target.key(&request.target.name);
    let mut which = Attempt::First;
    loop {
        let Some(stored) = request.registry.state.storage.at(&key) else {
            if creates(request, change) {
                match create_missing(request, change, options).await {
                    Err(status) if status.reason == "AlreadyExists" => {
                        which = Attempt::Later;
                        continue;
                    }
                    done => return done,
                }
            }
            let gvr = &request.target.resource.gvr;
            let is_status_of_service =
                gvr.group_resource() == "services" && request.target.subresource == "status";
            if is_status_of_service && matches!(change, Change::Apply(_) | Change::Replace(_)) {
                let what = "creating a Service through its status".to_owned();
                return Err(Box::new(Status::unsupported(&Unsupported { what })));
            }
            return Err(Box::new(Status::not_found(&gvr.group, &gvr.resource, &request.target.name)));
        };
        if which == Attempt::First {
            // Reserves the memory of the decoded object and of the copy that an attempt changes.
            request.reservation.try_grow(2 * weight(&stored))?;
        }
        match attempt(request, change, options, &stored, which).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(_) if !options.dry_run && started_from_outdated(request, &key, &stored, which) => {}
            Err(status) => return Err(status),
        }
        which = Attempt::Later;
    }
}

/// Returns whether a PUT or a patch creates a missing object.
///
/// Source: `AllowCreateOnUpdate` in kubernetes `pkg/registry/*/*/strategy.go`; apiserver
/// pkg/endpoints/handlers/patch.go, `forceAllowCreate`.
/// Rule: APY-01, APY-21.
fn creates(request: &ObjectRequest<'_>, change: &Change) -> bool {
    let target = &request.target;
    let may = match change {
        Change::Apply(_) => true,
        Change::Replace(_) => strategy::allows_creation_by_update(&target.resource),
        Change::Merge(_) | Change::Operations(_) | Change::Strategic(_) => false,
    };
    may && target.subresource.is_empty()
}

/// Creates the object of a PUT or a patch. The object must not exist yet.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `Update`.
/// Rule: APY-01, APY-21, REQ-09.
async fn create_missing(
    request: &mut ObjectRequest<'_>,
    change: &Change,
    options: &RequestOptions,
) -> Result<Answer, Box<Status>> {
    let (resource, kind) = (Arc::clone(&request.target.resource), request.target.kind().clone());
    let has_labels = match change {
        Change::Apply(patch) => patch.has_labels(),
        Change::Replace(object) => metadata::has_labels(object),
        Change::Merge(_) | Change::Operations(_) | Change::Strategic(_) => true,
    };
    let managed = match change {
        Change::Apply(patch) => apply::apply(request, patch, None, &kind).await?,
        Change::Replace(object) => {
            let wanted = metadata::text(object, "uid");
            if !wanted.is_empty() {
                let key = request.target.key(&request.target.name);
                return Err(preconditions::wrong_uid(&resource, &key, options.dry_run, wanted, ""));
            }
            field_manager::update(request, &kind, None, object.clone()).await?
        }
        Change::Merge(_) | Change::Operations(_) | Change::Strategic(_) => {
            return Err(Box::new(Status::internal_error("nothing creates the object")));
        }
    };
    let options = options::of_write("CreateOptions", &request.query)?;
    let origin = create::CreateOrigin::Update { has_labels };
    create::admit_and_store(request, create::NewObject { managed, options, origin }).await
}

/// Returns whether to ignore a rejection because the attempt started from an object that is no longer stored.
///
/// Rule: CHN-02.
pub(crate) fn started_from_outdated(
    request: &ObjectRequest<'_>,
    key: &Key,
    stored: &Arc<Value>,
    which: Attempt,
) -> bool {
    which == Attempt::First
        && !request.admitting.is_out_of_time()
        && request.registry.state.storage.at(key).is_none_or(|now| !Arc::ptr_eq(&now, stored))
}

/// Makes one attempt to admit and store a change. Returns `None` if another write came first.
///
/// Rule: APY-08, CHN-03, CHN-04, REQ-09, REQ-17.
async fn attempt(
    request: &mut ObjectRequest<'_>,
    change: &Change,
    options: &RequestOptions,
    stored: &Arc<Value>,
    which: Attempt,
) -> Result<Option<Answer>, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    let key = request.target.key(&request.target.name);
    let state = &request.registry.state;
    let old = undecodable::read_for_update(state, stored, &resource, options).await?;
    let is_scale = request.target.subresource == "scale";
    // Admission receives the Scale. The stored object is the scaled object.
    let shown_old = if is_scale {
        Arc::new(field_manager::scale_of(&old, &resource, &state.resources())?)
    } else {
        Arc::clone(&old)
    };
    let kind = request.target.kind().clone();
    let is_patch = !matches!(change, Change::Replace(_));
    if is_patch {
        info!("About to apply patch");
    }
    let ManagedObject { object: new, times } = patches::apply(request, change, &shown_old, &kind).await?;
    let wanted_uid = metadata::text(&new, "uid");
    let uid = metadata::text(&old, "uid");
    if !is_patch && !wanted_uid.is_empty() && wanted_uid != uid {
        return Err(preconditions::wrong_uid(&resource, &key, options.dry_run, wanted_uid, uid));
    }

    let mut attributes = request.attributes(Operation::Update, &kind);
    attributes.object = Some(new);
    attributes.old_object = Some((*shown_old).clone());
    attributes.options = Some(options.document.clone());
    attributes.dry_run = options.dry_run;
    let mut run = request.admitting.begin(attributes, times);
    if is_patch {
        info!("About to check admission control");
    }
    field_manager::mutate(request, &mut run).await?;
    let Some(mut new) = run.take_object() else {
        return Err(Box::new(Status::internal_error("admission left no object")));
    };

    let told = metadata::without_duplicate_owners(&mut new, create::DUPLICATE_OWNERS_AFTER_ADMISSION);
    request.warnings.extend(told);
    escalation::check(request, &new, Some(&old))?;
    if is_scale {
        scale::check_replicas(&new, &resource)?;
        scale::validate(&new, &old, &resource)?;
    }
    preconditions::check_update(&new, &old, &resource, is_scale)?;
    metadata::set(&mut new, "resourceVersion", metadata::text(&old, "resourceVersion").into());
    let mut scaled = None;
    // The values allocated to a Service are held until it is stored.
    let mut allocation = None;
    if is_scale {
        let mut object = scale::apply(&new, &old, &resource)?;
        field_manager::take_over_scale(&mut object, &new, &resource, &state.resources())?;
        restore_times(&old, &mut object, |old, object| are_same(old, object, &resource));
        if resource.custom.is_some() {
            custom_validation::validate(&object, Some(&old), &resource, "", &mut request.warnings)?;
        }
        // Validating admission does not receive the field managers.
        new = scale::scale_of(&object, &resource);
        run.attributes_mut().old_object = Some(scale::scale_of(&old, &resource));
        scaled = Some(object);
    } else {
        create::fill_in_namespace(&mut new, request)?;
        if request.target.subresource.is_empty() {
            let services = &request.registry.services;
            allocation = services.complete(&mut new, Some(&old), &resource, options.dry_run)?;
            // Source: kubernetes pkg/registry/core/service/storage/storage.go, `beginUpdate`.
            let read = service_reading::read(Arc::clone(&old), &resource);
            if !Arc::ptr_eq(&read, &old) {
                run.attributes_mut().old_object = Some(Arc::unwrap_or_clone(read));
            }
        }
        let given = GroupVersionKind::from_object(&new);
        // The JSON of a patched object omits these fields.
        if !run.was_patched() {
            request.empty_fields.restore(&mut new);
        }
        new = prepared(new, &old, stored, request)?;
        // The metadata of a custom resource stays unstructured until it is stored.
        if resource.custom.is_none() {
            schema::normalize_metadata(&mut new);
        }
        restore_times(&old, &mut new, |old, new| are_same(old, new, &resource));
        let subresource = request.target.subresource.as_str();
        let first =
            strategy::admin_access(&new, Some(&old), &resource, subresource, &*request.registry.state);
        let devices = status_fields::of_claim(request, if is_patch { "patch" } else { "update" }, &new, &old);
        let first = first.into_iter().chain(devices).collect();
        strategy::validate_after(first, &new, Some(&old), &resource, subresource, &mut request.warnings)
            .map_err(|status| about_sent_kind(status, &given, &resource))?;
        authorization::check_fields(request, &new, &old)?;
        strategy::canonicalize(&mut new, &resource)?;
        strategy::validate_conditions(&new, &old, &resource, subresource)?;
        request.warnings.extend(strategy::warnings(&new, Some(&old), &resource, subresource));
        request.empty_fields.remove(&mut new, &resource.kind);
    }
    signers::check(request, &new, Some(&old))?;
    run.attributes_mut().object = Some(new);
    request.admitting.validate(&mut run).await?;
    let Some(new) = run.take_object() else {
        return Err(Box::new(Status::internal_error("admission left no object")));
    };
    let write = FinalObject { stored, old: &old, new: scaled.unwrap_or(new), which };
    let stored = store(request, write, options.dry_run).await;
    drop(allocation);
    stored
}

/// Returns the error with the kind that the client sent instead of the stored kind.
///
/// In a status update, a custom resource keeps its stored kind, but errors refer to the kind in the request.
///
/// Source: apiserver pkg/registry/rest/update.go, `BeforeUpdate`.
fn about_sent_kind(mut status: Box<Status>, given: &GroupVersionKind, resource: &Resource) -> Box<Status> {
    let own = &resource.kind;
    if resource.custom.is_none() || given == own || status.reason != "Invalid" {
        return status;
    }
    let Some(rest) = status.message.strip_prefix(&group_resource(&own.group, &own.kind)) else {
        return status;
    };
    status.message = format!("{}{rest}", group_resource(&given.group, &given.kind));
    if let Some(details) = &mut status.details {
        details.group.clone_from(&given.group);
        details.kind.clone_from(&given.kind);
    }
    status
}

/// Returns whether two objects are equal. Objects of built-in kinds are compared as values of their Go type.
fn are_same(one: &Value, other: &Value, resource: &Resource) -> bool {
    if resource.custom.is_some() { one == other } else { semantically_equal(one, other, &resource.kind) }
}

/// Returns `new` with the changes that the resource's strategy makes.
///
/// Built-in kinds are prepared in their storage version, because another version might store retained fields in an
/// annotation.
fn prepared(
    mut new: Value,
    old: &Arc<Value>,
    stored: &Arc<Value>,
    request: &ObjectRequest<'_>,
) -> Result<Value, Box<Status>> {
    let (resource, subresource) = (&request.target.resource, request.target.subresource.as_str());
    if resource.custom.is_some() || Arc::ptr_eq(old, stored) {
        strategy::update::prepare_for_update(&mut new, old, resource, subresource);
        return Ok(new);
    }
    let state = &request.registry.state;
    let mut new =
        state.convert(&new, &GroupVersionKind::from_object(stored)).map_err(create::conversion_failed)?;
    strategy::update::prepare_for_update(&mut new, stored, resource, subresource);
    state.convert(&new, &resource.kind).map_err(create::conversion_failed)
}

/// The result of an attempt, before it is stored.
struct FinalObject<'a> {
    /// The stored object from which the attempt started.
    stored: &'a Arc<Value>,
    /// The stored object in the version of the request.
    old: &'a Arc<Value>,
    new: Value,
    which: Attempt,
}

/// Returns the object of the first attempt, converted back to its storage version.
///
/// kube-apiserver compares the result of the first attempt with the object of its cache, which is in the version of the
/// request. A conversion webhook may return another object than the stored one.
///
/// Source: apiserver pkg/storage/etcd3/store.go, `getStateFromObject`.
async fn start_as_stored(old: &Arc<Value>, resource: &Resource, state: &State) -> Result<Value, Box<Status>> {
    let mut start = Value::clone(old);
    create::loses_metadata(&mut start, resource);
    let mut start = state.to_storage(start, resource).await.map_err(create::conversion_failed)?;
    state.complete_written(&mut start, resource).map_err(|what| create::unsupported(&what))?;
    Ok(start)
}

/// Stores the object, or removes it if its last finalizer was removed. Returns `None` if another write came first.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `ShouldDeleteDuringUpdate`.
/// Rule: CHN-04, CHN-07, CNV-08, KND-16, SCH-18.
async fn store(
    request: &ObjectRequest<'_>,
    write: FinalObject<'_>,
    dry_run: bool,
) -> Result<Option<Answer>, Box<Status>> {
    let FinalObject { stored, old, mut new, which } = write;
    let resource = &request.target.resource;
    let state = &request.registry.state;
    let key = request.target.key(&request.target.name);
    let is_scale = request.target.subresource == "scale";
    let shown = async |object: &Arc<Value>| -> Result<Option<Answer>, Box<Status>> {
        let object = if resource.custom.is_some() {
            let shown = state.in_version_of(object, resource).await;
            shown.map_err(|error| undecodable::of_write(error, object, resource))?
        } else {
            Arc::clone(object)
        };
        Ok(Some(Answer::ok(if is_scale { Arc::new(scale::scale_of(&object, resource)) } else { object })))
    };
    metadata::set(&mut new, "resourceVersion", metadata::text(old, "resourceVersion").into());
    normalize_stored(&mut new, resource);
    // Fields that a custom resource loses when it is stored count as a change.
    let mut is_same = new == **old;
    let mut is_incomplete_as_stored = create::loses_metadata(&mut new, resource);
    // The last finalizer was removed: a terminating object without a remaining grace period is removed without a
    // DELETE.
    let goes = metadata::is_deleting(old)
        && old.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0
        && !metadata::has_finalizers(&new)
        && !(crate::kinds::table::of(resource).waits_for_controllers)(&new);
    let by_webhook = State::asks_webhook(stored, resource);
    let mut is_converted_anew = false;
    // A removed object is not converted to the storage version.
    if resource.custom.is_some() && !(goes && by_webhook) {
        new = state.to_storage(new, resource).await.map_err(create::conversion_failed)?;
        is_incomplete_as_stored |=
            state.complete_written(&mut new, resource).map_err(|what| create::unsupported(&what))?;
        // After a conversion by a webhook or from another version, the object is compared in its storage version.
        if by_webhook || GroupVersionKind::from_object(&new) != GroupVersionKind::from_object(stored) {
            let equals_stored = new == **stored;
            let equals_start = match which {
                Attempt::First => is_same || new == start_as_stored(old, resource, state).await?,
                Attempt::Later => equals_stored,
            };
            is_converted_anew = equals_start && !equals_stored;
            is_same = equals_start && equals_stored;
        }
    }
    // If the stored object lacks defaults, has metadata that reads do not return, or differs from the conversion
    // result, the attempt starts over and writes the object.
    // Source: apiserver pkg/storage/etcd3/store.go, `GuaranteedUpdate`.
    let is_incomplete = is_same && {
        metadata::set(&mut new, "resourceVersion", metadata::text(old, "resourceVersion").into());
        is_incomplete_as_stored != state.storage.is_incomplete(&key, stored)
            || (resource.custom.is_some() && new != **stored)
    };
    let differs_as_stored = is_incomplete || is_converted_anew;
    let must_look_again = (is_same && started_from_outdated(request, &key, stored, which))
        || (differs_as_stored && which == Attempt::First);
    if !dry_run && !goes && must_look_again {
        return Ok(None);
    }
    if dry_run || (!goes && is_same && !is_incomplete) {
        return shown(&Arc::new(new)).await;
    }
    if goes {
        if state.storage.remove(&key, stored).is_err() {
            return Ok(None);
        }
        request.registry.has_changed(resource)?;
        return shown(&Arc::new(new)).await;
    }
    let new = state.to_storage(new, resource).await.map_err(create::conversion_failed)?;
    state.storage.check_space(&key, &new)?;
    match state.storage.replace(&key, Some(stored), new) {
        Ok(stored) => {
            if is_incomplete_as_stored {
                state.storage.note_incomplete(&key, &stored);
            }
            request.registry.has_changed(resource)?;
            // Built-in kinds are stored in one version and read in another.
            if resource.custom.is_some() {
                return shown(&stored).await;
            }
            let read = state.in_version_of(&stored, resource).await.map_err(create::conversion_failed)?;
            shown(&read).await
        }
        Err(crate::storage::WriteConflict) => Ok(None),
    }
}
