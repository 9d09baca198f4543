//! Stores the webhook calls, skipped webhooks, and policies that the API server recorded, by the audit ID of the request.

use std::cell::LazyCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use harness::attributes::{Attributes, GroupVersionKind};
use harness::config::{ReinvocationPolicy, Webhook, WebhookId};
use harness::event::{CallResult, Called, Conditions, Event, Mismatch, Phase, Round};
use harness::server::ObservedRequest;
use jiff::Timestamp;
use serde_json::Value;

use crate::delivery::Delivery;
use crate::policy_outcome::{PolicyResult, policy_results};
use crate::request_report::{call_notes, error_body, response_hint};
use crate::skip_reason::{match_failure, skip_reason};
use crate::unmatched_rules::unmatched_rules;

/// The recorded calls to webhooks. Only admit's API server records them.
#[derive(Debug)]
pub(crate) enum CallLog {
    /// The server does not record calls.
    NotShown,
    /// The server records calls in this index.
    Recorded(CallIndex),
}

/// A webhook call that the server recorded.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCall {
    /// The name of the webhook's configuration.
    pub(crate) configuration: String,
    /// The name of the webhook.
    pub(crate) webhook: String,
    /// The admission phase of the call.
    pub(crate) phase: Phase,
    /// The time at which the call started.
    pub(crate) time: Timestamp,
    /// The `AdmissionReview` that was sent; empty if none was sent.
    pub(crate) review: Bytes,
    /// The operations of the webhook's patch; empty if there is no patch.
    pub(crate) patch: Vec<Value>,
    /// The outcome as text, such as `denied: …`.
    pub(crate) result: String,
    /// Remarks about the call, such as fields that the patch sets and the API server drops.
    pub(crate) notes: Vec<String>,
    /// How to change a response that the API server cannot use; `None` if no change is known.
    pub(crate) hint: Option<String>,
    /// The HTTP status of the response, even if its body could not be read; `None` if no response arrived.
    pub(crate) http_status: Option<u16>,
    /// The `request.uid` of the review; empty if no review was created.
    pub(crate) uid: String,
    /// Whether the request continues after the failed call (`failurePolicy: Ignore`); `None` if the call did not fail.
    pub(crate) failed_open: Option<bool>,
    /// Whether the server sent the review, or the reason why it could not.
    pub(crate) delivery: Delivery,
}

/// A webhook that the server did not call in a round.
#[derive(Clone, Debug)]
pub(crate) struct RecordedSkip {
    /// The configuration and the name of the webhook.
    pub(crate) webhook: Arc<WebhookId>,
    /// The round in which the webhook was skipped.
    pub(crate) round: Round,
    /// The criterion that excluded the webhook.
    pub(crate) mismatch: Mismatch,
    /// The reason why the webhook was skipped. The text assumes that the reinvocation policy is `IfNeeded`.
    pub(crate) reason: String,
    /// Whether the server could not decide whether the webhook matches, and rejected the request.
    pub(crate) has_failed: bool,
}

/// The calls, the skipped webhooks, and the policies of a request, each in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedRequest {
    pub(crate) calls: Vec<RecordedCall>,
    pub(crate) skips: Vec<RecordedSkip>,
    pub(crate) policies: Vec<PolicyResult>,
}

/// The records of the newest [`MAX_REQUESTS`] requests that called or skipped webhooks or policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallIndex(Arc<Mutex<Requests>>);

#[derive(Debug, Default)]
struct Requests {
    kept: HashMap<String, RecordedRequest>,
    order: VecDeque<String>,
}

/// The maximum number of requests to keep. A scenario reads the calls of a request soon after the response.
const MAX_REQUESTS: usize = 1_024;

impl CallLog {
    /// Returns the record of a request, or `None` if the server does not record calls.
    pub(crate) fn for_request(&self, audit_id: &str) -> Option<RecordedRequest> {
        match self {
            Self::NotShown => None,
            Self::Recorded(index) => Some(index.lock().kept.get(audit_id).cloned().unwrap_or_default()),
        }
    }
}

