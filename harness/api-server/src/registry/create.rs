//! Handles requests that create objects.

use http::StatusCode;
use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::Operation;
use kubernetes_admission::cluster_state::ConversionError;
use kubernetes_types::schema;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;
use tracing::info;

use super::authorization;
use super::authorization::{escalation, params, signers};
use super::field_manager::ManagedObject;
use super::request::ObjectRequest;
use super::spans;
use super::state::State;
use crate::apimachinery::{metadata, options};
use crate::kinds::apiextensions::custom_resources;
use crate::kinds::batch::job::selector;
use crate::kinds::discovery::Resource;
use crate::kinds::strategy;
use crate::kinds::strategy::create;
use crate::kinds::table;
use crate::registry::answer::Answer;
use crate::registry::{body, field_manager, undecodable};

/// The `Retry-After` value, in seconds, of the 429 if there is not enough memory for a conversion.
const RETRY_AFTER: i32 = 1;

/// The maximum number of attempts to generate an unused name.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `maxNameGenerationCreateAttempts`.
/// Rule: CHN-05.
const NAME_ATTEMPTS: usize = 8;

/// The suffix of the warning about duplicate owner references that the client sent.
///
/// Source: apiserver pkg/endpoints/handlers/create.go and rest.go, `DuplicateOwnerReferencesWarningFormat`.
pub(crate) const DUPLICATE_OWNERS: &str = "";
/// The suffix of the warning about duplicate owner references that remain after mutating webhooks.
pub(crate) const DUPLICATE_OWNERS_AFTER_ADMISSION: &str = " after mutating admission happens";

/// Creates an object.
///
/// The steps are in kube-apiserver's order: decoding and defaults, mutating admission, the strategy of the resource,
/// validation, validating admission, and storage.
///
/// Source: apiserver pkg/endpoints/handlers/create.go and pkg/registry/generic/registry/store.go.
/// Rule: CHN-01, CHN-05, MUT-19, REQ-09, REQ-15, SEL-08.
pub(crate) async fn create(request: &mut ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    let new = decode(request).await?;
    let body_bytes = request.body.len();
    let stored = admit_and_store(request, new).await;
    spans::wrote(body_bytes, &stored);
    stored
}

/// An object to be created, with its defaults and field managers.
pub(crate) struct NewObject {
    pub(crate) managed: ManagedObject,
    pub(crate) options: options::RequestOptions,
    pub(crate) origin: CreateOrigin,
}

/// Decodes the body of a POST and sets the defaults and the field managers of the object.
///
/// # Errors
/// Returns the Status that the client receives.
pub(crate) async fn decode(request: &mut ObjectRequest<'_>) -> Result<NewObject, Box<Status>> {
    let resource = std::sync::Arc::clone(&request.target.resource);
    let options = options::of_write("CreateOptions", &request.query)?;
    info!("About to convert to expected version");
    let mut object = body::object(request, &resource.kind)?;
    request.note_sent(&object);
    let origin = CreateOrigin::Create { has_labels: metadata::has_labels(&object) };
    body::set_defaults(request, &mut object)?;
    info!("Conversion done");
    request.note_decoded(&object);
    fill_in_namespace(&mut object, request)?;
    metadata::wipe(&mut object);
    request.early_warnings.extend(metadata::without_duplicate_owners(&mut object, DUPLICATE_OWNERS));
    info!("About to store object in database");
    let managed = field_manager::update(request, &resource.kind, None, object).await?;
    Ok(NewObject { managed, options, origin })
}

/// The kind of request that creates an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateOrigin {
    /// A POST. `has_labels` is true if the object had labels before its defaults were set.
    Create { has_labels: bool },
    /// A PUT or an apply of an object that does not exist. `has_labels` has the same meaning as for a POST.
    Update { has_labels: bool },
}

impl CreateOrigin {
    fn has_labels(self) -> bool {
        let (Self::Create { has_labels } | Self::Update { has_labels }) = self;
        has_labels
    }

    fn is_update(self) -> bool {
        matches!(self, Self::Update { .. })
    }
}

/// Runs mutating admission for a new object. Returns the admission run and the mutated object.
///
/// # Errors
/// Returns the Status that the client receives.
pub(crate) async fn mutate<'a>(
    request: &mut ObjectRequest<'a>,
    new: NewObject,
) -> Result<(AdmissionRun<'a>, Value), Box<Status>> {
    let NewObject { managed: ManagedObject { object, times }, options, .. } = new;
    let resource = std::sync::Arc::clone(&request.target.resource);
    let mut attributes = request.attributes(Operation::Create, &resource.kind);
    metadata::text(&object, "name").clone_into(&mut attributes.name);
    if resource.gvr.group_resource() == "namespaces" {
        attributes.namespace.clone_from(&attributes.name);
    }
    attributes.object = Some(object);
    attributes.options = Some(options.document);
    attributes.dry_run = options.dry_run;
    if custom_resources::is_terminating(&resource) {
        // Rule: SCH-17.
        let (gvr, why) =
            (&resource.gvr, "create not allowed while custom resource definition is terminating");
        return Err(Box::new(Status::forbidden(&gvr.group, &gvr.resource, &attributes.name, why)));
    }
    let mut run = request.admitting.begin(attributes, times);
    field_manager::mutate(request, &mut run).await?;
    let Some(mut mutated) = run.take_object() else {
        return Err(Box::new(Status::internal_error("admission left no object")));
    };
    request
        .warnings
        .extend(metadata::without_duplicate_owners(&mut mutated, DUPLICATE_OWNERS_AFTER_ADMISSION));
    // A webhook may have changed the namespace.
    fill_in_namespace(&mut mutated, request)?;
    Ok((run, mutated))
}

