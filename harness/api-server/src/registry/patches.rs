//! Applies patches and updates to the stored object.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use kubernetes_admission::attributes::GroupVersionKind;
pub(crate) use kubernetes_admission::patch::strategic::{self, StrategicError};
use kubernetes_admission::patch::{ApplyError, MAX_OPERATIONS, Patch};
use kubernetes_types::json::json_type;
use kubernetes_types::json_numbers;
use kubernetes_types::quoting::printed;
use kubernetes_types::schema::{self, Type, strictness};
use kubernetes_types::status::{FieldError, Status, StatusDetails, Unsupported};
use serde_json::{Map, Value};

use super::apply::{self, ApplyPatch};
use super::body::{self, FieldValidation, Types};
use super::create;
use super::field_manager::{self, ManagedObject};
use super::request::ObjectRequest;
use crate::apimachinery::empty_fields;
use crate::apimachinery::merge_patch;
use crate::kinds::conversion;
use crate::kinds::discovery::Resource;

/// The change that an update or a patch makes.
pub(crate) enum Change {
    /// A whole object, from a PUT.
    Replace(Value),
    /// A merge patch: RFC 7386.
    Merge(Value),
    /// A JSON patch: RFC 6902.
    Operations(Patch),
    /// A strategic merge patch.
    Strategic(Map<String, Value>),
    /// A server-side apply.
    Apply(ApplyPatch),
}

/// The patch formats of custom resources.
const CUSTOM_FORMATS: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// The patch formats of built-in resources.
const FORMATS: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    apply::MEDIA_TYPE,
];

/// Rejects a patch in a format that the resource does not support, before anything else is checked.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `PatchResource`; go-restful for built-in resources.
///
/// # Errors
/// Returns 415 for an unsupported format.
pub(crate) fn check_media_type(resource: &Resource, headers: &HeaderMap) -> Result<(), Box<Status>> {
    let media_type = body::media_type(headers);
    let is_custom = resource.custom.is_some();
    if is_custom && !CUSTOM_FORMATS.split(", ").any(|format| format == media_type) {
        return Err(body::unknown_format(CUSTOM_FORMATS));
    }
    if !is_custom && !FORMATS.contains(&media_type) {
        return Err(unsupported_format("415: Unsupported Media Type".to_owned()));
    }
    Ok(())
}

/// Reads the patch of a request.
///
/// # Errors
/// Returns 400 for an invalid body, 413 for too many operations, 415 for an unsupported format, 429 if other requests
/// use the memory that the patch needs, or 501 if the patch exceeds the memory budget.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `PatchResource` and `applyJSPatch`.
pub(crate) fn read(request: &mut ObjectRequest<'_>) -> Result<Change, Box<Status>> {
    let text = request.body.clone();
    let out_of_range = |why: &dyn Fn(&str) -> String| {
        let number = json_numbers::first_out_of_range(&text);
        Box::new(Status::bad_request(
            number.map_or_else(|| "invalid JSON patch".to_owned(), |number| why(&number)),
        ))
    };
    let _turn = request.registry.in_flight.turn(request.body.len());
    if body::media_type(&request.headers) == apply::MEDIA_TYPE {
        return Ok(Change::Apply(apply::read(request)?));
    }
    body::reserve(request)?;
    match body::media_type(&request.headers) {
        "application/merge-patch+json" => match serde_json::from_slice(&request.body) {
            Ok(patch @ Value::Object(_)) => {
                request.note_decoded(&patch);
                Ok(Change::Merge(patch))
            }
            Ok(other) => Err(Box::new(Status::bad_request(no_patch(&other, "map[string]interface {}")))),
            Err(_) => {
                Err(out_of_range(&|number| format!("error decoding patch: {}", body::not_a_float(number))))
            }
        },
        "application/json-patch+json" => {
            let patch = Patch::decode(&request.body);
            let patch = patch.map_err(|error| match serde_json::from_slice::<Value>(&request.body) {
                Ok(found @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_))) => {
                    Box::new(Status::bad_request(no_patch(&found, "[]handlers.jsonPatchOp")))
                }
                Ok(Value::Array(items)) if items.iter().any(|item| !item.is_object() && !item.is_null()) => {
                    let why = error.to_string().replace("jsonpatch.Operation", "handlers.jsonPatchOp");
                    Box::new(Status::bad_request(format!("error decoding patch: {why}")))
                }
                Ok(Value::Null | Value::Array(_)) => Box::new(Status::bad_request(error.to_string())),
                Err(_) => out_of_range(&|number| {
                    format!(
                        "error decoding patch: json: cannot unmarshal number {number} into Go struct field \
                         jsonPatchOp.value of type float64"
                    )
                }),
            })?;
            request.note_decoded(&patch.operations().into());
            if patch.operations().len() > MAX_OPERATIONS {
                return Err(Box::new(too_many(patch.operations().len())));
            }
            Ok(Change::Operations(patch))
        }
        "application/strategic-merge-patch+json" => match serde_json::from_slice(&request.body) {
            Ok(Value::Object(patch)) => {
                request.note_decoded(&Value::Object(patch.clone()));
                Ok(Change::Strategic(patch))
            }
            Ok(Value::Null) => Ok(Change::Strategic(Map::new())),
            Ok(other) => {
                let kind = json_type(&other);
                let why =
                    format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}");
                Err(Box::new(Status::bad_request(why)))
            }
            Err(_) => Err(out_of_range(&body::not_a_float)),
        },
        _ => Err(unsupported_format("415: Unsupported Media Type".to_owned())),
    }
}

