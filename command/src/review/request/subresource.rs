//! Determines the operations and bodies of requests for subresources.

use harness::attributes::{GroupVersionKind, Operation};
use harness::json::set;
use serde_json::{Value, json};

/// Returns the default operation of a subresource.
pub(super) fn operation(subresource: &str) -> Operation {
    match subresource {
        "" | "eviction" | "binding" | "token" => Operation::Create,
        "exec" | "attach" | "portforward" | "proxy" => Operation::Connect,
        _ => Operation::Update,
    }
}

/// Returns whether objects of this kind exist only as request bodies of a subresource.
pub(super) fn is_body(kind: &str) -> bool {
    matches!(kind, "Scale" | "Eviction" | "Binding" | "TokenRequest")
}

/// Returns the kind of the object that `subresource` belongs to, or `None` if `kind` is that kind.
///
/// # Errors
/// Returns an error that says what to specify if the kind is ambiguous.
pub(super) fn belongs_to(
    kind: &GroupVersionKind,
    subresource: &str,
    old: Option<&Value>,
) -> Option<Result<GroupVersionKind, String>> {
    if !is_body(&kind.kind) {
        return None;
    }
    if let Some(old) = old {
        return Some(Ok(GroupVersionKind::from_object(old)));
    }
    Some(match subresource {
        "eviction" | "binding" => Ok(GroupVersionKind::new("", "v1", "Pod")),
        "token" => Ok(GroupVersionKind::new("", "v1", "ServiceAccount")),
        _ => Err(format!("a {} does not name its parent: pass the parent with --old FILE", kind.kind)),
    })
}

/// Creates the request body for `subresource` from its object, or returns `None` if the body is the object itself.
pub(super) fn body(subresource: &str, object: &Value) -> Option<Value> {
    let metadata = |field: &str| object.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
    let mut body = match subresource {
        "scale" => json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "spec": {"replicas": object.pointer("/spec/replicas").cloned().unwrap_or_else(|| json!(1))},
        }),
        "eviction" => json!({"apiVersion": "policy/v1", "kind": "Eviction"}),
        _ => return None,
    };
    set(&mut body, &["metadata", "name"], metadata("name"));
    if let Value::String(namespace) = metadata("namespace") {
        set(&mut body, &["metadata", "namespace"], namespace);
    }
    Some(body)
}
