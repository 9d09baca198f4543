//! Enlarges objects to the maximum size of their kind.

use kubernetes_types::json::{at, set, text};
use serde_json::{Map, Value, json};

use crate::shape::pod_spec;

/// The maximum size of a request body.
///
/// Source: apiserver pkg/server/config.go, `MaxRequestBodyBytes`.
pub(super) const MAX_REQUEST_BODY_BYTES: usize = 3 * 1024 * 1024;
/// The maximum size of an object in etcd under the default limit.
///
/// Source: etcd server/embed/config.go, `DefaultMaxRequestBytes`.
pub(super) const MAX_ETCD_REQUEST_BYTES: usize = 3 * 512 * 1024;
/// The number of bytes reserved for metadata that the server adds.
const ROOM: usize = 16 * 1024;
/// The maximum size of the data in a `ConfigMap` or Secret.
///
/// Source: kubernetes pkg/apis/core/types.go, `MaxSecretSize`.
const MAX_SECRET_SIZE: usize = 1024 * 1024;
/// The maximum total size of the annotations of an object.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `TotalAnnotationSizeLimitB`.
const TOTAL_ANNOTATION_SIZE_LIMIT: usize = 256 * 1024;
/// The key of the map entry that enlarges the object.
const KEY: &str = "admit-filling";
/// Schema keywords that relate a value to other values or restrict strings.
const CONSTRAINTS: [&str; 9] =
    ["enum", "format", "pattern", "maxLength", "oneOf", "anyOf", "allOf", "not", "x-kubernetes-validations"];

/// Returns a copy of `object` that is enlarged to at most `most` bytes, and the name of the enlarged field.
pub(super) fn filled(object: &Value, schema: Option<&Value>, most: usize) -> (Value, String) {
    let mut filled = object.clone();
    let left = most.saturating_sub(ROOM).saturating_sub(filled.to_string().len());
    if let Some(spec) = pod_spec(&filled)
        && let Some(Value::Object(container)) = filled.pointer_mut(&format!("{spec}/containers/0"))
    {
        let env = container.entry("env").or_insert_with(|| json!([]));
        if let Some(env) = env.as_array_mut() {
            env.push(json!({"name": "ADMIT_FILLING", "value": "x".repeat(left)}));
        }
        return (filled, "an environment variable".to_owned());
    }
    let kind = text(&filled, &["kind"]).to_owned();
    if kind == "ConfigMap" || kind == "Secret" {
        // Base64 in a Secret is a third longer than its content.
        let used: usize =
            ["data", "binaryData"].map(|data| at(&filled, &[data]).to_string().len()).iter().sum();
        let text = "eHh4".repeat(MAX_SECRET_SIZE.saturating_sub(used) / 4);
        if set(&mut filled, &["data", KEY], text) {
            return (filled, "a key of its data".to_owned());
        }
    }
    if let Some(schema) = schema
        && let Some(path) = free(schema, &filled, true)
        && let Some((last, parents)) = path.split_last()
        && let Some(parent) = parents.iter().try_fold(&mut filled, |value, name| value.get_mut(name))
        && set(parent, &[last], "x".repeat(left))
    {
        return (filled, path.join("."));
    }
    let used = at(&filled, &["metadata", "annotations"]).to_string().len();
    let text = "x".repeat(TOTAL_ANNOTATION_SIZE_LIMIT.saturating_sub(used + 64));
    set(&mut filled, &["metadata", "annotations", "admit.dev/filling"], text);
    (filled, "an annotation".to_owned())
}

