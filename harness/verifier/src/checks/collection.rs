//! Runs all mutating webhooks together on an object.

use std::sync::Arc;

use kubernetes_admission::config::Webhook;
use kubernetes_admission::event::{Phase, Round};

use crate::check::{Observed, Skipped};
use crate::environment::{Outcome, Verdict, WebhookSet};
use crate::object_probe::ObjectProbe;
use crate::subject::Subject;

/// Returns the mutating webhooks that are called for the object, in dispatch order.
///
/// # Errors
/// Returns [`Skipped`] if fewer than two webhooks are called, or if the creation is not admitted.
pub(crate) async fn called<'a>(object_probe: &ObjectProbe<'a>) -> Result<Vec<&'a Subject>, Skipped> {
    let all: Vec<&Subject> =
        object_probe.subjects.iter().filter(|subject| subject.webhook.phase == Phase::Mutating).collect();
    if all.len() < 2 {
        return Err(Skipped::not_applicable("there is only one mutating webhook"));
    }
    let outcome = admitted(object_probe, &all, |subject| Arc::clone(&subject.called)).await?;
    let called: Vec<&Subject> =
        all.into_iter().filter(|subject| outcome.was_called(&subject.webhook.id, Round::First)).collect();
    if called.len() < 2 {
        return Err(Skipped::not_applicable("fewer than two mutating webhooks are called for the object"));
    }
    Ok(called)
}

/// Returns the outcome of the creation with `subjects` as the webhooks, in the given order.
///
/// # Errors
/// Returns [`Skipped`] if the creation is not admitted.
pub(super) async fn admitted(
    object_probe: &ObjectProbe<'_>,
    subjects: &[&Subject],
    webhook: impl Fn(&Subject) -> Arc<Webhook>,
) -> Result<Arc<Outcome>, Skipped> {
    let webhook_set: WebhookSet = ObjectProbe::in_order(subjects.iter().map(|subject| webhook(subject)));
    let outcome = object_probe.outcome(&webhook_set, object_probe.request).await;
    match outcome.verdict() {
        Verdict::Admitted => Ok(outcome),
        Verdict::Denied(_) => Err(Skipped::not_applicable("the webhooks deny the object")),
        Verdict::NoConditions(_) => Err(Skipped::no_conditions()),
        verdict @ (Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::Unsupported(_)) => {
            Err(Skipped::not_checked(verdict.to_string()))
        }
    }
}

/// Joins the names of `subjects` with commas.
pub(super) fn names(subjects: &[&Subject]) -> String {
    subjects.iter().map(|subject| subject.name()).collect::<Vec<_>>().join(", ")
}

/// The result of a probe that found no violations.
pub(super) const HOLDS: Observed = Ok(Vec::new());
