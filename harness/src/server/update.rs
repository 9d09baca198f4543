//! Updates and patches objects.

use std::sync::Arc;

use serde_json::Value;

use super::answer::Answer;
use super::authorization::escalation;
use super::body::FieldValidation;
use super::discovery::Resource;
use super::options::RequestOptions;
use super::request::ObjectRequest;
use super::storage::Key;
use super::{body, create, metadata, options, scale, strategy};
use crate::attributes::{GroupVersionKind, Operation};
use crate::cluster_state::ClusterState as _;
use crate::config;
use crate::json_text::json_type;
use crate::ownership::{Owners, Write};
use crate::patch::{ApplyError, Patch};
use crate::schema;
use crate::status::{FieldError, Status, StatusDetails, Unsupported};

/// What an update makes of the stored object.
enum Change {
    /// A whole object, as in a PUT.
    Replace(Value),
    /// A merge patch: RFC 7386.
    Merge(Value),
    /// A JSON patch: RFC 6902.
    Operations(Patch),
}

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// PUT.
pub(super) async fn update(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let options = options::of_write("UpdateOptions", &request.query)?;
    let kind = request.target.kind().clone();
    let mut object = body::object(request, &kind)?;
    request.server.state.set_defaults(&mut object);
    if request.target.subresource == "scale" {
        scale::complete(&mut object);
    }
    request.note_decoded(&object);
    check_name(&object, &request.target.name)?;
    create::fill_in_namespace(&mut object, request)?;
    request.early_warnings.extend(metadata::without_duplicate_owners(&mut object, create::DUPLICATES));
    write(request, &Change::Replace(object), &options).await
}

/// PATCH.
pub(super) async fn patch(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let options = options::of_write("PatchOptions", &request.query)?;
    let invalid = || Box::new(Status::bad_request("invalid JSON patch"));
    let change = match body::media_type(&request.headers) {
        "application/merge-patch+json" => match serde_json::from_slice(&request.body) {
            Ok(patch @ Value::Object(_)) => {
                request.note_decoded(&patch);
                Change::Merge(patch)
            }
            Ok(other) => {
                return Err(Box::new(Status::bad_request(no_patch(&other, "map[string]interface {}"))));
            }
            Err(_) => return Err(invalid()),
        },
        "application/json-patch+json" => {
            let patch = Patch::decode(&request.body);
            let patch = patch.map_err(|error| match serde_json::from_slice::<Value>(&request.body) {
                Ok(found @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_))) => {
                    Box::new(Status::bad_request(no_patch(&found, "[]handlers.jsonPatchOp")))
                }
                Ok(Value::Null | Value::Array(_)) => Box::new(Status::bad_request(error.to_string())),
                Err(_) => invalid(),
            })?;
            request.note_decoded(&patch.operations().into());
            if patch.operations().len() > MOST_OPERATIONS {
                return Err(Box::new(too_many(patch.operations().len())));
            }
            Change::Operations(patch)
        }
        other => {
            let supported = "admit applies application/json-patch+json and application/merge-patch+json";
            let message = match other {
                "application/strategic-merge-patch+json" | "application/apply-patch+yaml" => {
                    format!("admit does not imitate this: {other}: {supported}")
                }
                _ => "415: Unsupported Media Type".to_owned(),
            };
            let mut status = Status::failure(415, "UnsupportedMediaType", message);
            status.details = Some(StatusDetails::default());
            return Err(Box::new(status));
        }
    };
    write(request, &change, &options).await
}

/// A patch that is some other JSON than its `go_type`.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `applyJSPatch`.
fn no_patch(found: &Value, go_type: &str) -> String {
    if found.is_null() {
        return "Invalid JSON Patch".to_owned();
    }
    let kind = json_type(found);
    format!("error decoding patch: json: cannot unmarshal {kind} into Go value of type {go_type}")
}

/// Source: apiserver pkg/endpoints/handlers/rest.go, `checkName`.
fn check_name(object: &Value, name: &str) -> Result<(), Box<Status>> {
    let found = metadata::text(object, "name");
    let message = if found.is_empty() {
        format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")
    } else if found == name {
        return Ok(());
    } else {
        format!("the name of the object ({found}) does not match the name on the URL ({name})")
    };
    Err(Box::new(Status::bad_request(message)))
}

/// Which attempt at a write it is. The first begins with what is in the cache of the server, later ones with what is
/// stored.
///
/// Source: apiserver pkg/storage/cacher/cacher.go, `GuaranteedUpdate` and `Delete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    Later,
}

