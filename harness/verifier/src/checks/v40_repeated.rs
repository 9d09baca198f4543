//! V40: a call that is repeated does not repeat an effect.

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_admission::event::Phase;

use super::recorded;
use super::windows::{Seen, Watched, Windows};
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::Outcome;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V40",
    title: "a call that is retried, or made in the second round, creates nothing once more",
    severity: Severity::Warning,
    why: "The API server calls a webhook again with the same body when the answer says Retry-After, with a new uid when \
          a later webhook changed the object, and clients retry whole requests. A webhook that creates something with \
          each call, under a generated name, counts, bills or allocates twice for one object.",
    source: "KEP-492, Reinvocation; client-go rest/request.go, retries; Dynamic Admission Control, Side effects",
    audience: Audience::All,
    probe: Probe::Effects(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let (recorder, samples) = recorded::equipment(webhook_probe)?;
    let webhook = &webhook_probe.subject.webhook;
    let mut called = Vec::new();
    for sample in samples {
        let first = recorded::answered(webhook_probe, sample).await?;
        let review = first.exchanges_of(&webhook.id).next().map(|exchange| exchange.review.clone());
        called.extend(review.map(|review| (sample, first, review)));
    }
    let mut windows =
        Windows::of(recorder, Watched::Creations, called.iter().map(|(sample, ..)| *sample)).await;
    let retried = loop {
        windows.begin();
        for (.., review) in &called {
            let retried = webhook_probe.environment.post(&webhook_probe.subject.called, review.clone()).await;
            retried.reply.map_err(|error| Obstacle::not_checked(error.to_string()))?;
        }
        match windows.end().await {
            Seen::Again => {}
            seen @ (Seen::Caused { .. } | Seen::Nothing { .. }) => break seen,
        }
    };
    if let Some((count, write)) = caused(webhook_probe, retried) {
        let calls = called.len();
        let message = format!(
            "in {calls} calls with a body that it had answered it created {count} objects, first {write}"
        );
        let violation = Violation::new("repeats an effect when retried", message);
        let first = called.into_iter().next().map(|(_, first, _)| first);
        return Ok(vec![violation.with_steps(first)]);
    }
    // Nobody changes what is deleted, so that there is no second round.
    let is_final = |sample: &Attributes, first: &Outcome| {
        sample.operation == Operation::Delete || first.refusal.is_some()
    };
    if webhook.phase == Phase::Validating {
        return recorded::nothing_seen(recorder);
    }
    called.retain(|(sample, first, _)| !is_final(sample, first));
    let reinvoked: Vec<Attributes> = called
        .iter()
        .map(|(sample, first, _)| Attributes { object: first.object.clone(), ..(*sample).clone() })
        .collect();
    let mut windows = Windows::of(recorder, Watched::Creations, &reinvoked).await;
    let mut second = None;
    let again = loop {
        windows.begin();
        for request in &reinvoked {
            let outcome = recorded::answered(webhook_probe, request).await?;
            second.get_or_insert(outcome);
        }
        match windows.end().await {
            Seen::Again => {}
            seen @ (Seen::Caused { .. } | Seen::Nothing { .. }) => break seen,
        }
    };
    if let Some((count, write)) = caused(webhook_probe, again) {
        let calls = reinvoked.len();
        let message = format!(
            "in {calls} calls for what it had made of an object it created {count} objects, first {write}"
        );
        let violation = Violation::new("repeats an effect when reinvoked", message);
        let first = called.into_iter().next().map(|(_, first, _)| first);
        return Ok(vec![violation.with_steps(first.into_iter().chain(second))]);
    }
    recorded::nothing_seen(recorder)
}

/// How many objects were created because of the calls, and the first write that did; what else was created is noted.
fn caused(webhook_probe: &WebhookProbe<'_>, seen: Seen) -> Option<(usize, String)> {
    match seen {
        Seen::Caused { count, first } => Some((count, first)),
        Seen::Nothing { note: Some(note) } => {
            webhook_probe.note(note);
            None
        }
        Seen::Again | Seen::Nothing { note: None } => None,
    }
}
