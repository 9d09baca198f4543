//! V38: a dry run has no side effects and the same response as the real run.

use std::sync::Arc;

use kubernetes_admission::attributes::{Attributes, Operation};
use kubernetes_types::json::set;
use serde_json::json;

use super::recorded_writes;
use super::write_attribution::{Attribution, Watched, WriteAttribution};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::{self, Order};
use crate::environment::Outcome;
use crate::finding_log::NOT_DETERMINISTIC;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V38",
    title: "dry-run side effects: the webhook writes nothing on a dry run and responds as in a real run",
    severity: Severity::Error,
    why: "sideEffects None or NoneOnDryRun is a promise: because of it, the API server calls the webhook on \
          dry runs. kubectl diff, GitOps tools, and autoscalers send dry runs all the time. A webhook that \
          writes on a dry run leaves unwanted objects behind, and one that responds differently makes the \
          previews wrong.",
    help: "Skip every write if request.dryRun is true, and compute the response as usual.",
    source: "Dynamic Admission Control, Side effects",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Effects(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// Sends the requests as dry runs.
///
/// # Errors
/// Returns [`Skipped`] if the webhook does not respond.
async fn dry_runs(
    webhook_probe: &WebhookProbe<'_>,
    samples: &[Attributes],
) -> Result<Vec<Arc<Outcome>>, Skipped> {
    let mut outcomes = Vec::new();
    for sample in samples {
        let mut dry = Attributes { dry_run: true, ..sample.clone() };
        if let Some(options) = &mut dry.options {
            set(options, &["dryRun"], json!(["All"]));
        }
        outcomes.push(recorded_writes::responded(webhook_probe, &dry).await?);
    }
    Ok(outcomes)
}

/// Returns the requests that can be dry runs.
///
/// # Errors
/// Returns [`Skipped`] if no request can be a dry run.
fn samples(webhook_probe: &WebhookProbe<'_>) -> Result<Vec<Attributes>, Skipped> {
    if webhook_probe.samples.is_empty() {
        return Err(Skipped::not_applicable(
            "no object in the corpus matches the webhook's rules and selectors",
        ));
    }
    let samples = recorded_writes::first_samples(webhook_probe).iter();
    // A CONNECT request does not have options, and so no dryRun.
    let samples: Vec<Attributes> =
        samples.filter(|sample| sample.operation != Operation::Connect).cloned().collect();
    if samples.is_empty() {
        return Err(Skipped::not_applicable("a CONNECT request cannot be a dry run"));
    }
    Ok(samples)
}

/// Describes the writes during dry runs of `samples`; `first` is the first of `count` writes.
fn writes_message(
    webhook_probe: &WebhookProbe<'_>,
    samples: &[Attributes],
    count: usize,
    first: &str,
) -> String {
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let runs = if samples.len() == 1 { "dry run" } else { "dry runs" };
    let tried = samples.first().map_or_else(String::new, |sample| {
        format!(", beginning with {} of {} {}", sample.operation, sample.resource.resource, sample.name)
    });
    let recorder = webhook_probe.settings.recorder.as_ref();
    let created = recorder.and_then(|recorder| recorder.last_created(first));
    let created =
        created.map(|object| format!(", which creates objects such as {object}")).unwrap_or_default();
    format!("in {} {runs}{tried}, the webhook wrote {times}, first {first}{created}", samples.len())
}

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let samples = samples(webhook_probe)?;
    if !webhook_probe.subject.webhook.side_effects.allow_dry_run() {
        return Err(Skipped::not_applicable(
            "the webhook is not called on dry runs: sideEffects is Some or \
                                             Unknown",
        ));
    }
    let alone = webhook_probe.alone();
    let mut violations = Vec::new();
    let mut dry_outcomes = Vec::new();
    let mut attribution = match &webhook_probe.settings.recorder {
        Some(recorder) => Some(WriteAttribution::new(recorder, Watched::Writes, &samples).await),
        None => None,
    };
    let seen = loop {
        if let Some(attribution) = &mut attribution {
            attribution.begin();
        }
        let outcomes = dry_runs(webhook_probe, &samples).await?;
        // The responses of the first round are compared.
        if dry_outcomes.is_empty() {
            dry_outcomes = outcomes;
        }
        match &mut attribution {
            None => break Attribution::Nothing { note: None },
            Some(attribution) => match attribution.end().await {
                Attribution::Again => {}
                seen @ (Attribution::Caused { .. } | Attribution::Nothing { .. }) => break seen,
            },
        }
    };
    match seen {
        Attribution::Again | Attribution::Nothing { note: None } => {}
        Attribution::Nothing { note: Some(note) } => webhook_probe.note(note),
        Attribution::Caused { count, first } => {
            let message = writes_message(webhook_probe, &samples, count, &first);
            let violation = Violation::new("writes on dry runs", message);
            violations.push(violation.with_steps(dry_outcomes.first().cloned()));
        }
    }
    if violations.is_empty() {
        recorded_writes::leave_invalid_unjudged(webhook_probe, &dry_outcomes)?;
    }
    let valid = samples.iter().zip(&dry_outcomes).filter(|(_, dry)| dry.failure().is_none());
    for (sample, dry) in valid {
        let real = Arc::new(webhook_probe.environment.admit(&alone, sample).await);
        let differs = |other: &Outcome| {
            other.refusal.is_some() != real.refusal.is_some() || other.object != real.object
        };
        if differs(dry) {
            let [one, other] = [sample, sample].map(|sample| webhook_probe.environment.admit(&alone, sample));
            let again = webhook_probe.environment.admit(&alone, &dry.request);
            if differs(&one.await) || differs(&other.await) || !differs(&again.await) {
                return Err(Skipped::not_checked(NOT_DETERMINISTIC));
            }
        }
        let steps = [Arc::clone(&real), Arc::clone(dry)];
        if real.refusal.is_some() != dry.refusal.is_some() {
            let message = format!("the real run gives `{}`, the dry run `{}`", real.verdict(), dry.verdict());
            violations.push(Violation::new("different verdict on dry runs", message).with_steps(steps));
            break;
        }
        let (Some(expected), Some(found)) = (&real.object, &dry.object) else { continue };
        let differences = comparison::differences(expected, found, &sample.kind, Order::Counts);
        if !differences.is_empty() {
            let message = format!(
                "on a dry run, the webhook changes the object differently: {}",
                super::fields(&differences)
            );
            let violation = Violation::new("different result on dry runs", message);
            violations.push(violation.with_differences(differences).with_steps(steps));
            break;
        }
    }
    if !violations.is_empty() {
        return Ok(violations);
    }
    match &webhook_probe.settings.recorder {
        None => {
            let reason = format!("the responses are the same, but {}", recorded_writes::NOT_OBSERVED);
            Err(Skipped::unequipped(reason))
        }
        Some(recorder) if !recorder.was_contacted() => {
            Err(recorded_writes::never_contacted("the responses are the same, but the webhook"))
        }
        Some(_) => Ok(violations),
    }
}
