//! Implements the `scale` subresource. It represents an object as an `autoscaling/v1` `Scale`.

use kubernetes_types::json;
use kubernetes_types::status::{FieldError, Status};
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;

const BUILT_IN_REPLICAS: &str = "/spec/replicas";

/// The replicas in the Scale before an update or a patch if the custom resource does not set them.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/etcd.go, `invalidSpecReplicas`.
const UNSET_REPLICAS: i32 = i32::MIN;

/// Returns the path of the replicas field in objects of a resource.
pub(crate) fn replicas(resource: &Resource) -> Vec<&str> {
    let paths = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    paths.map_or(BUILT_IN_REPLICAS, |paths| &paths.spec_replicas).split('/').skip(1).collect()
}

pub(crate) fn scale_of(object: &Value, resource: &Resource) -> Value {
    let paths = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let replicas = number(paths.map_or(BUILT_IN_REPLICAS, |paths| &paths.spec_replicas));
    let current = number(paths.map_or("/status/replicas", |paths| &paths.status_replicas)).unwrap_or(0);
    let selector = match paths {
        None => selector_text(object.pointer("/spec/selector")),
        Some(paths) => {
            let pointer = paths.label_selector.as_deref();
            pointer.and_then(|pointer| object.pointer(pointer)?.as_str()).unwrap_or_default().to_owned()
        }
    };
    let mut scale_metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !metadata::text(object, field).is_empty() {
            json::set(&mut scale_metadata, &[field], metadata::text(object, field));
        }
    }
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": scale_metadata,
        "spec": {},
        "status": {"replicas": current},
    });
    if let Some(replicas) = replicas.filter(|replicas| *replicas != 0) {
        json::set(&mut scale, &["spec", "replicas"], replicas);
    }
    if !selector.is_empty() {
        json::set(&mut scale, &["status", "selector"], selector);
    }
    scale
}

/// Returns the Scale of an object to which an update or a patch applies.
///
/// Rule: KND-14.
pub(crate) fn to_be_changed(object: &Value, resource: &Resource) -> Value {
    let mut scale = scale_of(object, resource);
    if custom_path(resource).is_some_and(|path| object.pointer(path).is_none()) {
        json::set(&mut scale, &["spec", "replicas"], UNSET_REPLICAS);
    }
    scale
}

/// Checks that a Scale of a custom resource sets the replicas.
///
/// # Errors
/// Returns 400 if the replicas are missing.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/etcd.go, `UpdatedObject`.
/// Rule: KND-14.
pub(crate) fn check_replicas(scale: &Value, resource: &Resource) -> Result<(), Box<Status>> {
    let is_given = || scale.pointer(BUILT_IN_REPLICAS).and_then(Value::as_i64) != Some(UNSET_REPLICAS.into());
    match custom_path(resource) {
        Some(path) if !is_given() => {
            let why = format!("the spec replicas field \"{}\" cannot be empty", path.replace('/', "."));
            Err(Box::new(Status::bad_request(why)))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the Scale of an object for a read.
///
/// # Errors
/// Returns 500 for a custom resource without replicas.
///
/// Source: apiextensions-apiserver pkg/registry/customresource/etcd.go, `Get`.
/// Rule: KND-14.
pub(crate) fn read(object: &Value, resource: &Resource) -> Result<Value, Box<Status>> {
    match custom_path(resource) {
        Some(path) if object.pointer(path).is_none() => {
            let why = format!("the spec replicas field \"{}\" does not exist", path.replace('/', "."));
            Err(Box::new(Status::internal_error(&why)))
        }
        Some(_) | None => Ok(scale_of(object, resource)),
    }
}

/// Returns the path of the replicas in a custom resource; `None` for a built-in resource.
fn custom_path(resource: &Resource) -> Option<&str> {
    let paths = resource.custom.as_ref()?.scale.as_ref();
    paths.map(|paths| paths.spec_replicas.as_str())
}

/// Formats a selector as kubectl does: `a=b,c in (d,e)`. The selector of a `ReplicationController` is a map of labels.
///
/// Source: apimachinery pkg/labels/selector.go, `Requirement.String`.
fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector.and_then(Value::as_object) else { return String::new() };
    let plain = !selector.contains_key("matchLabels") && !selector.contains_key("matchExpressions");
    let labels = if plain { Some(selector) } else { selector.get("matchLabels").and_then(Value::as_object) };
    let mut requirements: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        requirements.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
        let mut values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let (key, values) = (text("key"), values.join(","));
        let requirement = match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        requirements.push((key.to_owned(), requirement));
    }
    requirements.sort_by(|one, other| one.0.cmp(&other.0));
    requirements.into_iter().map(|(_, requirement)| requirement).collect::<Vec<_>>().join(",")
}

/// Adds the fields that the server always encodes in a Scale.
///
/// Source: api autoscaling/v1/types.go, `Scale`.
pub(crate) fn complete(scale: &mut Value) {
    let Some(members) = scale.as_object_mut() else { return };
    members.entry("metadata").or_insert_with(|| json!({}));
    members.entry("spec").or_insert_with(|| json!({}));
    if let Some(status) = members.entry("status").or_insert_with(|| json!({})).as_object_mut() {
        status.entry("replicas").or_insert_with(|| 0.into());
    }
}

/// Replaces all fields of the Scale except `spec.replicas` with those of `old`, the Scale before the update.
///
/// The result is the Scale of the updated object, which validating admission receives.
pub(crate) fn keep_only_replicas(scale: &mut Value, old: &Value) {
    let replicas = scale.pointer(BUILT_IN_REPLICAS).and_then(Value::as_i64).filter(|replicas| *replicas != 0);
    scale.clone_from(old);
    if let Some(spec) = scale.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("replicas");
        spec.extend(replicas.map(|replicas| ("replicas".to_owned(), replicas.into())));
    }
}

