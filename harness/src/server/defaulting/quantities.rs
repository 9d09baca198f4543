//! Writes quantities the way the server stores them.

use serde_json::Value;

use super::fields::with;
use crate::quantity::Quantity;

/// Every quantity of a list of resources.
pub(super) fn canonical(list: &mut Value) {
    for quantity in list.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        rewrite(quantity);
    }
}

/// `limits` and `requests`.
pub(super) fn requirements(resources: &mut Value) {
    with(resources, "limits", canonical);
    with(resources, "requests", canonical);
}

/// The one quantity at `object[field]`.
pub(super) fn canonical_field(object: &mut Value, field: &str) {
    if let Some(quantity) = object.get_mut(field) {
        rewrite(quantity);
    }
}

/// Leaves what is no quantity to validation.
///
/// Source: apimachinery pkg/api/resource/quantity.go, `UnmarshalJSON` (a number is read as its text) and `MarshalJSON`.
fn rewrite(value: &mut Value) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return,
    };
    if let Ok(quantity) = Quantity::parse(&text) {
        *value = Value::String(quantity.to_string());
    }
}
