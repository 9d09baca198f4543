//! Validates the metadata of objects.
//!
//! Source: apimachinery `pkg/api/validation/objectmeta.go`.

use std::collections::HashSet;

use kubernetes_types::json::at;
use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::{FieldError, MAX_ERRORS};
use serde_json::Value;

use crate::apimachinery::metadata::{finalizers, is_deleting, managed_fields, manager_errors, text};
use crate::kinds::kind::Kind;
use crate::kinds::object_names;

/// The maximum total size of an object's annotations, in bytes.
const TOTAL_ANNOTATION_SIZE_LIMIT_B: usize = 256 * 1024;

/// Validates the name, `generateName`, and namespace of a new object.
fn names_errors(object: &Value, kind: &Kind) -> Vec<FieldError> {
    let (generate, name) = (text(object, "generateName"), text(object, "name"));
    let mut errors = Vec::new();
    for what in object_names::prefix_errors(object, kind) {
        errors.push(FieldError::invalid("metadata.generateName", Value::from(generate), what));
    }
    for what in object_names::errors(object, kind) {
        errors.push(FieldError::invalid("metadata.name", Value::from(name), what));
    }
    let namespace = text(object, "namespace");
    if !namespace.is_empty() {
        for what in names::dns1123_label(namespace) {
            errors.push(FieldError::invalid("metadata.namespace", Value::from(namespace), what));
        }
    }
    errors
}

/// Validates the metadata of an object; `old` is `None` for a new object.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateObjectMeta` and `ValidateObjectMetaDeclaratively`.
pub(crate) fn validate(object: &Value, old: Option<&Value>, kind: &Kind) -> Vec<FieldError> {
    let mut errors = errors_of_new(object, kind);
    if let Some(old) = old {
        errors.extend(validate_update(object, old));
    }
    if kind.has_core_finalizers {
        errors.extend(unqualified_finalizers(object));
    }
    report_once(&mut errors);
    errors
}

/// Removes duplicate errors and keeps the first of each.
///
/// Source: apimachinery pkg/util/validation/field/errors.go, `ToAggregate`, called by pkg/api/validate/errors.go,
/// `FilterCoveredHandwrittenErrors`.
pub(crate) fn report_once(errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    errors.retain(|error| seen.insert(error.clone()));
}

fn errors_of_new(object: &Value, kind: &Kind) -> Vec<FieldError> {
    let mut errors = names_errors(object, kind);
    let generation = at(object, &["metadata", "generation"]).as_i64();
    if let Some(generation) = generation.filter(|generation| *generation < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation, why));
    }
    let mut invalid = |field: String, value: &str, what: String| {
        // A response cannot list more errors than this, so duplicates beyond it do not matter.
        if errors.len() <= MAX_ERRORS {
            errors.push(FieldError::invalid(field, Value::from(value), what));
        }
    };
    let members = |field: &str| at(object, &["metadata", field]).as_object().into_iter().flatten();
    for (key, value) in members("labels") {
        for what in names::label_key(key) {
            invalid("metadata.labels".to_owned(), key, what);
        }
        let value = value.as_str().unwrap_or_default();
        for what in names::label_value(value) {
            invalid("metadata.labels".to_owned(), value, what);
        }
    }
    let mut annotations_size = 0;
    for (key, value) in members("annotations") {
        for what in names::label_key(&key.to_lowercase()) {
            invalid("metadata.annotations".to_owned(), key, what);
        }
        annotations_size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if annotations_size > TOTAL_ANNOTATION_SIZE_LIMIT_B {
        errors.push(FieldError::too_long("metadata.annotations", TOTAL_ANNOTATION_SIZE_LIMIT_B));
    }
    errors.extend(owner_errors(object));
    errors.extend(finalizer_errors(object));
    if text(object, "name").is_empty() {
        errors.insert(0, FieldError::required("metadata.name", "name or generateName is required"));
    }
    errors.extend(managed_fields_errors(object));
    errors
}

/// Validates the finalizers of an object.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateFinalizers`.
fn finalizer_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for finalizer in finalizers(object) {
        for what in names::label_key(finalizer) {
            if errors.len() <= MAX_ERRORS {
                errors.push(FieldError::invalid("metadata.finalizers", Value::from(finalizer), what));
            }
        }
    }
    let has = |name: &str| finalizers(object).any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let all: Vec<&str> = finalizers(object).collect();
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", Value::from(all), why));
    }
    errors
}

/// Returns an error for each finalizer that is neither a standard finalizer nor prefixed with a domain.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateKubeFinalizerName`.
/// Rule: VLO-25.
fn unqualified_finalizers(object: &Value) -> Vec<FieldError> {
    let unqualified = finalizers(object).enumerate().filter(|(_, name)| {
        !name.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(name)
    });
    let errors = unqualified.map(|(index, name)| {
        let what = "name is neither a standard finalizer name nor is it fully qualified";
        FieldError::invalid(format!("metadata.finalizers[{index}]"), Value::from(name), what)
    });
    errors.take(MAX_ERRORS + 1).collect()
}

