//! Looks for the smallest object that shows a finding.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::{Check, Violation};
use super::checks;
use super::determinism::is_deterministic;
use super::finding_log::ViolationGroup;
use super::object_probe::Memory;
use super::plan::Plan;
use super::shrink::Shrinking;
use super::subject::Subject;
use super::validity::Validity;

/// The maximum number of smaller objects to try for a finding.
const OFFERS: usize = 200;

/// The number of additional probes that must show a violation before it counts as deterministic.
const REPETITIONS: usize = 3;

/// Replaces the object of a finding with the smallest one that has the same violation, or marks the finding as invalid
/// because the webhook gives different responses to the same request.
///
/// `varies` states that V11 found different responses.
pub(super) async fn minimize(
    plan: &Plan,
    place: (&'static Check, Option<&Subject>),
    object: Value,
    found: &mut ViolationGroup,
    varies: bool,
) {
    let (check, subject) = place;
    let is_comparing = checks::COMPARING.contains(&check.id);
    if is_comparing && (varies || !is_deterministic(plan, subject, &object).await) {
        found.is_not_deterministic = true;
        return;
    }
    let kind = found.violation.kind.clone();
    if let Some((object, violation)) = smallest(plan, place, object, &kind).await {
        found.is_not_deterministic = is_comparing && !is_repeatable(plan, place, &object, &kind).await;
        found.object = Some(object);
        found.violation = violation;
    } else {
        found.is_not_deterministic = (is_comparing || varies) && check.id != checks::DETERMINISM;
    }
}

/// Returns the smallest object with a violation of this kind, or `None` if `object` no longer has the violation.
async fn smallest(
    plan: &Plan,
    (check, subject): (&'static Check, Option<&Subject>),
    object: Value,
    kind: &str,
) -> Option<(Value, Violation)> {
    let shown = async |object: &Value| violation(plan, (check, subject), object, kind).await;
    let mut violation = shown(&object).await?;
    let fields = if violation.shows_all_fields { violation.fields.clone() } else { BTreeSet::new() };
    let validity = Validity::new(&plan.environment, &object);
    let mut shrinking = Shrinking::new(object, OFFERS);
    while let Some(smaller) = shrinking.next(|object| validity.holds_for(object)) {
        if let Some(smaller) = shown(smaller).await
            && smaller.fields.is_superset(&fields)
        {
            violation = smaller;
            shrinking.keep();
        }
    }
    Some((shrinking.into_object(), violation))
}

/// Returns whether repeated probes with `object` all have a violation of this kind.
async fn is_repeatable(
    plan: &Plan,
    place: (&'static Check, Option<&Subject>),
    object: &Value,
    kind: &str,
) -> bool {
    for _ in 0..REPETITIONS {
        if violation(plan, place, object, kind).await.is_none() {
            return false;
        }
    }
    true
}

/// Returns the violation of this kind that a probe with `object` has.
async fn violation(
    plan: &Plan,
    (check, subject): (&'static Check, Option<&Subject>),
    object: &Value,
    kind: &str,
) -> Option<Violation> {
    let request = plan.environment.create(object.clone()).ok()?;
    let observed = plan.probe(check, subject, &request, &Memory::default()).await?;
    observed.ok()?.into_iter().find(|violation| violation.kind == kind)
}