/// Returns the path of an unset field of `value` that accepts any string, or `None` if there is no such field.
fn free(schema: &Value, value: &Value, is_root: bool) -> Option<Vec<String>> {
    let members = value.as_object()?;
    let is_constrained = |schema: &Value| CONSTRAINTS.iter().any(|field| schema.get(*field).is_some());
    if is_constrained(schema) {
        return None;
    }
    let is_text = |schema: &Value| schema["type"] == "string" && !is_constrained(schema);
    if !is_root && takes_any_key(schema, is_text) {
        return Some(vec![KEY.to_owned()]);
    }
    // At the root, the server sets these fields, and drops a status.
    let is_own = |name: &str| is_root && ["apiVersion", "kind", "metadata", "status"].contains(&name);
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let properties = || properties.iter().filter(|(name, _)| !is_own(name));
    let absent = properties().find(|(name, schema)| is_text(schema) && !members.contains_key(*name));
    if let Some((name, _)) = absent {
        return Some(vec![name.clone()]);
    }
    properties().find_map(|(name, schema)| {
        let mut path = free(schema, members.get(name)?, false)?;
        path.insert(0, name.clone());
        Some(path)
    })
}

/// Returns whether objects of `schema` accept strings under any key.
fn takes_any_key(schema: &Value, is_text: impl Fn(&Value) -> bool) -> bool {
    let additional = &schema["additionalProperties"];
    schema.get("maxProperties").is_none()
        && (schema["x-kubernetes-preserve-unknown-fields"] == true
            || *additional == true
            || is_text(additional))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(object: &Value, schema: Option<&Value>) -> (usize, String) {
        let (filled, what) = filled(object, schema, MAX_REQUEST_BODY_BYTES);
        (filled.to_string().len(), what)
    }

    #[test]
    fn objects_are_enlarged_to_the_limit_of_their_kind() {
        let pod = json!({"kind": "Pod", "metadata": {}, "spec": {"containers": [{"name": "app"}]}});
        let (pod, what) = size(&pod, None);
        assert!(
            (MAX_REQUEST_BODY_BYTES - 2 * ROOM..MAX_REQUEST_BODY_BYTES).contains(&pod)
                && what == "an environment variable"
        );
        let (settings, _) = size(&json!({"kind": "ConfigMap", "metadata": {}, "data": {"a": "b"}}), None);
        assert!((MAX_SECRET_SIZE - ROOM..MAX_SECRET_SIZE + 256).contains(&settings), "{settings}");
        let (other, _) = size(&json!({"kind": "Node", "metadata": {"annotations": {"a": "b"}}}), None);
        assert!(
            (TOTAL_ANNOTATION_SIZE_LIMIT - ROOM..TOTAL_ANNOTATION_SIZE_LIMIT + 256).contains(&other),
            "{other}"
        );
    }

    #[test]
    fn custom_resource_is_enlarged_in_an_unconstrained_string() {
        let widget = json!({"kind": "Widget", "metadata": {"annotations": {"a": "b"}}, "spec": {"size": 1, "note": "x"}});
        let schema = |spec: Value| json!({"type": "object", "properties": {"spec": spec, "status": {"type": "string"}}});
        let size = |spec: Value| size(&widget, Some(&schema(spec)));
        let (whole, what) = size(json!({"properties": {
            "color": {"type": "string", "enum": ["red"]}, "note": {"type": "string"}, "text": {"type": "string"},
        }}));
        assert!(
            (MAX_REQUEST_BODY_BYTES - 2 * ROOM..MAX_REQUEST_BODY_BYTES).contains(&whole)
                && what == "spec.text",
            "{whole} {what}"
        );
        let (_, what) = size(json!({"x-kubernetes-preserve-unknown-fields": true}));
        assert_eq!(what, "spec.admit-filling");
        // Fields that have a limit or depend on other fields are not changed.
        for spec in [
            json!({"properties": {"text": {"type": "string", "maxLength": 9}, "size": {"type": "integer"}}}),
            json!({"properties": {"text": {"type": "string"}}, "oneOf": [{"required": ["text"]}]}),
            json!({"additionalProperties": {"type": "integer"}}),
        ] {
            let (limited, what) = size(spec);
            assert!(
                limited < TOTAL_ANNOTATION_SIZE_LIMIT + 256 && what == "an annotation",
                "{limited} {what}"
            );
        }
    }
}
