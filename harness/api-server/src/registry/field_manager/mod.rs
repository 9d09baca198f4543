//! Field management: `metadata.managedFields` of all writes, and server-side apply.

mod reset_fields;
mod versions;

use std::cell::RefCell;
use std::collections::BTreeMap;

use http::header::USER_AGENT;
use kubernetes_admission::admission_run::AdmissionRun;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::{Answers, ConversionError};
use kubernetes_admission::ownership::TimePrecision;
use kubernetes_managed_fields::{
    self as managed_fields, FieldManager, Filter, Path, PathElement, Writer, Written,
};
use kubernetes_types::quoting::is_printable;
use kubernetes_types::status::{Status, StatusCause, StatusDetails, Unsupported};
use kubernetes_types::weight::weight;
use serde_json::Value;

use self::versions::KindVersions;
use super::request::ObjectRequest;
use super::state::State;
use crate::apimachinery::metadata::FIELD_MANAGER_MAX_LENGTH;
use crate::apimachinery::{empty_fields, metadata};
use crate::kinds::discovery::{Resource, Resources};
use crate::kinds::scale;
use crate::registry::create;

/// The maximum memory, in bytes, for the conversions of one request.
///
/// An object may have a manager in each version, and a definition may have many versions.
const MAX_CONVERSION_BYTES: usize = 64 << 20;

/// An object with `managedFields` and the precision of its timestamps.
pub(crate) struct ManagedObject {
    pub(crate) object: Value,
    pub(crate) times: TimePrecision,
}

impl From<Written> for ManagedObject {
    fn from(Written { object, is_timed, .. }: Written) -> Self {
        Self { object, times: if is_timed { TimePrecision::Nanos } else { TimePrecision::Seconds } }
    }
}

/// Returns `new` with updated `managedFields` after a create, an update, or a patch; `live` is the stored object.
///
/// # Errors
/// Returns an error if a conversion could not be attempted. A failed conversion leaves the managers unchanged.
///
/// Source: apiserver `pkg/endpoints/handlers/{create,update,patch}.go`, `UpdateNoErrors`.
/// Rule: APY-02, APY-03, APY-16, APY-20.
pub(crate) async fn update(
    request: &ObjectRequest<'_>,
    kind: &GroupVersionKind,
    live: Option<&Value>,
    mut new: Value,
) -> Result<ManagedObject, Box<Status>> {
    let name = manager(request);
    let writes = WriteContext::new(request, kind, &name);
    let compared = request.empty_fields.in_atomic_lists();
    if live.is_some() && !compared.is_empty() {
        compared.restore(&mut new);
        let mut managed = writes.update(live, new).map_err(create::conversion_failed)?;
        compared.remove(&mut managed.object, kind);
        empty_fields::restore_over_defaults(
            &request.empty_fields,
            &request.target.resource.gvr.group,
            &mut managed.object,
        );
        return Ok(managed);
    }
    let managed = if State::may_ask_webhook(writes.resource) {
        let now = metadata::now();
        with_answers(writes.state, |answers| writes.try_update(live, new.clone(), &now, answers)).await
    } else {
        writes.update(live, new)
    };
    managed.map_err(create::conversion_failed)
}

/// Returns the stored object with the patch applied to it, without setting defaults.
///
/// # Errors
/// Returns an error for a conflict, an invalid patch, or an unknown field, or if a conversion could not be attempted.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `applyPatcher`.
/// Rule: APY-05, APY-06, APY-07, APY-11, APY-17.
pub(crate) async fn apply(
    request: &ObjectRequest<'_>,
    kind: &GroupVersionKind,
    live: Option<&Value>,
    patch: &Value,
    force: bool,
) -> Result<ManagedObject, Box<Status>> {
    let (name, now) = (manager(request), metadata::now());
    let writes = WriteContext::new(request, kind, &name);
    let applied = with_answers(writes.state, |answers| {
        writes.compute(&now, answers, |field_manager, writer| field_manager.apply(live, patch, writer, force))
    });
    applied.await.map_err(create::conversion_failed)?.map(ManagedObject::from).map_err(|error| {
        Box::new(match error {
            managed_fields::Error::BadRequest(message) => Status::bad_request(message),
            managed_fields::Error::Conflicts(conflicts) => conflict(&conflicts),
            managed_fields::Error::Internal(message) => Status::failure(500, "", message),
        })
    })
}

