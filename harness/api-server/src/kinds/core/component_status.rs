//! Implements `ComponentStatus` objects.

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::cells::{Context, condition, items, name, row};
use crate::kinds::kind::Kind;

/// The behavior of `ComponentStatus` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "componentstatuses",
    kind: "ComponentStatus",
    cells: Some(cells),
    ..Kind::PLAIN
};

pub(crate) fn cells(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let healthy = condition(items(object, &["conditions"]), "Healthy").unwrap_or(&Value::Null);
    let status = match at(healthy, &["status"]).as_str() {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    row![name(object), status, text(healthy, &["message"]), text(healthy, &["error"])]
}
