//! Reads, sets, and validates the metadata of objects.

use std::collections::HashSet;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::at;
use kubernetes_types::quoting::{is_printable, quote};
use kubernetes_types::schema;
use kubernetes_types::status::{FieldError, MAX_ERRORS, Status};
use serde_json::{Map, Value, json};

/// The maximum length of a manager name in bytes.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `FieldManagerMaxLength`.
pub(crate) const FIELD_MANAGER_MAX_LENGTH: usize = 128;

/// The kind of an object that is reduced to its metadata.
pub(crate) const METADATA_KIND: &str = "PartialObjectMetadata";

/// Returns the string in `metadata.FIELD`, or an empty string if the field is absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Sets the field `metadata.FIELD` to `value`.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(metadata) = metadata_mut(object) {
        metadata.insert(field.to_owned(), value);
    }
}

pub(crate) fn remove(object: &mut Value, field: &str) -> Option<Value> {
    metadata_mut(object)?.remove(field)
}

fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    metadata.as_object_mut()
}

pub(crate) fn has_labels(object: &Value) -> bool {
    at(object, &["metadata", "labels"]).as_object().is_some_and(|labels| !labels.is_empty())
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    at(object, &["metadata", "finalizers"]).as_array().is_some_and(|all| !all.is_empty())
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// Returns the current time in the API's format: UTC with whole seconds.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the time `seconds` from now in the API's format.
pub(crate) fn seconds_from_now(seconds: i64) -> String {
    let now = jiff::Timestamp::now();
    let then = jiff::SignedDuration::from_secs(seconds);
    now.checked_add(then).unwrap_or(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Removes the fields that a client cannot set, and fields that the API omits if they are empty.
///
/// Source: apiserver pkg/registry/rest/meta.go, `WipeObjectMetaSystemFields`.
/// Rule: CHN-01.
pub(crate) fn wipe(object: &mut Value) {
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        remove(object, field);
    }
}

/// Returns the object without the fields that the garbage collector may update.
///
/// Source: kubernetes pkg/registry/rbac/helpers.go, `IsOnlyMutatingGCFields`.
pub(crate) fn without_collector_fields(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
        remove(&mut object, field);
    }
    object
}

/// Removes duplicate owner references. Returns a warning if there were duplicates.
///
/// `when` is the part of the warning that says whether the duplicates are from the client or from webhooks.
///
/// Source: apiserver pkg/endpoints/handlers/rest.go, `dedupOwnerReferencesAndAddWarning`.
/// Rule: MUT-21.
pub(crate) fn without_duplicate_owners(object: &mut Value, when: &str) -> Option<String> {
    let owners = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let mut duplicates = Vec::new();
    let mut seen = HashSet::new();
    owners.retain(|owner| {
        let is_new = seen.insert(owner.clone());
        if !is_new {
            duplicates.push(owner.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        is_new
    });
    (!duplicates.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            duplicates.join(", ")
        )
    })
}

/// Checks the JSON types of the metadata of a custom resource.
///
/// # Errors
/// Returns 400 if a field has the wrong type.
pub(crate) fn check_types(object: &Value, kind: &GroupVersionKind) -> Result<(), Box<Status>> {
    schema::metadata_type_error(object.get("metadata").unwrap_or(&Value::Null)).map_err(|why| {
        let GroupVersionKind { kind, version, .. } = kind;
        let text = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
        Box::new(Status::bad_request(text))
    })
}

/// Returns the names in `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let all = at(object, &["metadata", "finalizers"]).as_array().into_iter().flatten();
    all.filter_map(Value::as_str)
}

/// Validates the name of a field manager.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateFieldManager`.
/// Rule: APY-04.
pub(crate) fn manager_errors(manager: &str, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > FIELD_MANAGER_MAX_LENGTH {
        errors.push(FieldError::too_long(field, FIELD_MANAGER_MAX_LENGTH));
    }
    let invisible = manager.char_indices().filter(|(_, character)| !is_printable(*character));
    for (position, character) in invisible.take(MAX_ERRORS) {
        let number = u32::from(character);
        let why = format!("invalid character U+{number:04X} (at position {position})");
        errors.push(FieldError::invalid(field, quote(manager), why));
    }
    errors
}

/// Returns `metadata.managedFields`; `null` if absent.
pub(crate) fn managed_fields(object: &Value) -> &Value {
    at(object, &["metadata", "managedFields"])
}

/// Sets `metadata.managedFields`, or removes the field if `entries` is `null`.
pub(crate) fn set_managed_fields(object: &mut Value, entries: Value) {
    if entries.is_null() {
        remove(object, "managedFields");
    } else {
        set(object, "managedFields", entries);
    }
}
