//! An amount of a resource, such as `500m` or `1536Mi`: parsed, compared and printed as the API does.

pub use kubernetes_cel::quantity::{Quantity, QuantityError};
