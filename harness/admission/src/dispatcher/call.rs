//! Calls one webhook: builds the review, sends it, and interprets the reply.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kubernetes_types::status::{Status, Unsupported};
use tokio::time::Instant;
use tracing::{Instrument as _, Span, info, info_span};

use super::{CallPosition, DispatchContext, Dispatcher, Rejection};
use crate::admission_run::AdmissionRun;
use crate::attributes::Operation;
use crate::caller::{Call, CallError, Caller, Reply};
use crate::config::{SideEffects, Webhook};
use crate::event::{CallFailure, CallResult, Called, Phase};
use crate::failure;
use crate::matching::Invocation;
use crate::review::ReviewVersion;
use crate::review::request;
use crate::review::response::{self, Response};

/// The `Retry-After` value, in seconds, of the response if there is not enough memory for a call.
///
/// Source: apiserver pkg/server/filters/maxinflight.go, `retryAfter`.
pub(super) const RETRY_AFTER: i32 = 1;

/// The outcome of one webhook call.
pub(super) struct CallOutcome {
    pub(super) called: Called,
    /// The webhook's response; `None` if the request is not allowed.
    pub(super) allowed: Option<Response>,
    /// The reason why admit rejects the request regardless of the failure policy, if it does.
    refusal: Option<Rejection>,
    /// The span of the call; empty if there was no call.
    pub(super) span: Span,
}

/// The reason why a webhook did not return a valid response.
enum CallBlocked {
    Failure(CallFailure),
    Unsupported(Unsupported),
    TooManyRequests,
    NotCalled,
}

impl From<CallFailure> for CallBlocked {
    fn from(failure: CallFailure) -> Self {
        Self::Failure(failure)
    }
}

impl From<CallError> for CallBlocked {
    fn from(error: CallError) -> Self {
        match error {
            CallError::TooManyRequests => Self::TooManyRequests,
            CallError::NotCalled => Self::NotCalled,
            CallError::Client(_)
            | CallError::Transport(_)
            | CallError::Body { .. }
            | CallError::Unsupported(_) => {
                failure::no_reply(error).map_or_else(Self::Unsupported, Self::Failure)
            }
        }
    }
}

impl CallOutcome {
    /// Rejects the request because admit does not support it, and records the message for the client.
    pub(super) fn set_unsupported(&mut self, unsupported: Unsupported) {
        let status = Box::new(Status::unsupported(&unsupported));
        self.called.result = CallResult::ServerError { status, patch: None };
        self.refusal = Some(Rejection::Unsupported(unsupported));
    }

    /// Rejects the request because there is not enough memory for the call. The client may retry.
    fn set_too_many_requests(&mut self) {
        let status = Box::new(Status::too_many_requests(RETRY_AFTER));
        self.called.result = CallResult::ServerError { status: status.clone(), patch: None };
        self.refusal = Some(Rejection::Status(status));
    }

    /// Returns the reason why the request is rejected after this call; `None` if it continues.
    pub(super) fn refusal(&self) -> Option<Rejection> {
        match &self.refusal {
            Some(refusal) => Some(refusal.clone()),
            None => failure::refusal(&self.called).map(Rejection::Status),
        }
    }
}