impl CallIndex {
    /// Records the calls, the skipped webhooks, and the policies of a request.
    pub(crate) fn record(&self, request: &ObservedRequest) {
        let ObservedRequest { audit_id, record, .. } = request;
        let recorded = RecordedRequest {
            calls: record.calls().map(|called| RecordedCall::new(called, request)).collect(),
            skips: skips(request),
            policies: policy_results(record),
        };
        let RecordedRequest { calls, skips, policies } = &recorded;
        if calls.is_empty() && skips.is_empty() && policies.is_empty() {
            return;
        }
        let mut requests = self.lock();
        if requests.kept.insert(audit_id.clone(), recorded).is_none() {
            requests.order.push_back(audit_id.clone());
        }
        if requests.order.len() > MAX_REQUESTS
            && let Some(oldest) = requests.order.pop_front()
        {
            requests.kept.remove(&oldest);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedCall {
    fn new(called: &Called, request: &ObservedRequest) -> Self {
        let failed = match &called.result {
            CallResult::Failed { failure, failed_open } => Some((failure, *failed_open)),
            CallResult::Allowed { .. }
            | CallResult::Denied(_)
            | CallResult::ServerError { .. }
            | CallResult::Unknown => None,
        };
        let of = |phase: Phase, webhook: &Webhook| phase == called.phase && webhook.id == called.webhook;
        let webhook = request.webhooks.iter().find(|(phase, webhook)| of(*phase, webhook));
        let webhook = webhook.map(|(_, webhook)| &**webhook);
        Self {
            configuration: called.webhook.configuration.clone(),
            webhook: called.webhook.name.clone(),
            phase: called.phase,
            time: request.received + called.started,
            review: called.review.clone(),
            patch: patch(&called.result),
            result: result(&called.result),
            notes: {
                let mut notes = call_notes(called, webhook, &request.server);
                let body = error_body(called).filter(|_| request.resource.resource != "secrets");
                notes.extend(body.map(|body| format!("the response begins with: {body}")));
                notes
            },
            hint: response_hint(called),
            http_status: called.http_status,
            uid: called.uid.clone(),
            failed_open: failed.map(|(_, failed_open)| failed_open),
            delivery: failed.map_or(Delivery::Sent, |(failure, _)| Delivery::of_failure(&failure.reason)),
        }
    }

    /// Returns whether the review was sent: `false` if there was no connection or the TLS handshake failed.
    pub(crate) fn was_sent(&self) -> bool {
        self.delivery == Delivery::Sent
    }
}

/// Returns the webhooks that the server skipped, with the reasons.
fn skips(request: &ObservedRequest) -> Vec<RecordedSkip> {
    let mut skips = Vec::new();
    let mut evaluated: Option<&Conditions> = None;
    let attributes = LazyCell::new(|| attributes(request));
    for event in &request.record.events {
        if let Event::Conditions(conditions) = event {
            evaluated = Some(conditions);
        } else if let Event::Skipped { webhook, phase, round, mismatch } = event {
            let conditions = evaluated.filter(|conditions| conditions.webhook == *webhook);
            let mut reason = skip_reason(mismatch, ReinvocationPolicy::IfNeeded, conditions);
            if *mismatch == Mismatch::Rules
                && let Some(rules) = rule_mismatches(request, *phase, webhook, &attributes)
            {
                reason = format!("{reason}: {rules}");
            }
            skips.push(RecordedSkip {
                webhook: Arc::clone(webhook),
                round: *round,
                mismatch: mismatch.clone(),
                reason,
                has_failed: false,
            });
        } else if let Event::MatchFailed { webhook, round, status, .. } = event {
            let conditions = evaluated.filter(|conditions| conditions.webhook == *webhook);
            skips.push(RecordedSkip {
                webhook: Arc::clone(webhook),
                round: *round,
                mismatch: Mismatch::Conditions,
                reason: match_failure(status, conditions),
                has_failed: true,
            });
        }
    }
    skips
}

/// The maximum number of rules that a reason describes.
const MAX_RULES: usize = 3;

/// Describes for each rule of a webhook the fields that do not match the request.
///
/// Returns `None` if the webhook has no rules.
fn rule_mismatches(
    request: &ObservedRequest,
    phase: Phase,
    id: &WebhookId,
    attributes: &Attributes,
) -> Option<String> {
    let (_, webhook) = request.webhooks.iter().find(|(of, webhook)| *of == phase && *webhook.id == *id)?;
    let mut unmatched = unmatched_rules(webhook, attributes, &request.server);
    let mut rules: Vec<String> = unmatched.by_ref().take(MAX_RULES).collect();
    let more = unmatched.count();
    if more > 0 {
        rules.push(format!("and {more} more"));
    }
    (!rules.is_empty()).then(|| rules.join("; "))
}

/// Returns the attributes of a request that rules compare.
fn attributes(request: &ObservedRequest) -> Attributes {
    Attributes {
        operation: request.operation,
        resource: request.resource.clone(),
        subresource: request.subresource.clone(),
        kind: GroupVersionKind::default(),
        namespace: request.namespace.clone(),
        name: request.name.clone(),
        object: None,
        old_object: None,
        options: None,
        dry_run: request.dry_run,
        user: request.user.clone(),
    }
}

fn patch(result: &CallResult) -> Vec<Value> {
    match result {
        CallResult::Allowed { patch: Some(operations), .. } => operations.to_vec(),
        CallResult::Allowed { patch: None, .. }
        | CallResult::Denied(_)
        | CallResult::Failed { .. }
        | CallResult::ServerError { .. }
        | CallResult::Unknown => Vec::new(),
    }
}

/// Formats the result of a call as the fakes do.
fn result(result: &CallResult) -> String {
    match result {
        CallResult::Allowed { patch: Some(operations), .. } => match operations.len() {
            1 => "allowed, patched with 1 operation".to_owned(),
            count => format!("allowed, patched with {count} operations"),
        },
        CallResult::Denied(status) => match status.message.split_once(" denied the request: ") {
            Some((_, message)) => format!("denied: {message}"),
            None => "denied".to_owned(),
        },
        CallResult::Failed { failure, .. } => failure.reason.clone(),
        CallResult::ServerError { status, .. } => status.message.clone(),
        CallResult::Unknown => "the webhook was not called".to_owned(),
        CallResult::Allowed { patch: None, .. } => "allowed".to_owned(),
    }
}