fn unsupported_format(message: String) -> Box<Status> {
    let mut status = Status::failure(415, "UnsupportedMediaType", message);
    status.details = Some(StatusDetails::default());
    Box::new(status)
}

/// Applies the change to `old` and updates the field managers.
///
/// # Errors
/// Returns an error if the patch cannot be applied or its result is not an object of this kind.
pub(crate) async fn apply(
    request: &mut ObjectRequest<'_>,
    change: &Change,
    old: &Arc<Value>,
    kind: &GroupVersionKind,
) -> Result<ManagedObject, Box<Status>> {
    let object = match change {
        Change::Apply(patch) => return apply::apply(request, patch, Some(&**old), kind).await,
        Change::Replace(object) => {
            return field_manager::update(request, kind, Some(&**old), object.clone()).await;
        }
        Change::Merge(patch) => merged(old, patch),
        Change::Operations(patch) => patch.apply(old).map_err(|error| does_not_apply(&error))?,
        Change::Strategic(patch) => {
            strategic::apply(old, patch, kind).map_err(|error| does_not_merge(&error))?
        }
    };
    let patched = patched(request, (old, object), change, kind)?;
    field_manager::update(request, kind, Some(&**old), patched).await
}

fn merged(old: &Value, patch: &Value) -> Value {
    let mut object = old.clone();
    merge_patch::apply(&mut object, patch);
    object
}

/// Returns the text that kube-apiserver quotes in the error for an invalid patch.
///
/// For most patches, it is the resulting object.
///
/// Only errors contain the text, so it is not computed for each request.
fn quoted(change: &Change, old: &Value, kind: &GroupVersionKind, custom: bool) -> String {
    let (object, changes) = match change {
        Change::Strategic(patch) => return printed(&patch.clone().into()),
        Change::Merge(patch) => (merged(old, patch), Cow::Borrowed(patch)),
        Change::Operations(patch) => {
            (patch.apply(old).unwrap_or_default(), Cow::Owned(patch.changed_members()))
        }
        Change::Replace(_) | Change::Apply(_) => return old.to_string(),
    };
    if custom { object.to_string() } else { Type::for_kind(kind).patched_in_order(&object, &changes) }
}

/// Returns the error message for a patch whose JSON type does not match the Go type `go_type`.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `applyJSPatch`.
fn no_patch(found: &Value, go_type: &str) -> String {
    if found.is_null() {
        return "Invalid JSON Patch".to_owned();
    }
    let kind = json_type(found);
    format!("error decoding patch: json: cannot unmarshal {kind} into Go value of type {go_type}")
}

fn patched(
    request: &mut ObjectRequest<'_>,
    (old, mut object): (&Value, Value),
    change: &Change,
    kind: &GroupVersionKind,
) -> Result<Value, Box<Status>> {
    let custom = body::is_custom(&request.target.resource, kind);
    let text = || quoted(change, old, kind, custom);
    // kube-apiserver decodes an object whose version the patch changes in its new version.
    let found = GroupVersionKind::from_object(&object);
    let mut unknown_before = Vec::new();
    if !custom
        && found != *kind
        && let Ok(converted) = conversion::convert(&object, kind, conversion::Strategy::Scheme)
    {
        unknown_before = schema::normalize(&mut object.clone(), &found);
        object = converted;
    }
    request.empty_fields = empty_fields::find(&object, kind, request.target.resource.built_in_kind());
    let resource = Arc::clone(&request.target.resource);
    if let (Change::Strategic(_), None, Some(members)) = (change, &resource.custom, object.as_object_mut())
        && let Err(Some(why)) = schema::from_unstructured(members, kind)
    {
        return Err(bad_patch(&text(), &why));
    }
    let typed = if custom {
        patched_custom(request, &object, &resource)
    } else {
        body::typed(object, kind, Types::for_resource(&resource, kind))
    };
    let (mut object, unknown) = typed.map_err(|status| match change {
        Change::Strategic(_) => {
            unsupported("the error of an object that a strategic merge patch produces", &status.message)
        }
        Change::Replace(_) | Change::Merge(_) | Change::Operations(_) | Change::Apply(_) if custom => status,
        Change::Replace(_) | Change::Merge(_) | Change::Operations(_) | Change::Apply(_) => {
            unreadable(&text(), &status)
        }
    })?;
    let unknown = unknown_before.iter().chain(&unknown).map(|path| strictness::unknown_field(path));
    let errors = repeated(request, change).into_iter().chain(unknown).collect();
    let told = FieldValidation::from_request(request).tell(errors).map_err(|why| bad_patch(&text(), &why))?;
    request.early_warnings.extend(told);
    body::check_name(&object, &request.target.name)?;
    create::fill_in_namespace(&mut object, request)?;
    body::complete(request, &mut object)?;
    Ok(object)
}