/// Returns a copy of the object with the replicas from the Scale. Increments the generation if the object changes.
///
/// # Errors
/// Returns 500 if a field above the replicas of a custom resource is not an object.
pub(crate) fn apply(scale: &Value, object: &Value, resource: &Resource) -> Result<Value, Box<Status>> {
    let paths = resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    let pointer = paths.map_or(BUILT_IN_REPLICAS, |paths| paths.spec_replicas.as_str());
    let replicas = scale.pointer(BUILT_IN_REPLICAS).and_then(Value::as_i64).unwrap_or(0);
    let mut scaled = object.clone();
    set(&mut scaled, pointer, replicas.into())?;
    if scaled != *object {
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        metadata::set(&mut scaled, "generation", generation.wrapping_add(1).into());
    }
    Ok(scaled)
}

/// Source: apimachinery pkg/apis/meta/v1/unstructured/helpers.go, `SetNestedField`.
fn set(object: &mut Value, pointer: &str, value: Value) -> Result<(), Box<Status>> {
    let (mut place, mut path) = (object, String::new());
    for segment in pointer.split('/').skip(1) {
        let Some(members) = place.as_object_mut() else {
            let why = format!("value cannot be set because {path} is not a map[string]interface{{}}");
            return Err(Box::new(Status::failure(500, "", why)));
        };
        place = members.entry(segment).or_insert_with(|| json!({}));
        path = format!("{path}.{segment}");
    }
    *place = value;
    Ok(())
}

/// Validates the Scale of an object of a built-in kind.
///
/// # Errors
/// Returns 422 for a negative number of replicas, or 409 if the Scale and the object have different UIDs.
///
/// Source: kubernetes pkg/apis/autoscaling/validation/validation.go, `ValidateScale`;
/// pkg/registry/apps/deployment/storage/storage.go, `scaleUpdatedObjectInfo.UpdatedObject`.
pub(crate) fn validate(scale: &Value, object: &Value, resource: &Resource) -> Result<(), Box<Status>> {
    if resource.custom.is_some() {
        return Ok(());
    }
    let replicas = scale.pointer(BUILT_IN_REPLICAS).and_then(Value::as_i64).unwrap_or(0);
    if replicas >= 0 {
        let (wanted, found) = (metadata::text(scale, "uid"), metadata::text(object, "uid"));
        if wanted.is_empty() || wanted == found {
            return Ok(());
        }
        let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
        let (group, scaled) = (&resource.gvr.group, format!("{}/scale", resource.gvr.resource));
        return Err(Box::new(Status::conflict(group, &scaled, metadata::text(object, "name"), &why)));
    }
    let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    Err(Box::new(Status::invalid("autoscaling", "Scale", metadata::text(scale, "name"), &[error])))
}