/// Admits an object whose defaults are already set, then stores it.
///
/// # Errors
/// Returns the Status that the client receives, or 409 `AlreadyExists` if the object already exists.
///
/// Rule: KND-11.
pub(crate) async fn admit_and_store(
    request: &mut ObjectRequest<'_>,
    new: NewObject,
) -> Result<Answer, Box<Status>> {
    let (origin, dry_run) = (new.origin, new.options.dry_run);
    let (mut run, mut mutated) = mutate(request, new).await?;
    let resource = std::sync::Arc::clone(&request.target.resource);
    escalation::check(request, &mutated, None)?;
    if origin.is_update() {
        metadata::wipe(&mut mutated);
    }

    let generate = metadata::text(&mutated, "generateName").to_owned();
    let generate = if metadata::text(&mutated, "name").is_empty() { generate } else { String::new() };
    let attempts = if generate.is_empty() { 1 } else { NAME_ATTEMPTS };
    let kind = table::of(&resource);
    let mut last = None;
    for _ in 0..attempts {
        let mut object = mutated.clone();
        // The JSON of a patched object omits these fields.
        if !run.was_patched() {
            request.empty_fields.restore(&mut object);
        }
        if !generate.is_empty() {
            metadata::set(&mut object, "name", strategy::generated_name(&generate).into());
        }
        fill_in_namespace(&mut object, request)?;
        // The values allocated to a Service are held until it is stored.
        let allocation = request.registry.services.complete(&mut object, None, &resource, dry_run)?;
        request.warnings.extend((kind.apply_annotations)(&mut object));
        (kind.set_requester)(&mut object, &request.user);
        let shares_labels = (kind.shares_labels)(&object);
        create::prepare_for_create(&mut object, &resource);
        // Upstream copies an object with a generated name, and the copy does not share its labels.
        // Source: apiserver pkg/registry/generic/registry/store.go, `createWithGenerateNameRetry`.
        if shares_labels && generate.is_empty() && !run.had_labels().unwrap_or(origin.has_labels()) {
            selector::share_labels(&mut object);
        }
        let first = strategy::admin_access(&object, None, &resource, "", &*request.registry.state);
        let first = Vec::from_iter(first);
        strategy::validate_after(first, &object, None, &resource, "", &mut request.warnings)?;
        strategy::canonicalize(&mut object, &resource)?;
        params::check(request, &object, None)?;
        request.warnings.extend(strategy::warnings(&object, None, &resource, ""));
        request.empty_fields.remove(&mut object, &resource.kind);
        let name = metadata::text(&object, "name").to_owned();
        let attributes = run.attributes_mut();
        attributes.object = Some(object);
        if attributes.name.is_empty() {
            attributes.name.clone_from(&name);
        }
        if origin.is_update() {
            authorization::check_creation(request)?;
        }
        if let Some(object) = &run.attributes().object {
            signers::check(request, object, None)?;
        }
        request.admitting.validate(&mut run).await?;
        let Some(mut object) = run.take_object() else {
            return Err(Box::new(Status::internal_error("admission left no object")));
        };
        if !generate.is_empty() {
            run.attributes_mut().name.clear();
        }
        // A dry run keeps the `resourceVersion`, because it does not reach the storage that checks and removes it.
        // Source: apiserver pkg/registry/generic/registry/dryrun.go, `Create` and `GuaranteedUpdate`.
        let version = metadata::text(&object, "resourceVersion");
        // Source: apiserver pkg/storage/etcd3/store.go, `Create`.
        let has_version = version.parse::<u64>().is_ok_and(|version| version > 0);
        if !dry_run && (origin.is_update() || !has_version) {
            metadata::remove(&mut object, "resourceVersion");
        } else if !dry_run {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Box::new(Status::failure(500, "", message)));
        }
        let stored = store(request, &name, object, dry_run).await;
        drop(allocation);
        match stored {
            Err(status) if status.reason == "AlreadyExists" && !generate.is_empty() => last = Some(status),
            done => return done,
        }
    }
    Err(last.unwrap_or_else(|| Box::new(Status::internal_error("no name was tried"))))
}

