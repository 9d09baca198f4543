//! An amount of a resource, such as `500m` or `1536Mi`: parsed, compared and printed as the API does.

use serde_json::Value;

pub use kubernetes_cel::quantity::{Quantity, QuantityError};

/// The amount in a field of an object, which may also be a JSON number; none if it is no amount.
pub fn of(value: &Value) -> Option<Quantity> {
    let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    Quantity::parse(&text).ok()
}
