//! Provides helpers for checks that call a webhook directly.

use std::sync::Arc;

use bytes::Bytes;
use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::caller::CallError;
use kubernetes_types::json::at;

use super::{recorded_writes, webhook_response};
use crate::call_recorder::Exchange;
use crate::check::{Skipped, Violation};
use crate::environment::{Outcome, Verdict};
use crate::reasons::{is_invalid_response, is_timeout};
use crate::subject::Subject;
use crate::webhook_probe::WebhookProbe;

/// A request that a webhook answers, with its normal response.
pub(super) struct TypicalRequest<'a> {
    /// The request that the webhook answers.
    pub(super) request: &'a Attributes,
    pub(super) outcome: Arc<Outcome>,
    /// The review that was sent.
    pub(super) review: Bytes,
}

impl<'a> TypicalRequest<'a> {
    /// Sends samples to `subject` until its response is valid, and keeps that response.
    ///
    /// # Errors
    /// Returns [`Skipped`] if no object matches the webhook, if the webhook does not respond, or if all responses are
    /// invalid.
    pub(super) async fn new(webhook_probe: &WebhookProbe<'a>, subject: &Subject) -> Result<Self, Skipped> {
        let mut skipped = Skipped::not_applicable(
            "no object in the corpus matches the webhook's rules and \
                                             selectors",
        );
        for request in recorded_writes::first_samples(webhook_probe) {
            let outcome = Arc::new(webhook_probe.environment.admit(&subject.alone(), request).await);
            if let Verdict::Failed(reason) = outcome.verdict() {
                skipped = Skipped::not_checked(reason);
                if is_invalid_response(reason) {
                    continue;
                }
                return Err(skipped);
            }
            let Some(exchange) = outcome.exchanges_of(&subject.webhook.id).next() else {
                return Err(Skipped::not_checked("the webhook is not called"));
            };
            return Ok(Self { request, review: exchange.review.clone(), outcome });
        }
        Err(skipped)
    }
}

/// Adds the outcome of the first sample request to the violations of an unreachable webhook.
pub(super) async fn with_first_request(
    webhook_probe: &WebhookProbe<'_>,
    violations: Vec<Violation>,
) -> Vec<Violation> {
    let Some(request) = webhook_probe.samples.first() else { return violations };
    let outcome = Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), request).await);
    violations.into_iter().map(|violation| violation.with_steps([Arc::clone(&outcome)])).collect()
}

/// Checks that the webhook returned a valid response to a review.
///
/// # Errors
/// Returns the error of the call, or a description of the unexpected reply.
pub(super) fn answered(exchange: &Exchange) -> Result<(), String> {
    let reply = exchange.reply.as_ref().map_err(ToString::to_string)?;
    match webhook_response::response(reply) {
        Some(response) if at(&response, &["allowed"]).is_boolean() => Ok(()),
        Some(_) | None if reply.status != 200 => Err(format!("HTTP status {}", reply.status)),
        Some(_) | None => Err("the response is not a review".to_owned()),
    }
}

/// Returns whether the call timed out.
pub(super) fn is_late(error: &CallError) -> bool {
    is_timeout(&error.to_string())
}