impl<C: Caller> Dispatcher<C> {
    /// Calls one webhook with the objects of `run`. [`AdmissionRun::convert`] must have converted these objects.
    ///
    /// Rule: MUT-03, MUT-04, RSP-18, RSP-19, VAL-06.
    pub(super) async fn call(
        &self,
        webhook: &Webhook,
        run: &AdmissionRun<'_>,
        invocation: &Invocation,
        chain: &DispatchContext<'_>,
        position: CallPosition,
    ) -> CallOutcome {
        let called = Called {
            webhook: webhook.id.clone(),
            phase: position.phase,
            round: position.round,
            index: position.index,
            failure_policy: webhook.failure_policy,
            uid: String::new(),
            review: Bytes::new(),
            reply: None,
            http_status: None,
            started: chain.started.elapsed(),
            took: Duration::ZERO,
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
            result: CallResult::Allowed { patch: None, changed: false },
        };
        let mut outcome = CallOutcome { called, allowed: None, refusal: None, span: Span::none() };
        let called = &mut outcome.called;
        if run.attributes().dry_run && webhook.side_effects == SideEffects::Unset {
            called.result = failure::result(webhook.failure_policy, failure::no_side_effects());
        } else if run.attributes().dry_run && !webhook.side_effects.allow_dry_run() {
            let status = failure::dry_run_unsupported(&webhook.id.name);
            called.result = CallResult::ServerError { status, patch: None };
        } else {
            let operation = run.attributes().operation;
            let call_in_progress = CallInProgress { webhook, operation, chain, started: called.started };
            let exchanged = self.exchange(webhook, run, invocation, chain, called, &mut outcome.span).await;
            std::mem::forget(call_in_progress);
            match exchanged {
                Err(CallBlocked::Failure(failure)) => {
                    called.result = failure::result(webhook.failure_policy, failure);
                }
                Err(CallBlocked::Unsupported(unsupported)) => outcome.set_unsupported(unsupported),
                Err(CallBlocked::TooManyRequests) => outcome.set_too_many_requests(),
                Err(CallBlocked::NotCalled) => called.result = CallResult::Unknown,
                Ok(mut response) => {
                    called.warnings = std::mem::take(&mut response.warnings);
                    called.audit_annotations = std::mem::take(&mut response.audit_annotations);
                    if response.allowed {
                        outcome.allowed = Some(response);
                    } else {
                        called.result =
                            CallResult::Denied(failure::denied(&webhook.id.name, response.status));
                    }
                }
            }
        }
        let called = &mut outcome.called;
        called.took = chain.started.elapsed().saturating_sub(called.started);
        outcome
    }

    /// Sends the review, records the call, and returns the validated response.
    ///
    /// Rule: HTTP-05.
    async fn exchange(
        &self,
        webhook: &Webhook,
        run: &AdmissionRun<'_>,
        invocation: &Invocation,
        chain: &DispatchContext<'_>,
        called: &mut Called,
        span: &mut Span,
    ) -> Result<Response, CallBlocked> {
        let version = ReviewVersion::negotiate(&webhook.admission_review_versions)?;
        called.uid = (self.new_uid)();
        let objects = run.encoded(invocation.kind()).map_err(|error| request::not_encoded(&error))?;
        let review = request::encode(version, &called.uid, run.attributes(), invocation, objects)?;
        called.review = self.caller.keep(review)?;
        let left = chain.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(webhook.timeout, |left| left.min(webhook.timeout));
        if timeout.is_zero() {
            return Err(CallError::Transport("context deadline exceeded".to_owned()).into());
        }
        *span = span_of(webhook, run, called);
        let (client_config, phase) = (&webhook.client_config, Some(webhook.phase));
        let trace = chain.trace;
        let call = Call { client_config, phase, body: called.review.clone(), timeout, trace };
        let reply = self.caller.call(call).instrument(span.clone()).await;
        called.http_status = match &reply {
            Ok(Reply { status, .. }) | Err(CallError::Body { status, .. }) => Some(*status),
            Err(_) => None,
        };
        let reply = called.reply.insert(reply?);
        let response = response::read(reply, version, &called.uid, called.phase);
        if response.as_ref().err().is_none_or(CallFailure::has_response) {
            info!(parent: &*span, "Request completed");
        }
        Ok(response?)
    }
}

/// A call in progress. It is dropped if the client disconnects; the metrics then count the abandoned call.
struct CallInProgress<'a> {
    webhook: &'a Webhook,
    operation: Operation,
    chain: &'a DispatchContext<'a>,
    /// The time from the start of the request until the call started.
    started: Duration,
}

impl Drop for CallInProgress<'_> {
    fn drop(&mut self) {
        if let Some(metrics) = self.chain.metrics {
            let took = self.chain.started.elapsed().saturating_sub(self.started);
            metrics.observe_abandoned(self.operation, self.webhook, took);
        }
    }
}

/// Creates the trace span of a webhook call.
///
/// Source: apiserver `pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go`, `tracing.Start`.
fn span_of(webhook: &Webhook, run: &AdmissionRun<'_>, called: &Called) -> Span {
    macro_rules! call {
        ($name:literal) => {
            info_span!(
                $name,
                configuration = webhook.id.configuration,
                webhook = webhook.id.name,
                resource = %run.attributes().resource,
                subresource = run.attributes().subresource,
                operation = run.attributes().operation.as_str(),
                UID = called.uid,
            )
        };
    }
    match called.phase {
        Phase::Mutating => call!("Call mutating webhook"),
        Phase::Validating => call!("Call validating webhook"),
    }
}