/// Admits and stores a change. When another write was faster, it begins again with a run of its own, as often as the
/// time of the request allows. So it does when the first attempt is refused and the object has changed meanwhile.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `Update`; pkg/storage/etcd3/store.go, `GuaranteedUpdate`.
async fn write(
    request: &mut ObjectRequest<'_>,
    change: &Change,
    options: &RequestOptions,
) -> Result<Answer, Box<Status>> {
    let gvr = &request.target.resource.gvr;
    if gvr.resource == "certificatesigningrequests" && request.target.subresource == "approval" {
        // Its strategy takes conditions, and nothing else, from the status.
        let what = "the approval of a CertificateSigningRequest".to_owned();
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    let key = create::key(request, &request.target.name);
    let mut which = Attempt::First;
    loop {
        let Some(stored) = request.server.state.storage.at(&key) else {
            let gvr = &request.target.resource.gvr;
            return Err(Box::new(Status::not_found(&gvr.group, &gvr.resource, &request.target.name)));
        };
        match attempt(request, change, options, &stored, which).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(_) if !options.dry_run && is_outdated(request, &key, &stored, which) => {}
            Err(status) => return Err(status),
        }
        which = Attempt::Later;
    }
}

/// Whether a refusal does not count: the attempt began with an object that is not the stored one any more.
pub(super) fn is_outdated(
    request: &ObjectRequest<'_>,
    key: &Key,
    stored: &Arc<Value>,
    which: Attempt,
) -> bool {
    which == Attempt::First
        && !request.admitting.is_out_of_time()
        && request.server.state.storage.at(key).is_none_or(|now| !Arc::ptr_eq(&now, stored))
}

/// None: another write was faster.
async fn attempt(
    request: &mut ObjectRequest<'_>,
    change: &Change,
    options: &RequestOptions,
    stored: &Arc<Value>,
    which: Attempt,
) -> Result<Option<Answer>, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    let name = request.target.name.clone();
    let key = create::key(request, &name);
    let state = &request.server.state;
    let old = state.in_version_of(stored, &resource).map_err(create::conversion_failed)?;
    let is_scale = request.target.subresource == "scale";
    // Admission sees the Scale; what is stored is the object that it scales.
    let shown_old = if is_scale { Arc::new(scale::of(&old, &resource)) } else { Arc::clone(&old) };
    let kind = request.target.kind().clone();
    let new = match change {
        Change::Replace(object) => object.clone(),
        Change::Merge(patch) => {
            let mut object = (*shown_old).clone();
            merge(&mut object, patch);
            patched(request, object, &kind)?
        }
        Change::Operations(patch) => {
            let object = patch.apply(&shown_old).map_err(|error| does_not_apply(&error))?;
            patched(request, object, &kind)?
        }
    };
    let wanted_uid = metadata::text(&new, "uid");
    let uid = metadata::text(&old, "uid");
    if matches!(change, Change::Replace(_)) && !wanted_uid.is_empty() && wanted_uid != uid {
        return Err(Box::new(Status::conflict(
            &gvr_group(&resource),
            &resource.gvr.resource,
            &name,
            &wrong_uid(&resource, &key, options.dry_run, wanted_uid, uid),
        )));
    }

    let mut attributes = request.attributes(Operation::Update, &kind);
    let before = state.storage.owners(&key);
    let write = Write {
        old: Some(&shown_old),
        new: &new,
        by: request.manager(&kind),
        reset: strategy::reset_fields(&resource, &request.target.subresource),
        built_in: is_scale || resource.custom.is_none(),
    };
    let (owners, times) = if is_scale {
        before.after_scaling(&write, &scale::replicas(&resource))
    } else {
        before.after(&write)
    };
    attributes.object = Some(new);
    attributes.old_object = Some((*shown_old).clone());
    attributes.options = Some(options.document.clone());
    attributes.dry_run = options.dry_run;
    let mut run = request.admitting.begin(attributes, times);
    request.admitting.mutate(&mut run).await?;
    let Some(mut new) = run.take_object() else {
        return Err(Box::new(Status::internal_error("admission left no object")));
    };

    let told = metadata::without_duplicate_owners(&mut new, create::DUPLICATES_OF_WEBHOOKS);
    request.warnings.extend(told);
    escalation::check(request, &new, Some(&old))?;
    check_resource_version(&new, &old, &resource, is_scale)?;
    metadata::set(&mut new, "resourceVersion", metadata::text(&old, "resourceVersion").into());
    let mut scaled = None;
    if is_scale {
        scale::validate(&new)?;
        let object = scale::apply(&new, &old, &resource);
        new = scale::of(&object, &resource);
        scaled = Some(object);
    } else {
        create::fill_in_namespace(&mut new, request)?;
        new = prepared(new, &old, stored, request)?;
        // The metadata of a custom resource stay free-form until it is stored.
        if resource.custom.is_none() {
            schema::settle_metadata(&mut new);
        }
        let errors = metadata::validate_update(&new, &old);
        if !errors.is_empty() {
            let kind = &resource.kind;
            let name = metadata::text(&new, "name");
            return Err(Box::new(Status::invalid(&kind.group, &kind.kind, name, &errors)));
        }
        strategy::validate(&new, Some(&old), &resource)?;
        request.warnings.extend(strategy::warnings(&new, Some(&old), &resource));
    }
    run.attributes_mut().object = Some(new);
    request.admitting.validate(&mut run).await?;
    let Some(new) = run.take_object() else {
        return Err(Box::new(Status::internal_error("admission left no object")));
    };
    let write = Final { stored, old: &old, new: scaled.unwrap_or(new), owners, which };
    store(request, write, options.dry_run)
}

