//! Validates built-in kinds except for metadata.
//!
//! Each kind's constant names its functions. They report errors in kube-apiserver's order.

use kubernetes_types::schema::Type;
use kubernetes_types::status::{FieldError, Unsupported};
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::discovery::Resource;
use crate::kinds::kind::Kind;
use crate::kinds::table;

/// Validates an object. For an update of the object or of a subresource, `old` is the previous object.
///
/// Rule: VLO-01.
///
/// # Errors
/// Returns an error if the object requires validation that admit does not support.
pub(crate) fn errors(
    object: &Value,
    old: Option<&Value>,
    resource: &Resource,
    subresource: &str,
) -> Result<Vec<FieldError>, Unsupported> {
    let mut errors = Errors::default();
    let change = old.map(|old| Change { new: object, old, of: Type::for_kind(&resource.kind) });
    let kind = table::of(resource);
    if subresource.is_empty() {
        (kind.validate)(&mut errors, object, change);
    } else if let (Some(validate), Some(change)) = (Kind::on(kind.validate_subresources, subresource), change)
    {
        validate(&mut errors, object, change);
    }
    errors.into_list()
}
