//! The object of a creation as the server stores it, and the requests that are about it from then on.

use serde_json::{Value, json};

use crate::attributes::{Attributes, Operation};

/// The object as the server stores it: it has a name, and a uid.
pub(super) fn as_stored(object: &Value) -> Value {
    let mut stored = object.clone();
    stored["metadata"]["name"] = name(object).into();
    stored["metadata"]["uid"] = "6f3d1d2e-0000-4000-8000-00000000000a".into();
    stored["metadata"]["resourceVersion"] = "1".into();
    stored["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    stored
}

/// The name, or the one that the server makes of `generateName`.
fn name(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    if text("name").is_empty() { format!("{}x7k2p", text("generateName")) } else { text("name").to_owned() }
}

/// The request that writes `written` over `stored`, which `creation` has made.
pub(super) fn update(creation: &Attributes, stored: Value, written: Value) -> Attributes {
    Attributes {
        operation: Operation::Update,
        name: name(&stored),
        object: Some(written),
        old_object: Some(stored),
        options: Some(json!({"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"})),
        ..creation.clone()
    }
}

/// The request that deletes `stored`, which `creation` has made.
pub(super) fn delete(creation: &Attributes, stored: Value) -> Attributes {
    Attributes {
        operation: Operation::Delete,
        name: name(&stored),
        object: None,
        old_object: Some(stored),
        options: Some(json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"})),
        ..creation.clone()
    }
}