/// What the resource's strategy makes of `new`. A kind of the server is prepared in the version in which it is stored: what
/// is kept of the stored object may be in an annotation otherwise.
fn prepared(
    mut new: Value,
    old: &Arc<Value>,
    stored: &Arc<Value>,
    request: &ObjectRequest<'_>,
) -> Result<Value, Box<Status>> {
    let (resource, subresource) = (&request.target.resource, request.target.subresource.as_str());
    if resource.custom.is_some() || Arc::ptr_eq(old, stored) {
        strategy::prepare_for_update(&mut new, old, resource, subresource);
        if request.gives_empty_lists && strategy::is_configuration(resource) {
            metadata::set(&mut new, "generation", (strategy::generation(old) + 1).into());
        }
        return Ok(new);
    }
    let state = &request.server.state;
    let mut new = state.convert(&new, &GroupVersionKind::of(stored)).map_err(create::conversion_failed)?;
    strategy::prepare_for_update(&mut new, stored, resource, subresource);
    state.convert(&new, &resource.kind).map_err(create::conversion_failed)
}

/// What an attempt comes to.
struct Final<'a> {
    /// What it began with.
    stored: &'a Arc<Value>,
    /// That in the version of the request.
    old: &'a Arc<Value>,
    new: Value,
    owners: Owners,
    which: Attempt,
}

/// Stores the object; none if another write was faster.
fn store(
    request: &ObjectRequest<'_>,
    write: Final<'_>,
    dry_run: bool,
) -> Result<Option<Answer>, Box<Status>> {
    let Final { stored, old, mut new, owners, which } = write;
    let resource = &request.target.resource;
    let state = &request.server.state;
    let key = create::key(request, &request.target.name);
    let is_scale = request.target.subresource == "scale";
    let shown = |object: Arc<Value>| {
        Some(Answer::ok(if is_scale { Arc::new(scale::of(&object, resource)) } else { object }))
    };
    metadata::set(&mut new, "resourceVersion", metadata::text(old, "resourceVersion").into());
    let is_same = new == **old && owners == state.storage.owners(&key);
    schema::settle_metadata(&mut new);
    // The last finalizer has gone: what was waiting for that goes too, without a DELETE.
    let goes = metadata::is_deleting(&new) && !metadata::has_finalizers(&new);
    if !dry_run && !goes && is_same && is_outdated(request, &key, stored, which) {
        return Ok(None);
    }
    if dry_run || (!goes && is_same) {
        return Ok(shown(Arc::new(new)));
    }
    if goes {
        if state.storage.remove(&key, stored).is_err() {
            return Ok(None);
        }
        request.server.has_changed(resource)?;
        request.server.finish_namespace(&key);
        return Ok(shown(Arc::new(new)));
    }
    let new = state.to_storage(new, resource).map_err(create::conversion_failed)?;
    match state.storage.replace(&key, Some(stored), new, owners) {
        Ok(stored) => {
            request.server.has_changed(resource)?;
            Ok(shown(state.in_version_of(&stored, resource).map_err(create::conversion_failed)?))
        }
        Err(super::storage::Raced) => Ok(None),
    }
}

