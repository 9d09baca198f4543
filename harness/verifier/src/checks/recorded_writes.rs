//! Provides helpers for checks of the objects that a webhook writes to its API server.

use std::sync::Arc;
use std::time::Duration;

use kubernetes_admission::attributes::Attributes;

use crate::check::{Observed, Skipped};
use crate::environment::Outcome;
use crate::reasons::is_invalid_response;
use crate::recorder::Recorder;
use crate::webhook_probe::WebhookProbe;

/// The number of requests that each check tries.
pub(super) const SAMPLES: usize = 8;
/// The time after a response during which a write may still arrive.
const SETTLING: Duration = Duration::from_millis(300);

/// The reason for a result without the webhook's writes, because the user did not pass `--api-server-out`.
pub const NOT_OBSERVED: &str = "the webhook's writes were not observed. Start the webhook with the kubeconfig that --api-server-out writes. If it does not use the Kubernetes API, skip the check: --skip 'ID=no Kubernetes client'";

/// Waits for writes that arrive after the response.
pub(super) async fn settle() {
    tokio::time::sleep(SETTLING).await;
}

/// Returns the recorder of the webhook's API server and the requests to try.
///
/// # Errors
/// Returns [`Skipped`] if there is no recorder, or if there are no requests to try.
pub(super) fn equipment<'a>(
    webhook_probe: &'a WebhookProbe<'_>,
) -> Result<(&'a Recorder, &'a [Attributes]), Skipped> {
    if webhook_probe.samples.is_empty() {
        return Err(Skipped::not_applicable(
            "no object in the corpus matches the webhook's rules and \
                                             selectors",
        ));
    }
    let Some(recorder) = &webhook_probe.settings.recorder else {
        return Err(Skipped::unequipped(NOT_OBSERVED));
    };
    Ok((recorder, first_samples(webhook_probe)))
}

/// Returns the first few sample requests of the webhook.
pub(super) fn first_samples<'a>(webhook_probe: &WebhookProbe<'a>) -> &'a [Attributes] {
    webhook_probe.samples.get(..SAMPLES).unwrap_or(webhook_probe.samples)
}

/// Returns the outcome of a request that is sent only to the webhook, even if the response is invalid.
///
/// # Errors
/// Returns [`Skipped`] if the webhook does not respond.
pub(super) async fn responded(
    webhook_probe: &WebhookProbe<'_>,
    request: &Attributes,
) -> Result<Arc<Outcome>, Skipped> {
    let outcome = Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), request).await);
    match outcome.failure() {
        Some(reason) if !is_invalid_response(reason) => Err(Skipped::not_checked(reason)),
        _ => Ok(outcome),
    }
}

/// Records the invalid responses in `outcomes`, so that the result is about the other requests.
///
/// # Errors
/// Returns [`Skipped`] if there are responses, but no valid ones.
pub(super) fn leave_invalid_unjudged(
    webhook_probe: &WebhookProbe<'_>,
    outcomes: &[Arc<Outcome>],
) -> Result<(), Skipped> {
    let invalid: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome.failure()).collect();
    if let Some(reason) = invalid.first().filter(|_| invalid.len() == outcomes.len()) {
        return Err(Skipped::not_checked(*reason));
    }
    for reason in invalid {
        webhook_probe.leave_unjudged(reason);
    }
    Ok(())
}

/// Returns the result for a run in which no writes were recorded.
pub(super) fn nothing_seen(recorder: &Recorder) -> Observed {
    if recorder.was_contacted() {
        return Ok(Vec::new());
    }
    Err(never_contacted("the webhook"))
}

/// Creates the result for an API server that did not receive any request; `subject` starts the sentence.
pub(super) fn never_contacted(subject: &str) -> Skipped {
    Skipped::Uncontacted(format!(
        "{subject} never sent a request to the API server of --api-server-out. Check that it uses that kubeconfig. If it \
         does not use the Kubernetes API, omit --api-server-out, and skip the check: --skip 'ID=no Kubernetes client'"
    ))
}
