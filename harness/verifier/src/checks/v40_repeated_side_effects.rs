//! V40: a repeated call does not repeat side effects.

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::event::Phase;

use super::recorded_writes;
use super::write_attribution::{Attribution, Watched, WriteAttribution};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::Outcome;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V40",
    title: "repeated side effects: a retried or reinvoked call does not create objects again",
    severity: Severity::Warning,
    why: "The API server calls a webhook again with the same body when the response has Retry-After, and \
          with a new uid when a later webhook changed the object; clients retry whole requests. A webhook \
          that creates an object with a generated name on each call counts, bills, or allocates twice for \
          one object.",
    help: "Derive the names of created objects from the object in the request, and treat AlreadyExists as \
           success.",
    source: "KEP-492, Reinvocation; client-go rest/request.go, retries; Dynamic Admission Control, Side \
             effects",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Effects(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let (recorder, samples) = recorded_writes::equipment(webhook_probe)?;
    let webhook = &webhook_probe.subject.webhook;
    let mut outcomes = Vec::new();
    for sample in samples {
        outcomes.push(recorded_writes::responded(webhook_probe, sample).await?);
    }
    recorded_writes::leave_invalid_unjudged(webhook_probe, &outcomes)?;
    let mut called = Vec::new();
    for (sample, first) in samples.iter().zip(outcomes) {
        let review = first.exchanges_of(&webhook.id).next().map(|exchange| exchange.review.clone());
        let review = review.filter(|_| first.failure().is_none());
        called.extend(review.map(|review| (sample, first, review)));
    }
    let mut attribution =
        WriteAttribution::new(recorder, Watched::Creations, called.iter().map(|(sample, ..)| *sample)).await;
    let retried = loop {
        attribution.begin();
        for (.., review) in &called {
            let retried = webhook_probe.environment.post(&webhook_probe.subject.called, review.clone()).await;
            retried.reply.map_err(|error| Skipped::not_checked(error.to_string()))?;
        }
        match attribution.end().await {
            Attribution::Again => {}
            seen @ (Attribution::Caused { .. } | Attribution::Nothing { .. }) => break seen,
        }
    };
    if let Some((count, write)) = caused(webhook_probe, retried) {
        let calls = called.len();
        let message = format!(
            "in {calls} {} with a body that it had already answered, the webhook created {count} {}, first {write}",
            if calls == 1 { "call" } else { "calls" },
            if count == 1 { "object" } else { "objects" }
        );
        let violation = Violation::new("repeats a side effect when retried", message);
        let first = called.into_iter().next().map(|(_, first, _)| first);
        return Ok(vec![violation.with_steps(first)]);
    }
    // A deleted object is not changed, so there is no second round.
    let is_final = |sample: &Attributes, first: &Outcome| {
        sample.operation == Operation::Delete || first.refusal.is_some()
    };
    if webhook.phase == Phase::Validating {
        return recorded_writes::nothing_seen(recorder);
    }
    called.retain(|(sample, first, _)| !is_final(sample, first));
    let reinvoked: Vec<Attributes> = called
        .iter()
        .map(|(sample, first, _)| Attributes { object: first.object.clone(), ..(*sample).clone() })
        .collect();
    let mut attribution = WriteAttribution::new(recorder, Watched::Creations, &reinvoked).await;
    let mut second = None;
    let again = loop {
        attribution.begin();
        for request in &reinvoked {
            let outcome = recorded_writes::responded(webhook_probe, request).await?;
            second.get_or_insert(outcome);
        }
        match attribution.end().await {
            Attribution::Again => {}
            seen @ (Attribution::Caused { .. } | Attribution::Nothing { .. }) => break seen,
        }
    };
    if let Some((count, write)) = caused(webhook_probe, again) {
        let calls = reinvoked.len();
        let message = format!(
            "in {calls} calls with its own result, the webhook created {count} objects, first {write}"
        );
        let violation = Violation::new("repeats a side effect when reinvoked", message);
        let first = called.into_iter().next().map(|(_, first, _)| first);
        return Ok(vec![violation.with_steps(first.into_iter().chain(second))]);
    }
    recorded_writes::nothing_seen(recorder)
}

/// Returns the number of objects that the calls created, and the first creation, if any.
fn caused(webhook_probe: &WebhookProbe<'_>, seen: Attribution) -> Option<(usize, String)> {
    match seen {
        Attribution::Caused { count, first } => Some((count, first)),
        Attribution::Nothing { note: Some(note) } => {
            webhook_probe.note(note);
            None
        }
        Attribution::Again | Attribution::Nothing { note: None } => None,
    }
}
