//! Provides resource quantities, such as `500m` or `1536Mi`. They are compared and formatted as in the API.

use serde_json::Value;

pub use kubernetes_cel::quantity::{Quantity, QuantityError};

/// Parses the quantity in a field, which may also be a JSON number; returns `None` if it is invalid.
pub fn from_value(value: &Value) -> Option<Quantity> {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    Quantity::parse(&text).ok()
}
