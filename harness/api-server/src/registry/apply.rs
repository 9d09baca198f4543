//! Server-side apply: parses the patch and computes the resulting object.

use std::sync::Arc;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::yaml;
use kubernetes_types::json::json_type;
use kubernetes_types::json_numbers;
use kubernetes_types::schema::{self, Type, strictness};
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Map, Value};

use super::body::{self, FieldValidation, Types};
use super::create;
use super::field_manager::{self, ManagedObject};
use super::field_validation;
use super::request::ObjectRequest;
use crate::apimachinery::empty_fields;
use crate::apimachinery::metadata;
use crate::apimachinery::options;

pub(crate) const MEDIA_TYPE: &str = "application/apply-patch+yaml";

/// The decoded body of an apply request.
#[derive(Debug)]
pub(crate) struct ApplyPatch {
    /// The applied fields, including `apiVersion` and `kind`.
    object: Value,
    /// Whether the apply takes ownership of conflicting fields from other managers: the query parameter `force`.
    force: bool,
    /// The errors about duplicate keys, in the format of Go's YAML decoder.
    repeated: Vec<String>,
}

impl ApplyPatch {
    /// Returns whether the applied object has labels.
    pub(crate) fn has_labels(&self) -> bool {
        metadata::has_labels(&self.object)
    }
}

/// Reads the patch of a request. The patch is YAML or JSON.
///
/// # Errors
/// Returns 400 if the patch is invalid, 429 if other requests use the memory that it needs, or 501 if it exceeds the
/// memory budget.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `validateAndTranscodePatch` and `applyPatcher`.
/// Rule: APY-12.
pub(crate) fn read(request: &mut ObjectRequest<'_>) -> Result<ApplyPatch, Box<Status>> {
    let bytes = request.body.clone();
    let bad = |why: String| Box::new(Status::bad_request(why));
    let mut failed = "error encoding patch";
    let json = if bytes.trim_ascii_start().starts_with(b"{") {
        failed = "error decoding patch: error converting YAML to JSON";
        body::reserve(request)?;
        json_numbers::decode_as_yaml(&bytes).ok()
    } else {
        None
    };
    let (read, repeated) = match json {
        Some(read) => (read, None),
        None if bytes.trim_ascii().is_empty() => (Value::Null, Some(Vec::new())),
        None => {
            let read = field_validation::yaml(&bytes).map_err(|error| bad(format!("{failed}: {error}")))?;
            body::hold(request, &read.value)?;
            (read.value, Some(read.repeated))
        }
    };
    request.note_decoded(&read);
    let mut object = match read {
        Value::Null => Value::Object(Map::new()),
        object @ Value::Object(_) => object,
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err(bad(format!(
                "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into \
                 Go value of type map[string]interface {{}}",
                json_type(&other)
            )));
        }
    };
    schema::normalize_numbers(&mut object);
    let repeated = if FieldValidation::from_request(request) == FieldValidation::Ignore {
        Vec::new()
    } else {
        repeated.unwrap_or_else(|| repeated_in_json(std::str::from_utf8(&bytes).unwrap_or_default()))
    };
    let force = options::truth(&request.query, "force").unwrap_or_default();
    Ok(ApplyPatch { object, force, repeated })
}

/// Applies the patch to the stored object, or creates the object if none is stored.
///
/// # Errors
/// Returns an error if the patch conflicts with another manager or cannot be applied.
///
/// Source: apiserver pkg/endpoints/handlers/patch.go, `applyPatcher` and `applyPatch`; apimachinery
/// pkg/util/managedfields/internal/structuredmerge.go, `Apply`.
/// Rule: APY-01, APY-11, APY-12.
pub(crate) async fn apply(
    request: &mut ObjectRequest<'_>,
    patch: &ApplyPatch,
    live: Option<&Value>,
    kind: &GroupVersionKind,
) -> Result<ManagedObject, Box<Status>> {
    if let Some(live) = live {
        check_former_managers(request, patch, live, kind)?;
    }
    let applied = field_manager::apply(request, kind, live, &patch.object, patch.force).await;
    let ManagedObject { object, times } = applied?;
    let mut object = converted(request, object, patch, kind, live)?;
    body::complete(request, &mut object)?;
    match FieldValidation::from_request(request) {
        FieldValidation::Strict if !patch.repeated.is_empty() => {
            let error = yaml::strict_error(&patch.repeated);
            let why = format!("error strict decoding patch: error converting YAML to JSON: {error}");
            return Err(Box::new(Status::bad_request(why)));
        }
        FieldValidation::Strict | FieldValidation::Warn | FieldValidation::Ignore => {
            request.early_warnings.extend(patch.repeated.iter().cloned());
        }
    }
    let uid = metadata::text(&object, "uid");
    if live.is_none() && !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        let gvr = &request.target.resource.gvr;
        return Err(Box::new(Status::conflict(&gvr.group, &gvr.resource, &request.target.name, &why)));
    }
    create::fill_in_namespace(&mut object, request)?;
    body::check_name(&object, &request.target.name)?;
    Ok(ManagedObject { object, times })
}