/// Normalizes the metadata of an object, and returns whether a custom resource loses metadata when it is read.
///
/// The metadata of a custom resource is stored with empty maps and nulls, which a read does not return. The next write
/// stores the object again, even if it changes nothing.
///
/// Source: apiserver pkg/storage/etcd3/store.go, `GuaranteedUpdate`, which compares the encoded objects.
pub(crate) fn loses_metadata(object: &mut Value, resource: &Resource) -> bool {
    let before = object.get("metadata").filter(|_| resource.custom.is_some()).cloned();
    schema::normalize_metadata(object);
    before.is_some_and(|before| object.get("metadata") != Some(&before))
}

/// Rule: CNV-08, CNV-09.
async fn store(
    request: &ObjectRequest<'_>,
    name: &str,
    mut object: Value,
    dry_run: bool,
) -> Result<Answer, Box<Status>> {
    let resource = &request.target.resource;
    let state = &request.registry.state;
    let key = request.target.key(name);
    // This also applies if the client set a name in addition to generateName.
    // Source: apiserver pkg/registry/rest/create.go, `CheckGeneratedNameError`.
    let taken = match metadata::text(&object, "generateName") {
        "" => Status::already_exists,
        _ => Status::generate_name_conflict,
    };
    let taken = || Box::new(taken(&resource.gvr.group, &resource.gvr.resource, name));
    let mut has_more_metadata = false;
    if resource.custom.is_some() && !dry_run {
        // Upstream encodes the object before the storage checks whether its name exists.
        has_more_metadata = loses_metadata(&mut object, resource);
        object = state.to_storage(object, resource).await.map_err(conversion_failed)?;
    }
    if let Some(other) = state.storage.at(&key) {
        let mut status = taken();
        // Source: apiserver pkg/registry/generic/registry/store.go, `create`.
        if metadata::is_deleting(&other) {
            status.message = format!("object is being deleted: {}", status.message);
        }
        return Err(status);
    }
    schema::normalize_metadata(&mut object);
    if dry_run {
        // Upstream encodes and decodes the object as if it were stored, which sets the defaults of its version.
        // Source: apiserver pkg/registry/generic/registry/dryrun.go, `Create`.
        object = state.to_storage(object, resource).await.map_err(conversion_failed)?;
        state.complete_stored(&mut object).map_err(|what| unsupported(&what))?;
        let object = std::sync::Arc::new(object);
        let answer = state.in_version_of(&object, resource).await.map_err(conversion_failed)?;
        return Ok(Answer::Object(StatusCode::CREATED, answer));
    }
    let lacks_default = (table::of(resource).lacks_late_default)(&object);
    let mut object = state.to_storage(object, resource).await.map_err(conversion_failed)?;
    // Objects read from the storage have the defaults of their version.
    let has_status = object.get("status").is_some();
    let is_incomplete = state.complete_written(&mut object, resource).map_err(|what| unsupported(&what))?;
    if resource.custom.is_some() && resource.has_status() && !has_status {
        // The status was removed after the defaults were set, and the stored object has none.
        // Rule: SCH-18.
        if let Some(members) = object.as_object_mut() {
            members.remove("status");
        }
    }
    state.storage.check_space(&key, &object)?;
    let stored = state.storage.insert(&key, object).ok().ok_or_else(taken)?;
    if is_incomplete || lacks_default || has_more_metadata {
        state.storage.note_incomplete(&key, &stored);
    }
    request.registry.has_changed(resource)?;
    let text = state.storage.stored_at(&key).filter(|now| now.is(&stored));
    if let Some(text) = text.filter(|text| State::is_served_as_stored(text, resource)) {
        return Ok(Answer::Stored(StatusCode::CREATED, text));
    }
    let answer = state.in_version_of(&stored, resource).await;
    let answer = answer.map_err(|error| undecodable::of_write(error, &stored, resource))?;
    Ok(Answer::Object(StatusCode::CREATED, answer))
}

pub(crate) fn unsupported(what: &Unsupported) -> Box<Status> {
    Box::new(Status::unsupported(what))
}

/// Rule: CNV-09.
pub(crate) fn conversion_failed(error: ConversionError) -> Box<Status> {
    Box::new(match error {
        ConversionError::Refused(message) => Status::failure(500, "", message),
        ConversionError::Unsupported(unsupported) => Status::unsupported(&unsupported),
        ConversionError::ByWebhook(asked) => Status::unsupported(&Unsupported::from(&*asked)),
        ConversionError::TooManyRequests => Status::too_many_requests(RETRY_AFTER),
    })
}

/// Source: apiserver pkg/registry/rest/meta.go, `EnsureObjectNamespaceMatchesRequestNamespace`.
pub(crate) fn fill_in_namespace(object: &mut Value, request: &ObjectRequest<'_>) -> Result<(), Box<Status>> {
    let expected = &request.target.namespace;
    let found = metadata::text(object, "namespace");
    if expected.is_empty() {
        metadata::remove(object, "namespace");
    } else if found.is_empty() {
        metadata::set(object, "namespace", expected.clone().into());
    } else if found != expected {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Box::new(Status::bad_request(message)));
    }
    Ok(())
}