/// Repeats `compute` until it has received the responses from all conversion webhooks that it requires.
///
/// # Errors
/// Returns an error if a conversion could not be attempted.
async fn with_answers<T>(
    state: &State,
    compute: impl Fn(&Answers) -> Result<T, ConversionError>,
) -> Result<T, ConversionError> {
    let mut answers = Answers::default();
    let mut bytes = 0;
    loop {
        match compute(&answers) {
            Err(ConversionError::ByWebhook(asked)) => {
                let answer = state.ask_webhook(&asked).await;
                bytes += weight(&asked.object) + answer.as_ref().map_or(0, weight);
                if bytes > MAX_CONVERSION_BYTES {
                    let what = format!(
                        "field managers in so many versions that conversions take more than {MAX_CONVERSION_BYTES} bytes"
                    );
                    return Err(Unsupported { what }.into());
                }
                answers.add(*asked, answer);
            }
            done => return done,
        }
    }
}

/// Source: apimachinery pkg/api/errors/errors.go, `NewApplyConflict`.
fn conflict(conflicts: &managed_fields::Conflicts) -> Status {
    let causes = conflicts.causes().into_iter().map(|cause| StatusCause {
        reason: "FieldManagerConflict".to_owned(),
        message: cause.message,
        field: cause.field,
    });
    let details = StatusDetails { causes: causes.collect(), ..StatusDetails::default() };
    Status { details: Some(details), ..Status::failure(409, "Conflict", conflicts.message()) }
}

/// The writer and the target of a write.
pub(crate) struct WriteContext<'a> {
    pub(crate) state: &'a State,
    pub(crate) resource: &'a Resource,
    /// The subresource; empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) kind: &'a GroupVersionKind,
    pub(crate) manager: &'a str,
}

impl<'a> WriteContext<'a> {
    fn new(request: &'a ObjectRequest<'_>, kind: &'a GroupVersionKind, manager: &'a str) -> Self {
        let (resource, subresource) = (&request.target.resource, &request.target.subresource);
        Self { state: &request.registry.state, resource, subresource, kind, manager }
    }

    /// Returns `new` with updated `managedFields` as [`update`] does, but does not require a request.
    ///
    /// # Errors
    /// Returns [`ConversionError::ByWebhook`] if a webhook must convert an object, or another [`ConversionError`] if a
    /// conversion could not be attempted.
    pub(crate) fn update(&self, live: Option<&Value>, new: Value) -> Result<ManagedObject, ConversionError> {
        self.try_update(live, new, &metadata::now(), &Answers::default())
    }

    fn try_update(
        &self,
        live: Option<&Value>,
        new: Value,
        now: &str,
        answers: &Answers,
    ) -> Result<ManagedObject, ConversionError> {
        let written = self
            .compute(now, answers, |field_manager, writer| field_manager.update_no_errors(live, new, writer));
        written.map(ManagedObject::from)
    }