/// Validates the `managedFields` of an object. Does not report decoding errors.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateManagedFields`.
/// Rule: APY-16.
fn managed_fields_errors(object: &Value) -> Vec<FieldError> {
    const MAX_SUBRESOURCE_NAME_LENGTH: usize = 256;
    let entries = managed_fields(object).as_array().into_iter().flatten();
    let mut errors = Vec::new();
    for (index, entry) in entries.enumerate() {
        if errors.len() > MAX_ERRORS {
            break;
        }
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let field = |name: &str| format!("metadata.managedFields[{index}].{name}");
        errors.extend(manager_errors(text("manager"), &field("manager")));
        if text("subresource").len() > MAX_SUBRESOURCE_NAME_LENGTH {
            errors.push(FieldError::too_long(field("subresource"), MAX_SUBRESOURCE_NAME_LENGTH));
        }
    }
    errors
}

/// Validates the owner references of an object.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateOwnerReferences`.
/// Rule: VLO-40.
fn owner_errors(object: &Value) -> Vec<FieldError> {
    let owners = at(object, &["metadata", "ownerReferences"]).as_array();
    let owners = owners.map(Vec::as_slice).unwrap_or_default();
    let mut errors = Vec::new();
    let mut first_controller: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        if errors.len() > MAX_ERRORS {
            break;
        }
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let path = format!("metadata.ownerReferences[{index}]");
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::required(format!("{path}.{field}"), "must not be empty"));
            } else if field == "apiVersion" && !is_group_version(text(field)) {
                let why = "must be <group>/<version> or <version>";
                errors.push(FieldError::invalid(format!("{path}.{field}"), quote(text(field)), why));
            }
        }
        // The garbage collector does not watch Events.
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(path, shown_owner(owner), why));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let named = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = &first_controller {
                let all: Vec<String> = owners.iter().map(shown_owner).collect();
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {named}"
                );
                let all = format!("[{}]", all.join(","));
                errors.push(FieldError::invalid("metadata.ownerReferences", all, why));
            } else {
                first_controller = Some(named);
            }
        }
    }
    errors
}

/// Returns whether `text` is `VERSION` or `GROUP/VERSION`.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `ParseGroupVersion`.
fn is_group_version(text: &str) -> bool {
    match text.split_once('/') {
        None => true,
        Some((_, version)) => !version.is_empty() && !version.contains('/'),
    }
}

/// Formats an owner reference for an error message, with the fields in the order in which the Go type declares them.
fn shown_owner(owner: &Value) -> String {
    let text = |field: &str| quote(owner.get(field).and_then(Value::as_str).unwrap_or_default());
    let mut members: Vec<String> =
        ["apiVersion", "kind", "name", "uid"].map(|field| format!("\"{field}\":{}", text(field))).into();
    for field in ["controller", "blockOwnerDeletion"] {
        if let Some(Value::Bool(is_so)) = owner.get(field) {
            members.push(format!("\"{field}\":{is_so}"));
        }
    }
    format!("{{{}}}", members.join(","))
}

/// Validates the metadata of a custom resource definition or a custom resource in an update.
///
/// As upstream does, first validates the metadata as for a new object, then validates the update twice. The first
/// validation of the update reports each error once.
///
/// Source: apiserver pkg/registry/rest/update.go, `validateCommonFields`; apiextensions-apiserver
/// pkg/apis/apiextensions/validation/validation.go and pkg/registry/customresource/validator.go, `ValidateUpdate`.
/// Rule: KND-14.
pub(crate) fn validate_repeatedly(new: &Value, old: &Value, kind: &Kind) -> Vec<FieldError> {
    let mut errors = errors_of_new(new, kind);
    let fields = ["metadata.labels", "metadata.annotations", "metadata.ownerReferences"];
    let is_repeated = |error: &&FieldError| fields.iter().any(|field| error.field.starts_with(field));
    let mut of_update = validate_update(new, old);
    of_update.extend(errors.iter().filter(is_repeated).cloned());
    let mut once = of_update.clone();
    report_once(&mut once);
    errors.extend(once);
    errors.extend(of_update);
    errors
}

/// Validates the changes to metadata in an update. The server must already have filled in omitted fields.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateObjectMetaAccessorUpdate`.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let before: HashSet<&str> = finalizers(old).collect();
    let mut added: Vec<&str> = finalizers(new).collect();
    added.retain(|finalizer| !before.contains(finalizer));
    if is_deleting(old) && !added.is_empty() {
        added.sort_unstable();
        let added: Vec<String> = added.into_iter().map(|added| Value::from(added).to_string()).collect();
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.push(FieldError::forbidden("metadata.finalizers", why));
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"] {
        let value = text(new, field);
        if value != text(old, field) {
            let field = format!("metadata.{field}");
            errors.push(FieldError::invalid(field, Value::from(value), "field is immutable"));
        }
    }
    let grace = |object: &Value| at(object, &["metadata", "deletionGracePeriodSeconds"]).as_i64();
    if let Some(seconds) = grace(new).filter(|seconds| grace(old) != Some(*seconds)) {
        let field = "metadata.deletionGracePeriodSeconds";
        errors.push(FieldError::invalid(field, seconds, "field is immutable"));
    }
    errors.extend(managed_fields_errors(new));
    errors
}
