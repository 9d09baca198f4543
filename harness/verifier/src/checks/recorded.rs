//! For checks that look at what a webhook writes at the API server behind it.

use std::sync::Arc;
use std::time::Duration;

use kubernetes_admission::attributes::Attributes;

use crate::check::{Observed, Obstacle};
use crate::environment::{Outcome, Verdict};
use crate::recorder::Recorder;
use crate::webhook_probe::WebhookProbe;

/// How many requests are tried.
pub(super) const SAMPLES: usize = 8;
/// How long a write may come after the answer.
const SETTLING: Duration = Duration::from_millis(300);

/// Waits for writes that come after the answer.
pub(super) async fn settle() {
    tokio::time::sleep(SETTLING).await;
}

/// The API server behind the webhook, and requests to try.
///
/// # Errors
/// [`Obstacle`] if nobody watches, or there is no request to try.
pub(super) fn equipment<'a>(
    webhook_probe: &'a WebhookProbe<'_>,
) -> Result<(&'a Recorder, &'a [Attributes]), Obstacle> {
    if webhook_probe.samples.is_empty() {
        return Err(Obstacle::not_applicable("its rules and selectors pick no object of the corpus"));
    }
    let Some(recorder) = &webhook_probe.settings.recorder else {
        let reason = "what it writes is not recorded: give it the kubeconfig of --api-server-out";
        return Err(Obstacle::unequipped(reason));
    };
    Ok((recorder, first_samples(webhook_probe)))
}

/// The first few requests of those that the webhook is tried with.
pub(super) fn first_samples<'a>(webhook_probe: &WebhookProbe<'a>) -> &'a [Attributes] {
    webhook_probe.samples.get(..SAMPLES).unwrap_or(webhook_probe.samples)
}

/// What becomes of a request, if the webhook alone gives a valid answer.
///
/// # Errors
/// [`Obstacle`] if it gives none.
pub(super) async fn answered(
    webhook_probe: &WebhookProbe<'_>,
    request: &Attributes,
) -> Result<Arc<Outcome>, Obstacle> {
    let outcome = Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), request).await);
    match outcome.verdict() {
        Verdict::Failed(reason) => Err(Obstacle::not_checked(reason)),
        Verdict::Admitted
        | Verdict::Denied(_)
        | Verdict::ServerError(_)
        | Verdict::NoConditions(_)
        | Verdict::Unsupported(_) => Ok(outcome),
    }
}

/// What it means that no write was seen.
pub(super) fn nothing_seen(recorder: &Recorder) -> Observed {
    if recorder.was_contacted() {
        return Ok(Vec::new());
    }
    Err(never_contacted("it has"))
}

/// What it means that nobody has asked the API server for anything yet; `it_has` begins the sentence.
pub(super) fn never_contacted(it_has: &str) -> Obstacle {
    Obstacle::Uncontacted(format!(
        "{it_has} never asked the API server of --api-server-out anything: is it started with that kubeconfig?"
    ))
}
