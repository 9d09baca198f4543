//! V38: a dry run writes nothing, and says what the real run says.

use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use kubernetes_types::json::set;
use serde_json::json;

use super::recorded;
use super::windows::{Seen, Watched, Windows};
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::{self, Order};
use crate::environment::{Outcome, Verdict};
use crate::finding_log::UNSTEADY;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V38",
    title: "honest about dry runs: it writes nothing, and answers as it does in a real run",
    severity: Severity::Error,
    why: "sideEffects None or NoneOnDryRun is a promise: the API server calls the webhook on dry runs because of it. \
          kubectl diff, GitOps tools and autoscalers make dry runs all the time; a webhook that writes then leaves \
          objects that nobody wanted, and one that answers otherwise makes their previews wrong.",
    source: "Dynamic Admission Control, Side effects",
    audience: Audience::All,
    probe: Probe::Effects(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// What becomes of the requests as dry runs.
async fn dry_runs(webhook_probe: &WebhookProbe<'_>, samples: &[Attributes]) -> Vec<Arc<Outcome>> {
    let mut outcomes = Vec::new();
    for sample in samples {
        let mut dry = Attributes { dry_run: true, ..sample.clone() };
        if let Some(options) = &mut dry.options {
            set(options, &["dryRun"], json!(["All"]));
        }
        outcomes.push(Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), &dry).await));
    }
    outcomes
}

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    if webhook_probe.samples.is_empty() {
        return Err(Obstacle::not_applicable("its rules and selectors pick no object of the corpus"));
    }
    if !webhook_probe.subject.webhook.side_effects.allow_dry_run() {
        return Err(Obstacle::not_applicable("it is not called on dry runs: sideEffects is Some or Unknown"));
    }
    let samples = recorded::first_samples(webhook_probe);
    let alone = webhook_probe.alone();
    let mut violations = Vec::new();
    let mut dry_outcomes = Vec::new();
    let mut windows = match &webhook_probe.settings.recorder {
        Some(recorder) => Some(Windows::of(recorder, Watched::Writes, samples).await),
        None => None,
    };
    let seen = loop {
        if let Some(windows) = &mut windows {
            windows.begin();
        }
        let outcomes = dry_runs(webhook_probe, samples).await;
        // The answers of the first time are those that are compared.
        if dry_outcomes.is_empty() {
            dry_outcomes = outcomes;
        }
        match &mut windows {
            None => break Seen::Nothing { note: None },
            Some(windows) => match windows.end().await {
                Seen::Again => {}
                seen @ (Seen::Caused { .. } | Seen::Nothing { .. }) => break seen,
            },
        }
    };
    match seen {
        Seen::Again | Seen::Nothing { note: None } => {}
        Seen::Nothing { note: Some(note) } => webhook_probe.note(note),
        Seen::Caused { count, first } => {
            let message = format!("in {} dry runs it wrote {count} times, first {first}", samples.len());
            let violation = Violation::new("writes on dry runs", message);
            violations.push(violation.with_steps(dry_outcomes.first().cloned()));
        }
    }
    for (sample, dry) in samples.iter().zip(&dry_outcomes) {
        if let Verdict::Failed(reason) = dry.verdict() {
            return Err(Obstacle::not_checked(reason));
        }
        let real = Arc::new(webhook_probe.environment.admit(&alone, sample).await);
        let differs = |other: &Outcome| {
            other.refusal.is_some() != real.refusal.is_some() || other.object != real.object
        };
        if differs(dry) {
            let [one, other] = [sample, sample].map(|sample| webhook_probe.environment.admit(&alone, sample));
            let again = webhook_probe.environment.admit(&alone, &dry.request);
            if differs(&one.await) || differs(&other.await) || !differs(&again.await) {
                return Err(Obstacle::not_checked(UNSTEADY));
            }
        }
        let steps = [Arc::clone(&real), Arc::clone(dry)];
        if real.refusal.is_some() != dry.refusal.is_some() {
            let message = format!("the real run says `{}`, the dry run `{}`", real.verdict(), dry.verdict());
            violations.push(Violation::new("another verdict on dry runs", message).with_steps(steps));
            break;
        }
        let (Some(expected), Some(found)) = (&real.object, &dry.object) else { continue };
        let differences = comparison::differences(expected, found, &sample.kind, Order::Counts);
        if !differences.is_empty() {
            let message =
                format!("on a dry run it changes the object otherwise: {}", super::fields(&differences));
            let violation = Violation::new("another result on dry runs", message);
            violations.push(violation.with_differences(differences).with_steps(steps));
            break;
        }
    }
    if !violations.is_empty() {
        return Ok(violations);
    }
    match &webhook_probe.settings.recorder {
        None => {
            let reason = "its answers are the same, but what it writes is not recorded: give it the kubeconfig of \
                          --api-server-out";
            Err(Obstacle::unequipped(reason))
        }
        Some(recorder) if !recorder.was_contacted() => {
            Err(recorded::never_contacted("its answers are the same, but it has"))
        }
        Some(_) => Ok(violations),
    }
}
