//! Computes the table rows of the `scale` subresource.

use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, name, number, row};

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        number(object, &["spec", "replicas"]),
        number(object, &["status", "replicas"]),
        age_of(object, context),
    ]
}