/// Rejects an apply that would have to create managers for fields that were set before the first apply.
///
/// Only an apply to the Scale of a custom resource is rejected.
///
/// Source: apimachinery pkg/util/managedfields/internal/skipnonapplied.go, `Apply`.
/// Rule: APY-14.
fn check_former_managers(
    request: &ObjectRequest<'_>,
    patch: &ApplyPatch,
    live: &Value,
    kind: &GroupVersionKind,
) -> Result<(), Box<Status>> {
    let resource = &request.target.resource;
    let is_scale = resource.custom.is_some() && *kind != resource.kind;
    let is_managed = live.pointer("/metadata/managedFields").is_some();
    if !is_scale || is_managed || GroupVersionKind::from_object(&patch.object) != *kind {
        return Ok(());
    }
    let message = format!(
        "failed to create manager for existing fields: failed to convert live object (/; {}) to proper version: request \
         to convert CR to an invalid group/version: {}",
        named(kind),
        kind.api_version()
    );
    Err(Box::new(Status::failure(500, "", message)))
}

/// Returns a copy of the object without its field managers.
fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    metadata::remove(&mut object, "managedFields");
    object
}

/// Converts the object to the type of `kind`. Custom resources are returned unchanged.
fn converted(
    request: &mut ObjectRequest<'_>,
    mut object: Value,
    patch: &ApplyPatch,
    kind: &GroupVersionKind,
    live: Option<&Value>,
) -> Result<Value, Box<Status>> {
    let resource = Arc::clone(&request.target.resource);
    let failed = |why: String| {
        let namespace = metadata::text(&patch.object, "namespace");
        let (name, what) = (metadata::text(&patch.object, "name"), named(kind));
        let message =
            format!("failed to convert new object ({namespace}/{name}; {what}) to proper version: {why}");
        Box::new(Status::failure(500, "", message))
    };
    if resource.custom.is_some() && *kind == resource.kind {
        return Ok(object);
    }
    // A Scale is not a version of the custom resource. An apply that changes nothing converts nothing.
    let is_changed = || live.is_none_or(|live| without_managers(live) != without_managers(&object));
    if resource.custom.is_some() && is_changed() {
        let version = kind.api_version();
        return Err(failed(format!("request to convert CR to an invalid group/version: {version}")));
    }
    if let Some(members) = object.as_object_mut()
        && let Err(Some(why)) = schema::from_unstructured(members, kind)
    {
        return Err(failed(format!("unable to convert unstructured object to {}: {why}", named(kind))));
    }
    request.empty_fields = empty_fields::find(&object, kind, resource.built_in_kind());
    let typed = body::typed(object, kind, Types::for_resource(&resource, kind));
    typed.map(|(object, _)| object).map_err(|status| {
        let what = format!("the error of an object that an apply produces: {}", status.message);
        Box::new(Status::unsupported(&Unsupported { what }))
    })
}

/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `GroupVersionKind.String`.
fn named(kind: &GroupVersionKind) -> String {
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}

/// Returns the errors of the YAML decoder about duplicate keys in JSON.
fn repeated_in_json(text: &str) -> Vec<String> {
    // The faster JSON reader is sufficient if it finds no duplicate keys.
    if strictness::errors(text, &[], Type::Free).is_ok_and(|found| found.is_empty()) {
        return Vec::new();
    }
    yaml::first_document(text).map(|document| document.repeated).unwrap_or_default()
}
