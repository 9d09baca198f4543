//! V39: a webhook that says it has no side effects writes nothing, ever.

use kubernetes_admission::config::SideEffects;

use super::recorded;
use super::windows::{Seen, Watched, Windows};
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V39",
    title: "sideEffects None: it writes nothing, in real runs either",
    severity: Severity::Error,
    why: "sideEffects None says that a call changes nothing beside its answer, whoever asks and however often. A webhook \
          that writes all the same leaves objects behind for requests that are refused later, repeats its writes when it \
          is called again, and should say NoneOnDryRun, and mean it.",
    source: "Dynamic Admission Control, Side effects",
    audience: Audience::All,
    probe: Probe::Effects(|webhook_probe| Box::pin(run(webhook_probe))),
};

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    if webhook_probe.subject.webhook.side_effects != SideEffects::None {
        return Err(Obstacle::not_applicable("its sideEffects are not None"));
    }
    let (recorder, samples) = recorded::equipment(webhook_probe)?;
    let mut outcomes = Vec::new();
    let mut windows = Windows::of(recorder, Watched::Writes, samples).await;
    let (count, first) = loop {
        windows.begin();
        for sample in samples {
            outcomes.push(recorded::answered(webhook_probe, sample).await?);
        }
        match windows.end().await {
            Seen::Again => {}
            Seen::Caused { count, first } => break (count, first),
            Seen::Nothing { note } => {
                if let Some(note) = note {
                    webhook_probe.note(note);
                }
                return recorded::nothing_seen(recorder);
            }
        }
    };
    let message = format!(
        "sideEffects is None, and in {} real runs it wrote {count} times, first {first}",
        samples.len()
    );
    let violation = Violation::new("writes although sideEffects is None", message);
    Ok(vec![violation.with_steps(outcomes.into_iter().next())])
}
