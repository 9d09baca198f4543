//! Validates custom resources. They are not decoded into Go types before admission.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::quoting::{go_type, printed};
use kubernetes_types::status::{FieldError, Status, Unsupported};
use kubernetes_types::structural::{Judgment, Purpose};
use kubernetes_types::unstructured;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::kinds::discovery::custom::CustomResourceInfo;
use crate::kinds::kind::Kind;
use crate::kinds::metadata_validation;

/// Returns the errors about a wrong `kind` or `apiVersion`. Such errors stop the validation.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/validator.go, `ValidateTypeMeta`.
/// Rule: SCH-19.
fn wrong_type(found: &GroupVersionKind, expected: &GroupVersionKind) -> Vec<FieldError> {
    let wrong = |field: &str, found: &str, expected: &str| {
        (found != expected)
            .then(|| FieldError::invalid(field, Value::from(found), format!("must be {expected}")))
    };
    let (kind, version) = (&expected.kind, expected.api_version());
    [wrong("kind", &found.kind, kind), wrong("apiVersion", &found.api_version(), &version)]
        .into_iter()
        .flatten()
        .collect()
}

/// Validates a custom resource in a write of the object or its status. Adds to `warnings`, even if the object is invalid.
///
/// # Errors
/// Returns 422 for an invalid object, or 501 for constructs that admit does not support.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go, `Validate` and `ValidateUpdate`;
/// `status_strategy.go`, `ValidateUpdate`.
pub(crate) fn validate(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
    warnings: &mut Vec<String>,
) -> Result<(), Box<Status>> {
    let Some(custom) = &resource.custom else { return Ok(()) };
    let found = GroupVersionKind::from_object(object);
    let name = metadata::text(object, "name");
    if found.version.is_empty() {
        // Source: apiserver pkg/registry/rest/meta.go; apimachinery pkg/api/meta/errors.go.
        let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        return Err(Box::new(Status::internal_error(why)));
    }
    let errors = wrong_type(&found, &resource.kind);
    if !errors.is_empty() {
        return Err(Box::new(Status::invalid(&found.group, &found.kind, name, &errors)));
    }
    let judgment =
        judge(object, old, custom, subresource).map_err(|unsupported| Status::unsupported(&unsupported))?;
    warnings.extend(judgment.warnings);
    if judgment.errors.is_empty() {
        return Ok(());
    }
    Err(Box::new(Status::invalid(&found.group, &found.kind, name, &judgment.errors)))
}

fn judge(
    object: &Value,
    old: Option<&Value>,
    custom: &CustomResourceInfo,
    subresource: &str,
) -> Result<Judgment, Unsupported> {
    let schema = custom.schema()?;
    let purpose = if subresource == "status" { Purpose::Status } else { Purpose::Object };
    let mut errors = match (wrong_metadata(object), old) {
        (Some(wrong), _) => vec![wrong],
        (None, None) => metadata_validation::validate(object, None, &Kind::CUSTOM),
        (None, Some(old)) => metadata_validation::validate_repeatedly(object, old, &Kind::CUSTOM),
    };
    errors.extend(schema.schema_errors(object, old, purpose)?);
    if let Some(scale) = &custom.scale {
        let replicas = match purpose {
            Purpose::Object => &[&scale.spec_replicas, &scale.status_replicas][..],
            Purpose::Status => &[&scale.status_replicas],
        };
        errors.extend(replicas.iter().filter_map(|pointer| wrong_replicas(object, pointer)));
    }
    schema.validate_further(errors, object, old, purpose)
}

/// Source: apiextensions-apiserver pkg/registry/customresource/validator.go, `ValidateScaleSpec` and
/// `ValidateScaleStatus`; apimachinery pkg/apis/meta/v1/unstructured/helpers.go, `NestedInt64`.
fn wrong_replicas(object: &Value, pointer: &str) -> Option<FieldError> {
    let path = pointer.replace('/', ".");
    let invalid = |value: i64, why: &str| Some(FieldError::invalid(path.as_str(), value, why));
    let unlike = |value: &Value, expected: &str| {
        let (text, of) = (printed(value), go_type(value));
        invalid(0, &format!("{path} accessor error: {text} is of the type {of}, expected {expected}"))
    };
    let mut found = object;
    for name in pointer.split('/').skip(1) {
        if found.is_null() {
            return None;
        }
        let Value::Object(members) = found else { return unlike(found, "map[string]interface{}") };
        found = members.get(name)?;
    }
    match found.as_i64() {
        None => unlike(found, "int64"),
        Some(replicas) if replicas < 0 => invalid(replicas, "should be a non-negative integer"),
        Some(replicas) if replicas > i64::from(i32::MAX) => {
            invalid(replicas, &format!("should be less than or equal to {}", i32::MAX))
        }
        Some(_) => None,
    }
}

/// Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta/validation.go, `Validate`; apimachinery
/// pkg/runtime/converter.go, `FromUnstructured`.
fn wrong_metadata(object: &Value) -> Option<FieldError> {
    let metadata = object.get("metadata")?;
    let why = unstructured::metadata_error(metadata)?;
    Some(FieldError::invalid("metadata", metadata, why))
}
