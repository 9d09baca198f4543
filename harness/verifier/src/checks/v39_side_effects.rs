//! V39: a webhook with `sideEffects: None` never writes.

use kubernetes_admission::config::SideEffects;

use super::recorded_writes;
use super::write_attribution::{Attribution, Watched, WriteAttribution};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V39",
    title: "side effects: a webhook with sideEffects None never writes",
    severity: Severity::Error,
    why: "sideEffects None states that a call has no effect other than its response, for any caller and any \
          number of calls. A webhook that writes anyway leaves objects behind for requests that are \
          rejected later, and repeats its writes when it is called again. It should declare NoneOnDryRun \
          and skip writes on dry runs.",
    help: "Move the writes to a controller, or declare sideEffects: NoneOnDryRun and skip writes on dry \
           runs.",
    source: "Dynamic Admission Control, Side effects",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Effects(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    if webhook_probe.subject.webhook.side_effects != SideEffects::None {
        return Err(Skipped::not_applicable("sideEffects is not None"));
    }
    let (recorder, samples) = recorded_writes::equipment(webhook_probe)?;
    let mut outcomes = Vec::new();
    let mut attribution = WriteAttribution::new(recorder, Watched::Writes, samples).await;
    let (count, first) = loop {
        attribution.begin();
        for sample in samples {
            // A webhook may write whether or not its response is valid.
            outcomes.push(recorded_writes::responded(webhook_probe, sample).await?);
        }
        match attribution.end().await {
            Attribution::Again => {}
            Attribution::Caused { count, first } => break (count, first),
            Attribution::Nothing { note } => {
                if let Some(note) = note {
                    webhook_probe.note(note);
                }
                // Each round has the same requests.
                outcomes.truncate(samples.len());
                recorded_writes::leave_invalid_unjudged(webhook_probe, &outcomes)?;
                return recorded_writes::nothing_seen(recorder);
            }
        }
    };
    let message = format!(
        "sideEffects is None, but the webhook wrote to the API server: {} for {}, first {first}",
        if count == 1 { "1 write".to_owned() } else { format!("{count} writes") },
        if samples.len() == 1 { "1 request".to_owned() } else { format!("{} requests", samples.len()) }
    );
    let violation = Violation::new("writes although sideEffects is None", message);
    Ok(vec![violation.with_steps(outcomes.into_iter().next())])
}
