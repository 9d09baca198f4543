//! V40: a call that is repeated does not repeat an effect.

use super::recorded;
use crate::attributes::{Attributes, Operation};
use crate::event::Phase;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::station::Station;

pub(super) const CHECK: Check = Check {
    id: "V40",
    title: "a call that is retried, or made in the second round, creates nothing once more",
    severity: Severity::Warning,
    why: "The API server calls a webhook again with the same body when the answer says Retry-After, with a new uid when \
          a later webhook changed the object, and clients retry whole requests. A webhook that creates something with \
          each call, under a generated name, counts, bills or allocates twice for one object.",
    source: "KEP-492, Reinvocation; client-go rest/request.go, retries; Dynamic Admission Control, Side effects",
    audience: Audience::All,
    probe: Probe::Effects(|station| Box::pin(run(station))),
};

async fn run(station: &Station<'_>) -> Observed {
    let (recorder, samples) = recorded::equipment(station)?;
    let webhook = &station.subject.webhook;
    for sample in samples {
        let first = recorded::answered(station, sample).await?;
        let Some(exchange) = first.exchanges_of(&webhook.id).next() else { continue };
        recorded::settle().await;
        let mark = recorder.created();
        let retried = station.laboratory.post(&station.subject.called, exchange.review.clone()).await;
        if let Err(error) = retried.reply {
            return Err(Obstacle::not_checked(error.to_string()));
        }
        recorded::settle().await;
        let again = recorder.created() - mark;
        if again > 0 {
            let message = format!("called with the same body, it created {again} objects once more");
            return Ok(vec![Violation::new("repeats an effect when retried", message).with_steps([first])]);
        }
        // Nobody changes what is deleted, so that there is no second round.
        let is_final = sample.operation == Operation::Delete || first.refusal.is_some();
        if station.subject.webhook.phase == Phase::Validating || is_final {
            continue;
        }
        let reinvoked = Attributes { object: first.object.clone(), ..sample.clone() };
        let second = recorded::answered(station, &reinvoked).await?;
        recorded::settle().await;
        let again = recorder.created() - mark;
        if again > 0 {
            let message = format!("called again for what it made of the object, it created {again} objects");
            let violation = Violation::new("repeats an effect when reinvoked", message);
            return Ok(vec![violation.with_steps([first, second])]);
        }
    }
    recorded::nothing_seen(recorder)
}