fn patched(
    request: &mut ObjectRequest<'_>,
    object: Value,
    kind: &GroupVersionKind,
) -> Result<Value, Box<Status>> {
    let custom = request.target.resource.custom.is_some();
    let text = object.to_string();
    request.gives_empty_lists = config::has_empty_lists(&object);
    let typed = body::typed(object, kind, custom);
    let (mut object, unknown) =
        typed.map_err(|status| if custom { status } else { unreadable(&text, &status) })?;
    let told = FieldValidation::of(request).tell(&unknown).map_err(|why| bad_patch(&text, &why))?;
    request.early_warnings.extend(told);
    check_name(&object, &request.target.name)?;
    create::fill_in_namespace(&mut object, request)?;
    request.server.state.set_defaults(&mut object);
    Ok(object)
}

/// A patched object that cannot be read is told as a bad patch.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `applyPatchToCurrentObject`.
fn unreadable(text: &str, status: &Status) -> Box<Status> {
    let why =
        status.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    bad_patch(text, why.map_or(status.message.as_str(), |(_, why)| why))
}

fn bad_patch(text: &str, why: &str) -> Box<Status> {
    let error = FieldError::invalid("patch", Value::from(text), why);
    Box::new(Status::invalid("", "", "", &[error]))
}

/// Source: apiserver pkg/endpoints/handlers/patch.go, `maxJSONPatchOperations`.
const MOST_OPERATIONS: usize = 10_000;

fn too_many(operations: usize) -> Status {
    let message =
        format!("The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {operations}");
    Status::failure(413, "RequestEntityTooLarge", message)
}

/// Source: apimachinery pkg/api/errors/errors.go, `NewGenericServerResponse`, for 422.
fn does_not_apply(error: &ApplyError) -> Box<Status> {
    let message = match error {
        ApplyError::DoesNotApply(_) => {
            "the server rejected our request due to an error in our request".to_owned()
        }
        ApplyError::Panic(_) => error.to_string(),
    };
    let mut status = Status::failure(422, "Invalid", message);
    status.details = Some(StatusDetails::default());
    Box::new(status)
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            members.remove(key);
        } else if let Some(member) = members.get_mut(key).filter(|member| !member.is_null()) {
            merge(member, value);
        } else {
            members.insert(key.clone(), without_nulls(value));
        }
    }
}

/// What a merge adds has no null members, also not inside lists.
///
/// Source: evanphx json-patch merge.go, `pruneNils`.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(present.map(|(key, member)| (key.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn check_resource_version(
    new: &Value,
    old: &Value,
    resource: &Resource,
    is_scale: bool,
) -> Result<(), Box<Status>> {
    let (group, name) = (&resource.gvr.group, metadata::text(old, "name"));
    let wanted = metadata::text(new, "resourceVersion");
    if wanted.is_empty() || wanted == "0" {
        if is_scale || strategy::allows_unconditional_update(resource) {
            return Ok(());
        }
        let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(Box::new(Status::invalid(group, &resource.gvr.resource, name, &[error])));
    }
    if wanted.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {}: invalid syntax", Value::from(wanted));
        return Err(Box::new(Status::failure(500, "", message)));
    }
    if wanted == metadata::text(old, "resourceVersion") {
        return Ok(());
    }
    Err(Box::new(Status::conflict(group, &resource.gvr.resource, name, MODIFIED)))
}

fn gvr_group(resource: &Resource) -> String {
    resource.gvr.group.clone()
}

fn wrong_uid(resource: &Resource, key: &Key, dry_run: bool, wanted: &str, found: &str) -> String {
    wrong_precondition(resource, key, dry_run, "UID", wanted, found)
}

/// A precondition that does not hold for what is stored. A dry run tells the key as it is below the root of the storage.
///
/// Source: apiserver pkg/storage/errors.go, `StorageError`, pkg/storage/interfaces.go, `Preconditions.Check`, and
/// pkg/registry/generic/registry/dryrun.go.
pub(super) fn wrong_precondition(
    resource: &Resource,
    key: &Key,
    dry_run: bool,
    field: &str,
    wanted: &str,
    found: &str,
) -> String {
    let gvr = &resource.gvr;
    let root = if dry_run { "" } else { "/registry" };
    let group = if resource.custom.is_some() { format!("{}/", gvr.group) } else { String::new() };
    let namespace = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    format!(
        "StorageError: invalid object, Code: 4, Key: {root}/{group}{}/{namespace}{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}",
        gvr.resource, key.name
    )
}
