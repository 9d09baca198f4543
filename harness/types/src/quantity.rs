//! Provides resource quantities, such as `500m` or `1536Mi`. They are compared and formatted as in the API.

use serde_json::Value;

pub use kubernetes_cel::quantity::{Quantity, QuantityError};

/// Parses the quantity in a field; returns `None` if it is invalid. The field may also contain a JSON number.
pub fn from_value(value: &Value) -> Option<Quantity> {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    Quantity::parse(&text).ok()
}