    /// Runs the field manager with these responses from conversion webhooks.
    ///
    /// # Errors
    /// Returns the error of the first conversion that could not be attempted, for example because the response of its
    /// webhook is missing.
    fn compute<T>(
        &self,
        now: &str,
        answers: &Answers,
        write: impl FnOnce(&FieldManager<'_, KindVersions<'_>>, &Writer<'_>) -> T,
    ) -> Result<T, ConversionError> {
        let resources = self.state.resources();
        let obstacle = RefCell::default();
        let versions =
            KindVersions { state: self.state, resources: &resources, kind: self.kind, answers, obstacle };
        let reset_fields = reset_fields::for_resource(self.resource, self.subresource, &resources);
        let version = self.kind.api_version();
        let field_manager = FieldManager {
            versions: &versions,
            api_version: &version,
            kind: &self.kind.kind,
            subresource: self.subresource,
            reset_fields: &reset_fields,
        };
        let done = write(&field_manager, &Writer { manager: self.manager, now });
        versions.obstacle.take().map_or(Ok(done), Err)
    }
}

/// Returns the manager name of a request: `fieldManager`, or the prefix of its user agent.
///
/// Source: apiserver pkg/endpoints/handlers/create.go, `managerOrUserAgent`.
/// Rule: APY-04.
fn manager(request: &ObjectRequest<'_>) -> String {
    let given = request.query.first("fieldManager").unwrap_or_default();
    if !given.is_empty() {
        return given.to_owned();
    }
    let agent = request.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let mut name = String::new();
    let characters = agent.split('/').next().unwrap_or_default().chars();
    for character in characters.filter(|character| is_printable(*character)) {
        if name.len() + character.len_utf8() > FIELD_MANAGER_MAX_LENGTH {
            break;
        }
        name.push(character);
    }
    name
}

/// Runs the mutating phase of a request. Discards `managedFields` from webhooks if they are invalid.
///
/// # Errors
/// Returns the Status that the client receives.
///
/// Source: apiserver pkg/endpoints/handlers/fieldmanager/admission.go, `Admit`.
/// Rule: APY-15, MUT-20.
pub(crate) async fn mutate<'a>(
    request: &mut ObjectRequest<'a>,
    run: &mut AdmissionRun<'a>,
) -> Result<(), Box<Status>> {
    let before = run.attributes().object.as_ref().map(metadata::managed_fields).cloned();
    request.admitting.mutate(run).await?;
    let Some(after) = run.attributes().object.as_ref().map(metadata::managed_fields) else { return Ok(()) };
    let is_empty = after.as_array().is_some_and(Vec::is_empty);
    let problem = managed_fields::validate_entries(after).err();
    let entries = match problem {
        Some(_) => before.unwrap_or_default(),
        None if is_empty => Value::Null,
        None => return Ok(()),
    };
    if let Some(object) = &mut run.attributes_mut().object {
        metadata::set_managed_fields(object, entries);
    }
    request.warnings.extend(problem.map(|why| {
        format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
             mutating admission controller; please fix your requests: {why}"
        )
    }));
    Ok(())
}

/// Returns the Scale of an object. Its `managedFields` contain the managers of the replicas field.
///
/// # Errors
/// Returns 500 if the `managedFields` of the object are invalid.
///
/// Source: apimachinery pkg/util/managedfields/scalehandler.go, `ToSubresource`.
/// Rule: APY-14.
pub(crate) fn scale_of(
    object: &Value,
    resource: &Resource,
    resources: &Resources,
) -> Result<Value, Box<Status>> {
    let found =
        managed_fields::entries_of_scale(metadata::managed_fields(object), &replicas(resource, resources));
    let mut scale = scale::to_be_changed(object, resource);
    metadata::set_managed_fields(&mut scale, found.map_err(unreadable)?);
    Ok(scale)
}

/// Copies the field managers of a Scale to the scaled object.
///
/// # Errors
/// Returns 500 if the `managedFields` of the object or the Scale are invalid.
///
/// Source: apimachinery pkg/util/managedfields/scalehandler.go, `ToParent`.
/// Rule: APY-14.
pub(crate) fn take_over_scale(
    object: &mut Value,
    scale: &Value,
    resource: &Resource,
    resources: &Resources,
) -> Result<(), Box<Status>> {
    let replicas = replicas(resource, resources);
    let version = resource.kind.api_version();
    let found = managed_fields::entries_of_parent(
        metadata::managed_fields(object),
        metadata::managed_fields(scale),
        &version,
        &replicas,
    );
    metadata::set_managed_fields(object, found.map_err(unreadable)?);
    Ok(())
}

fn unreadable(why: String) -> Box<Status> {
    Box::new(Status::failure(500, "", why))
}

/// Returns the path of the replicas field for each version; `None` for a version without a scale subresource.
fn replicas(resource: &Resource, resources: &Resources) -> BTreeMap<String, Option<Path>> {
    let kind = (&resource.kind.group, &resource.kind.kind);
    let of_kind = resources.all().iter().filter(|other| (&other.kind.group, &other.kind.kind) == kind);
    let place = |resource: &Resource| {
        let path = || scale::replicas(resource).into_iter().map(PathElement::field).collect();
        resource.subresource("scale").map(|_| path())
    };
    of_kind.map(|other| (other.kind.api_version(), place(other))).collect()
}

/// The fields that requests for a resource cannot set, by version.
type ResetFields = BTreeMap<String, Filter>;
