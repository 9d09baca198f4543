//! What all mutating webhooks together make of an object.

use std::sync::Arc;

use crate::config::Webhook;
use crate::event::{Phase, Round};
use crate::verify::check::{Observed, Obstacle};
use crate::verify::laboratory::{Lineup, Outcome, Verdict};
use crate::verify::subject::Subject;
use crate::verify::trial::Trial;

/// The mutating webhooks that are called for the object, in dispatch order.
///
/// # Errors
/// There are fewer than two, or one of them gives no valid answer.
pub(super) async fn called<'a>(trial: &Trial<'a>) -> Result<Vec<&'a Subject>, Obstacle> {
    let all: Vec<&Subject> =
        trial.subjects.iter().filter(|subject| subject.webhook.phase == Phase::Mutating).collect();
    if all.len() < 2 {
        return Err(Obstacle::not_applicable("there is only one mutating webhook"));
    }
    let outcome = admitted(trial, &all, |subject| Arc::clone(&subject.called)).await?;
    let called: Vec<&Subject> =
        all.into_iter().filter(|subject| outcome.was_called(&subject.webhook.id, Round::First)).collect();
    if called.len() < 2 {
        return Err(Obstacle::not_applicable("fewer than two mutating webhooks are called for the object"));
    }
    Ok(called)
}

/// What becomes of the object when it meets `subjects` in this order.
///
/// # Errors
/// It is not admitted.
pub(super) async fn admitted(
    trial: &Trial<'_>,
    subjects: &[&Subject],
    webhook: impl Fn(&Subject) -> Arc<Webhook>,
) -> Result<Arc<Outcome>, Obstacle> {
    let lineup: Lineup = Trial::in_order(subjects.iter().map(|subject| webhook(subject)));
    let outcome = trial.outcome(&lineup, trial.request).await;
    match outcome.verdict() {
        Verdict::Admitted => Ok(outcome),
        Verdict::Denied(_) => Err(Obstacle::not_applicable("the webhooks deny the object")),
        Verdict::NoConditions(_) => Err(Obstacle::no_conditions()),
        verdict @ (Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::Unsupported(_)) => {
            Err(Obstacle::not_checked(verdict.to_string()))
        }
    }
}

/// The names for a sentence.
pub(super) fn names(subjects: &[&Subject]) -> String {
    subjects.iter().map(|subject| subject.name()).collect::<Vec<_>>().join(", ")
}

/// Nothing was wrong.
pub(super) const HOLDS: Observed = Ok(Vec::new());
