//! Decodes the Scale of a custom resource.
//!
//! A Scale has a Go type, but after a webhook has patched it, it is unstructured until all webhooks have run.

use kubernetes_types::quoting::quote;
use kubernetes_types::schema;
use kubernetes_types::unstructured::{int32, members, metadata_error, not_a_text};
use serde_json::{Value, json};

use crate::attributes::{Attributes, GroupVersionKind};
use crate::cluster_state::ClusterState;

/// Returns whether a request is for the Scale of a custom resource.
///
/// Built-in Scales are in the core group and in `apps`. These groups do not contain custom resources.
pub(crate) fn is_custom_scale(attributes: &Attributes) -> bool {
    attributes.subresource == "scale" && !matches!(attributes.resource.group.as_str(), "" | "apps")
}

/// Decodes an unstructured object into a Scale.
///
/// # Errors
/// Returns kube-apiserver's error message if the object is not a Scale.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `UnstructuredObjectTyper`;
/// apimachinery pkg/runtime/scheme.go, `unstructuredToTyped`.
/// Rule: MUT-22.
pub(crate) fn decode(
    mut object: Value,
    kind: &GroupVersionKind,
    state: &dyn ClusterState,
) -> Result<Value, String> {
    let found = GroupVersionKind::from_object(&object);
    if found.version.is_empty() {
        return Err("Object 'apiVersion' is missing in 'unstructured object has no version'".to_owned());
    }
    if found != *kind && !state.is_built_in(&found) {
        return Err(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(&found.kind),
            quote(&found.api_version())
        ));
    }
    if found != *kind {
        return Err(format!(
            "converting ({}.{}) to ({}.{}): unknown conversion",
            found.version, found.kind, kind.version, kind.kind
        ));
    }
    let unreadable = |why: String| {
        format!("unable to convert unstructured object to {}, Kind={}: {why}", kind.api_version(), kind.kind)
    };
    let (mut spec, mut status) = (json!({}), json!({"replicas": 0}));
    read(&object, &mut spec, &mut status).map_err(unreadable)?;
    if let Some(members) = object.as_object_mut() {
        members.entry("metadata").or_insert_with(|| json!({}));
        members.insert("spec".to_owned(), spec);
        members.insert("status".to_owned(), status);
    }
    drop(schema::normalize(&mut object, kind));
    Ok(object)
}

fn read(object: &Value, spec: &mut Value, status: &mut Value) -> Result<(), String> {
    let field = |name: &str| object.get(name).unwrap_or(&Value::Null);
    members(field("metadata"))?;
    if let Some(why) = metadata_error(field("metadata")) {
        return Err(why);
    }
    if let Some(replicas) = members(field("spec"))?.and_then(|spec| spec.get("replicas")) {
        let replicas = int32(replicas)?;
        if replicas != 0 {
            *spec = json!({"replicas": replicas});
        }
    }
    let Some(given) = members(field("status"))? else { return Ok(()) };
    let replicas = given.get("replicas").map_or(Ok(0), int32)?;
    let selector = given.get("selector").unwrap_or(&Value::Null);
    if let Some(why) = not_a_text(selector) {
        return Err(why);
    }
    *status = match selector.as_str() {
        Some(selector) if !selector.is_empty() => json!({"replicas": replicas, "selector": selector}),
        _ => json!({"replicas": replicas}),
    };
    Ok(())
}
