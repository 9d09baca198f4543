//! What all mutating webhooks together make of an object.

use std::sync::Arc;

use kubernetes_admission::config::Webhook;
use kubernetes_admission::event::{Phase, Round};

use crate::check::{Observed, Obstacle};
use crate::environment::{Outcome, Verdict, WebhookSet};
use crate::object_probe::ObjectProbe;
use crate::subject::Subject;

/// The mutating webhooks that are called for the object, in dispatch order.
///
/// # Errors
/// There are fewer than two, or one of them gives no valid answer.
pub(super) async fn called<'a>(object_probe: &ObjectProbe<'a>) -> Result<Vec<&'a Subject>, Obstacle> {
    let all: Vec<&Subject> =
        object_probe.subjects.iter().filter(|subject| subject.webhook.phase == Phase::Mutating).collect();
    if all.len() < 2 {
        return Err(Obstacle::not_applicable("there is only one mutating webhook"));
    }
    let outcome = admitted(object_probe, &all, |subject| Arc::clone(&subject.called)).await?;
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
    object_probe: &ObjectProbe<'_>,
    subjects: &[&Subject],
    webhook: impl Fn(&Subject) -> Arc<Webhook>,
) -> Result<Arc<Outcome>, Obstacle> {
    let webhook_set: WebhookSet = ObjectProbe::in_order(subjects.iter().map(|subject| webhook(subject)));
    let outcome = object_probe.outcome(&webhook_set, object_probe.request).await;
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
