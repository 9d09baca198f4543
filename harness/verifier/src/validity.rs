//! What the API server's validation finds wrong with an object.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::Attributes;
use kubernetes_types::status::StatusCause;
use serde_json::Value;

use super::environment::Environment;
use super::stored;

/// What the API server finds wrong with `object` if `request` carries it. Nothing if admit does not imitate that
/// validation: nobody can say.
pub(super) fn faults(environment: &Environment, request: &Attributes, object: &Value) -> Vec<StatusCause> {
    let mut request = Attributes { object: Some(object.clone()), ..request.clone() };
    stored::prepare(&mut request, &environment.cluster_fixture);
    environment.cluster_fixture.invalid_fields(&request).unwrap_or_default()
}

/// What is wrong in words that do not depend on the object: the field without positions and keys, and the kind of fault,
/// such as `spec.volumes.name: Duplicate value`.
pub(super) fn place(cause: &StatusCause) -> String {
    let what = cause.message.split(':').next().unwrap_or_default();
    format!("{}: {what}", without_positions(&cause.field))
}

/// A field without positions and keys: `spec.volumes.name` of `spec.volumes[0].name`.
pub(super) fn without_positions(path: &str) -> String {
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

/// Whether the API server finds fault with objects that are made of `object`, and which it would not find with `object`.
pub(super) struct Validity<'a> {
    environment: &'a Environment,
    known: BTreeSet<String>,
}

impl<'a> Validity<'a> {
    pub(super) fn of(environment: &'a Environment, object: &Value) -> Self {
        Self { environment, known: places(environment, object).unwrap_or_default() }
    }

    /// Whether `object` has no fault but those that are known.
    pub(super) fn holds_for(&self, object: &Value) -> bool {
        places(self.environment, object).is_some_and(|places| places.is_subset(&self.known))
    }
}

/// The places of all faults of an object that is created; none if no such request can be made.
fn places(environment: &Environment, object: &Value) -> Option<BTreeSet<String>> {
    let request = environment.create(object.clone()).ok()?;
    let object = request.object.as_ref()?;
    Some(faults(environment, &request, object).iter().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_no_positions() {
        assert_eq!(without_positions("spec.volumes[0].name"), "spec.volumes.name");
        assert_eq!(without_positions("metadata.annotations[a[b].c].d"), "metadata.annotations.d");
    }
}
