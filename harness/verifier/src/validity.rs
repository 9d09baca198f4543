//! Validates objects as the API server does.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::Attributes;
use kubernetes_types::status::StatusCause;
use serde_json::Value;

use super::environment::Environment;
use super::stored;

/// Returns the API server's validation errors for `object` in `request`.
///
/// Returns an empty list if admit does not implement the validation of the object's kind.
pub(super) fn faults(environment: &Environment, request: &Attributes, object: &Value) -> Vec<StatusCause> {
    let mut request = Attributes { object: Some(object.clone()), ..request.clone() };
    stored::prepare(&mut request, &environment.cluster_fixture);
    environment.cluster_fixture.invalid_fields(&request).unwrap_or_default()
}

/// Returns whether the cause only states that rules were not evaluated because of other errors.
pub(super) fn is_remark(cause: &StatusCause) -> bool {
    cause.field == "<nil>"
}

/// Returns an error as text without positions and keys, such as `spec.volumes.name: Duplicate value`.
pub(super) fn place(cause: &StatusCause) -> String {
    let what = cause.message.split(':').next().unwrap_or_default();
    format!("{}: {what}", without_positions(&cause.field))
}

/// Returns a field path without positions and keys, such as `spec.volumes.name` for `spec.volumes[0].name`.
pub fn without_positions(path: &str) -> String {
    let mut depth = 0_usize;
    path.chars()
        .filter(|letter| {
            match letter {
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ => return depth == 0,
            }
            false
        })
        .collect()
}

/// Returns whether the path `inner` is that of `outer` or of a part of it, such as `spec.volumes[0].name` of `spec.volumes`.
pub fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Tests whether a changed object has validation errors that the original object does not have.
pub(super) struct Validity<'a> {
    environment: &'a Environment,
    known: BTreeSet<String>,
}

impl<'a> Validity<'a> {
    pub(super) fn new(environment: &'a Environment, object: &Value) -> Self {
        Self { environment, known: places(environment, object).unwrap_or_default() }
    }

    /// Returns whether the original object has all errors of `object`.
    pub(super) fn holds_for(&self, object: &Value) -> bool {
        places(self.environment, object).is_some_and(|places| places.is_subset(&self.known))
    }
}

/// Returns the errors of an object on creation, without positions, or `None` if the request cannot be created.
fn places(environment: &Environment, object: &Value) -> Option<BTreeSet<String>> {
    let request = environment.create(object.clone()).ok()?;
    let object = request.object.as_ref()?;
    Some(faults(environment, &request, object).iter().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_has_no_positions() {
        assert_eq!(without_positions("spec.volumes[0].name"), "spec.volumes.name");
        assert_eq!(without_positions("metadata.annotations[a[b].c].d"), "metadata.annotations.d");
    }
}
