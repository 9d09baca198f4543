//! Validates the metadata of a cluster-scoped object.

use kubernetes_types::names;
use serde_json::{Map, Value};

use super::error::Errors;
use crate::config::{STATIC_SUFFIX, list, text};

const TOTAL_ANNOTATION_SIZE_LIMIT_B: usize = 256 * 1024;

/// Validates the name, labels, annotations, and finalizers. Owner references and managed fields are not checked.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateObjectMeta`.
/// Rule: VLD-03.
pub(super) fn validate(metadata: &Value, errors: &mut Errors) {
    let generate_name = text(metadata, "generateName").unwrap_or_default();
    if !generate_name.is_empty() {
        let wrong = names::dns1123_subdomain(&without_trailing_dash(generate_name));
        errors.all_invalid("metadata.generateName", generate_name, &wrong);
    }
    let name = text(metadata, "name").unwrap_or_default();
    if name.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    } else {
        errors.all_invalid("metadata.name", name, &names::dns1123_subdomain(name));
    }
    if text(metadata, "namespace").is_some_and(|namespace| !namespace.is_empty()) {
        errors.forbidden("metadata.namespace", "not allowed on this type");
    }
    labels(metadata.get("labels"), "metadata.labels", errors);
    annotations(metadata.get("annotations").and_then(Value::as_object), errors);
    for finalizer in list(metadata, "finalizers") {
        let finalizer = finalizer.as_str().unwrap_or_default();
        errors.all_invalid("metadata.finalizers", finalizer, &names::label_key(finalizer));
    }
}

/// Replaces a trailing dash and the character before it with `a`, as upstream does.
///
/// Source: apimachinery pkg/api/validation/generic.go, `maskTrailingDash`.
fn without_trailing_dash(prefix: &str) -> String {
    let mut stem = prefix.strip_suffix('-').unwrap_or(prefix).chars();
    if stem.as_str().len() == prefix.len() || stem.next_back().is_none() {
        return prefix.to_owned();
    }
    format!("{}a", stem.as_str())
}

/// Rejects names that are reserved for configurations in files.
///
/// Source: kubernetes `pkg/apis/admissionregistration/validation/static_suffix.go`, `ValidateStaticSuffix`.
/// Rule: VLD-33.
pub(super) fn validate_static_suffix(metadata: &Value, errors: &mut Errors) {
    let name = text(metadata, "name").unwrap_or_default();
    if name.ends_with(STATIC_SUFFIX) {
        let detail = format!(
            "names ending with \"{STATIC_SUFFIX}\" are reserved for static manifest-based configurations and cannot \
             be managed via the API"
        );
        errors.invalid("metadata.name", name, &detail);
    }
}

/// Validates the keys and values of labels.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabels`.
pub(super) fn labels(labels: Option<&Value>, path: &str, errors: &mut Errors) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.all_invalid(path, key, &names::label_key(key));
        let value = value.as_str().unwrap_or_default();
        errors.all_invalid(path, value, &names::label_value(value));
    }
}

/// Validates the keys and the total size of annotations.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateAnnotations`.
fn annotations(annotations: Option<&Map<String, Value>>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.into_iter().flatten() {
        errors.all_invalid("metadata.annotations", key, &names::label_key(&key.to_lowercase()));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > TOTAL_ANNOTATION_SIZE_LIMIT_B {
        errors.too_long("metadata.annotations", TOTAL_ANNOTATION_SIZE_LIMIT_B);
    }
}
