//! For checks that look at what a webhook writes at the API server behind it.

use std::sync::Arc;
use std::time::Duration;

use crate::attributes::Attributes;
use crate::verify::check::{Observed, Obstacle};
use crate::verify::laboratory::{Outcome, Verdict};
use crate::verify::recorder::Recorder;
use crate::verify::station::Station;

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
pub(super) fn equipment<'a>(station: &'a Station<'_>) -> Result<(&'a Recorder, &'a [Attributes]), Obstacle> {
    if station.samples.is_empty() {
        return Err(Obstacle::not_applicable("its rules and selectors pick no object of the corpus"));
    }
    let Some(recorder) = &station.settings.recorder else {
        let reason = "nobody watches what it writes: give it the kubeconfig of --api-server-out";
        return Err(Obstacle::unequipped(reason));
    };
    Ok((recorder, first_samples(station)))
}

/// The first few requests of those that the webhook is tried with.
pub(super) fn first_samples<'a>(station: &Station<'a>) -> &'a [Attributes] {
    station.samples.get(..SAMPLES).unwrap_or(station.samples)
}

/// What becomes of a request, if the webhook alone gives a valid answer.
///
/// # Errors
/// [`Obstacle`] if it gives none.
pub(super) async fn answered(station: &Station<'_>, request: &Attributes) -> Result<Arc<Outcome>, Obstacle> {
    let outcome = Arc::new(station.laboratory.admit(&station.alone(), request).await);
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