/// Decodes a patched custom resource. Also returns the paths of fields that are not in the schema of its version.
///
/// A wrong kind or version is accepted here and rejected after the mutating webhooks.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `applyPatchToCurrentObject`.
/// Rule: SCH-19.
fn patched_custom(
    request: &ObjectRequest<'_>,
    object: &Value,
    resource: &Resource,
) -> Result<(Value, Vec<String>), Box<Status>> {
    let found = GroupVersionKind::from_object(object);
    let text = || object.to_string();
    if let Some(why) = body::no_version(object) {
        return Err(bad_patch(&text(), &why));
    }
    if found.kind.is_empty() {
        let text = text();
        return Err(bad_patch(&text, &format!("Object 'Kind' is missing in '{text}'")));
    }
    let told = |status: Box<Status>| unreadable(&text(), &status);
    if (&found.group, &found.kind) != (&resource.kind.group, &resource.kind.kind) {
        return body::free_form(object.clone(), &found, None).map_err(told);
    }
    let resources = request.registry.state.resources();
    let in_version = resources.of_kind(&found).and_then(|resource| resource.custom.as_ref());
    let (mut read, mut unknown) = body::free_form(object.clone(), &found, in_version).map_err(told)?;
    if let (None, Some(members)) = (in_version, read.as_object_mut()) {
        // An unknown version has a schema without fields.
        let is_known = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata");
        unknown.extend(members.keys().filter(|name| !is_known(name)).cloned());
        members.retain(|name, _| is_known(name));
    }
    Ok((read, unknown))
}

/// Returns the strict decoding errors in the patch.
///
/// They are about duplicate fields and, in a JSON patch, about unknown fields of operations.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `applyJSPatch` and `strategicPatchObject`.
fn repeated(request: &ObjectRequest<'_>, change: &Change) -> Vec<String> {
    const OPERATION: [&str; 4] = ["op", "path", "from", "value"];
    let text = || std::str::from_utf8(&request.body).unwrap_or_default();
    match change {
        Change::Replace(_) | Change::Apply(_) => Vec::new(),
        Change::Merge(_) | Change::Strategic(_) => {
            strictness::errors(text(), &[], Type::Free).unwrap_or_default()
        }
        Change::Operations(patch) => {
            let operations = patch.operations().iter().enumerate();
            let unknown: Vec<String> = operations
                .flat_map(|(index, operation)| {
                    let names = operation.as_object().into_iter().flat_map(Map::keys);
                    let unknown = names.filter(|name| !OPERATION.contains(&name.as_str()));
                    unknown.map(move |name| format!("[{index}].{name}"))
                })
                .collect();
            let errors = strictness::errors(text(), &unknown, Type::Free).unwrap_or_default();
            errors.into_iter().map(|error| format!("json patch {error}")).collect()
        }
    }
}

/// Builds the error of an invalid patch from the `status` of a patched object that cannot be decoded.
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

fn too_many(operations: usize) -> Status {
    let message =
        format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {operations}");
    Status::failure(413, "RequestEntityTooLarge", message)
}

/// Builds the Status for a JSON patch that cannot be applied.
///
/// Source: apimachinery pkg/api/errors/errors.go, `NewGenericServerResponse`, for 422.
fn does_not_apply(error: &ApplyError) -> Box<Status> {
    let message = match error {
        ApplyError::DoesNotApply(_) | ApplyError::TestFailed(_) => {
            "the server rejected our request due to an error in our request".to_owned()
        }
        ApplyError::Panic(_) => error.to_string(),
        ApplyError::Unsupported(what) => return Box::new(Status::unsupported(what)),
    };
    let mut status = Status::failure(422, "Invalid", message);
    status.details = Some(StatusDetails::default());
    Box::new(status)
}

/// Builds the Status for a strategic merge patch that cannot be applied.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `interpretStrategicMergePatchError`.
fn does_not_merge(error: &StrategicError) -> Box<Status> {
    let message = error.to_string();
    Box::new(match error {
        StrategicError::Malformed(_) => Status::bad_request(message),
        StrategicError::Unprocessable(_) => {
            let mut status = Status::failure(422, "Invalid", message);
            status.details = Some(StatusDetails::default());
            status
        }
        StrategicError::Other(_) => Status::failure(500, "", message),
        StrategicError::Unsupported(what) => Status::unsupported(&Unsupported { what: (*what).to_owned() }),
    })
}

fn unsupported(what: &str, why: &str) -> Box<Status> {
    Box::new(Status::unsupported(&Unsupported { what: format!("{what}: {why}") }))
}
