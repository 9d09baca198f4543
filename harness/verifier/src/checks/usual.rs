//! For checks that talk to a webhook past the dispatcher: a review that it answers, and what counts as an answer.

use std::sync::Arc;

use bytes::Bytes;
use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::caller::CallError;
use kubernetes_types::json::at;

use super::said;
use crate::check::{Obstacle, Violation};
use crate::environment::{Outcome, Verdict};
use crate::line::Exchange;
use crate::subject::Subject;
use crate::webhook_probe::WebhookProbe;

/// How a webhook answers as long as nothing is wrong.
pub(super) struct Usual<'a> {
    /// The request.
    pub(super) request: &'a Attributes,
    /// What became of it.
    pub(super) outcome: Arc<Outcome>,
    /// The review that was sent for it.
    pub(super) review: Bytes,
}

impl<'a> Usual<'a> {
    /// How `subject`, the webhook that is verified, answers the first sample.
    ///
    /// # Errors
    /// [`Obstacle`] if there is no sample, or no valid answer.
    pub(super) async fn of(webhook_probe: &WebhookProbe<'a>, subject: &Subject) -> Result<Self, Obstacle> {
        let Some(request) = webhook_probe.samples.first() else {
            return Err(Obstacle::not_applicable("its rules and selectors pick no object of the corpus"));
        };
        let outcome = Arc::new(webhook_probe.environment.admit(&subject.alone(), request).await);
        if let Verdict::Failed(reason) = outcome.verdict() {
            return Err(Obstacle::not_checked(reason));
        }
        let Some(exchange) = outcome.exchanges_of(&subject.webhook.id).next() else {
            return Err(Obstacle::not_checked("it is not called"));
        };
        Ok(Self { request, review: exchange.review.clone(), outcome })
    }
}

/// Violations of a webhook that no call reaches, with what becomes of the first request that it asks for.
pub(super) async fn with_first_request(
    webhook_probe: &WebhookProbe<'_>,
    violations: Vec<Violation>,
) -> Vec<Violation> {
    let Some(request) = webhook_probe.samples.first() else { return violations };
    let outcome = Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), request).await);
    violations.into_iter().map(|violation| violation.with_steps([Arc::clone(&outcome)])).collect()
}

/// Whether a webhook answered a review.
///
/// # Errors
/// What came instead.
pub(super) fn answered(exchange: &Exchange) -> Result<(), String> {
    let reply = exchange.reply.as_ref().map_err(ToString::to_string)?;
    match said::response(reply) {
        Some(response) if at(&response, &["allowed"]).is_boolean() => Ok(()),
        Some(_) | None if reply.status != 200 => Err(format!("HTTP status {}", reply.status)),
        Some(_) | None => Err("an answer that is no review".to_owned()),
    }
}

/// Whether the caller gave up waiting.
pub(super) fn is_late(error: &CallError) -> bool {
    error.to_string().contains("deadline exceeded")
}
