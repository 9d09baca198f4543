//! Whether a custom resource, which is free-form on its way through the webhooks, is valid in the end.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::quoting::{go_type, printed};
use kubernetes_types::status::{FieldError, Status, Unsupported};
use kubernetes_types::structural::{Judgement, Purpose};
use serde_json::Value;

use super::custom_resources::Custom;
use super::discovery::Resource;
use super::metadata;

/// What is wrong with an object that should be of the kind of its resource: nothing else of it is looked at then.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/validator.go, `ValidateTypeMeta`.
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

/// Validates a custom resource, in a write of itself or of its status. What the client is warned of.
///
/// # Errors
/// 422 for what is wrong, 501 for what admit does not apply.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/strategy.go, `Validate` and `ValidateUpdate`;
/// `status_strategy.go`, `ValidateUpdate`.
pub(super) fn validate(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Result<Vec<String>, Box<Status>> {
    let Some(custom) = &resource.custom else { return Ok(Vec::new()) };
    let found = GroupVersionKind::of(object);
    let name = metadata::text(object, "name");
    let errors = wrong_type(&found, &resource.kind);
    if !errors.is_empty() {
        return Err(Box::new(Status::invalid(&found.group, &found.kind, name, &errors)));
    }
    let judgement = judge(object, old, resource, custom, subresource)
        .map_err(|unsupported| Status::unsupported(&unsupported))?;
    if judgement.errors.is_empty() {
        return Ok(judgement.warnings);
    }
    Err(Box::new(Status::invalid(&found.group, &found.kind, name, &judgement.errors)))
}

fn judge(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    custom: &Custom,
    subresource: &str,
) -> Result<Judgement, Unsupported> {
    let schema = custom.schema()?;
    let purpose = if subresource == "status" { Purpose::Status } else { Purpose::Object };
    let mut errors = match (wrong_metadata(object), old) {
        (Some(wrong), _) => vec![wrong],
        (None, None) => metadata::validate(object, None, resource),
        (None, Some(_)) => triplicate_common_errors(metadata::validate(object, None, resource)),
    };
    errors.extend(schema.schema_errors(object, old, purpose)?);
    if let Some(scale) = &custom.scale {
        let replicas = match purpose {
            Purpose::Object => &[&scale.spec_replicas, &scale.status_replicas][..],
            Purpose::Status => &[&scale.status_replicas],
        };
        errors.extend(replicas.iter().filter_map(|pointer| wrong_replicas(object, pointer)));
    }
    schema.judge_further(errors, object, old, purpose)
}

/// In an update of a custom resource labels, annotations and owners are validated as those of a new object, as those of a
/// changed one, and once more as those of a custom resource.
///
/// Source: apiserver pkg/registry/rest/update.go, `validateCommonFields`; apiextensions-apiserver
/// pkg/registry/customresource/validator.go, `ValidateUpdate`.
fn triplicate_common_errors(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    let fields = ["metadata.labels", "metadata.annotations", "metadata.ownerReferences"];
    let is_repeated = |error: &&FieldError| fields.iter().any(|field| error.field.starts_with(field));
    let repeated: Vec<FieldError> = errors.iter().filter(is_repeated).cloned().collect();
    errors.extend(repeated.iter().cloned().chain(repeated.clone()));
    errors
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
    let why = unreadable(metadata)?;
    Some(FieldError::invalid("metadata", metadata, why))
}

/// Why Go cannot read the first of the fields, in the order of the type.
fn unreadable(metadata: &Value) -> Option<String> {
    let field = |name: &str| metadata.get(name).filter(|value| !value.is_null());
    let texts = ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"];
    let maps = ["labels", "annotations"];
    (texts.into_iter().filter_map(field).find_map(not_a_text))
        .or_else(|| maps.into_iter().filter_map(field).find_map(not_a_map_of_texts))
        .or_else(|| not_a_list_of(field("ownerReferences")?, not_an_owner))
        .or_else(|| not_a_list_of(field("finalizers")?, not_a_text))
}

fn not_a_map_of_texts(value: &Value) -> Option<String> {
    let Some(members) = value.as_object() else {
        return Some(format!("cannot restore map from {}", kind(value)));
    };
    members.values().find_map(not_a_text)
}

fn not_a_list_of(value: &Value, not_an_item: fn(&Value) -> Option<String>) -> Option<String> {
    let Some(items) = value.as_array() else {
        return Some(format!("cannot restore slice from {}", kind(value)));
    };
    items.iter().find_map(not_an_item)
}

fn not_an_owner(value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let Some(members) = value.as_object() else {
        return Some(format!("cannot restore struct from: {}", kind(value)));
    };
    let texts = ["apiVersion", "kind", "name", "uid"];
    texts.into_iter().filter_map(|name| members.get(name)).find_map(not_a_text)
}

/// Of what is no text Go converts integers to texts alone, which JSON does not.
///
/// Source: apimachinery pkg/runtime/converter.go, `fromUnstructured`.
fn not_a_text(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::String(_) => None,
        Value::Number(number) if !number.is_f64() => Some("cannot convert int64 to string".to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some("unrecognized type: string".to_owned())
        }
    }
}

/// As Go calls the kind of a JSON value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What kube-apiserver 1.37.1 said.
    #[test]
    fn the_first_field_that_go_cannot_read_is_told() {
        for (metadata, why) in [
            (json!({"name": "x", "labels": {"a": null}}), None),
            (json!({"labels": "a"}), Some("cannot restore map from string")),
            (json!({"labels": {"a": 1}}), Some("cannot convert int64 to string")),
            (json!({"labels": {"a": {"b": "c"}}}), Some("unrecognized type: string")),
            (json!({"annotations": {"a": true}}), Some("unrecognized type: string")),
            (json!({"annotations": ["a"]}), Some("cannot restore map from slice")),
            (json!({"labels": 1.5}), Some("cannot restore map from float64")),
            (json!({"finalizers": {"a": "b"}}), Some("cannot restore slice from map")),
            (json!({"finalizers": [1]}), Some("cannot convert int64 to string")),
            (json!({"ownerReferences": ["a"]}), Some("cannot restore struct from: string")),
            (json!({"name": 1}), Some("cannot convert int64 to string")),
        ] {
            assert_eq!(unreadable(&metadata).as_deref(), why, "{metadata}");
        }
    }
}
