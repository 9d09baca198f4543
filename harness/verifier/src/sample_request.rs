//! Represents the requests that reproduce a finding in a form that an API server can receive.

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::{ReinvocationPolicy, Webhook, WebhookId};
use kubernetes_admission::dispatcher::Rejection;
use kubernetes_admission::event::{CallResult, Phase, Round};
use kubernetes_types::secrets::{Masker, is_secret_kind};
use serde_json::Value;

use super::environment::{Outcome, Verdict};
use super::subject::Subject;

/// A request as an API server receives it, with its webhooks and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// The webhooks in dispatch order, mutating webhooks first.
    pub webhooks: Vec<SampleWebhook>,
    /// The request as the first webhook receives it.
    pub request: Attributes,
    /// The object after the mutating webhooks; `None` if the request is rejected or does not result in an object.
    pub object: Option<Value>,
    /// The outcome of the request.
    pub end: End,
    /// The calls to webhooks, in order.
    pub calls: Vec<SampleCall>,
    /// Whether the request requires this namespace; a namespace with the same labels cannot replace it.
    pub is_about_namespace: bool,
}

/// A reference to a webhook. A mutating and a validating webhook may have the same ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRef {
    /// The phase in which the webhook is called.
    pub phase: Phase,
    /// The name of the webhook and of its configuration.
    pub id: WebhookId,
}

impl WebhookRef {
    pub(super) fn new(phase: Phase, id: &WebhookId) -> Self {
        Self { phase, id: id.clone() }
    }

    /// Returns whether the reference identifies `subject`.
    pub fn is(&self, subject: &Subject) -> bool {
        self.phase == subject.webhook.phase && self.id == *subject.webhook.id
    }
}

/// A webhook that may be called for a sample request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleWebhook {
    /// The reference to the webhook.
    pub webhook: WebhookRef,
    /// Whether the webhook is from [`super::other_webhooks::LIBRARY`].
    pub is_other: bool,
    /// The reinvocation policy that was used, which may differ from the configured policy.
    pub reinvocation_policy: ReinvocationPolicy,
    /// Whether the webhook is down, because the finding is about an outage.
    pub is_down: bool,
}

impl SampleWebhook {
    fn new(webhook: &Webhook) -> Self {
        Self {
            webhook: WebhookRef::new(webhook.phase, &webhook.id),
            is_other: super::other_webhooks::is_one(webhook),
            reinvocation_policy: webhook.reinvocation_policy,
            is_down: false,
        }
    }
}

/// A call to a webhook during a sample request.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleCall {
    /// The webhook that was called.
    pub webhook: WebhookRef,
    /// The round of the call.
    pub round: Round,
    /// Whether the call changed the object.
    pub changed: bool,
    /// The operations of the patch that the webhook returned.
    pub patch: Vec<Value>,
}

/// The outcome of a sample request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the ways in which a request ends")]
pub enum End {
    /// The request is admitted.
    Admitted,
    /// A webhook denied the request.
    Denied {
        /// The webhook that denied the request.
        webhook: WebhookRef,
        /// The HTTP status of the server's response.
        code: i32,
        /// The message of the server's response.
        message: String,
    },
    /// A webhook failed, so its `failurePolicy` applies.
    Failed {
        /// The webhook that failed.
        webhook: WebhookRef,
    },
    /// The server rejects the request regardless of `failurePolicy`, for example because a patch does not apply.
    Refused {
        /// The HTTP status of the server's response.
        code: i32,
    },
    /// The match conditions of a webhook failed, so its `failurePolicy` applies without a call.
    NoConditions {
        /// The webhook whose match conditions failed.
        webhook: WebhookRef,
        /// The reason from kube-apiserver's message.
        reason: String,
    },
    /// admit does not support the request.
    Unknown,
}

impl SampleRequest {
    /// Creates the sample request of an outcome, or returns `None` if a review bypassed the dispatcher.
    pub(super) fn from_outcome(outcome: &Outcome) -> Option<Self> {
        if outcome.exchanges.iter().any(|exchange| exchange.direct.is_some()) {
            return None;
        }
        let webhooks = outcome.webhook_set.mutating.iter().chain(&outcome.webhook_set.validating);
        let webhooks = webhooks.map(|webhook| SampleWebhook::new(webhook));
        let calls = outcome.calls().map(|called| {
            let (changed, patch) = match &called.result {
                CallResult::Allowed { patch, changed } => (*changed, patch.clone()),
                CallResult::Denied(_)
                | CallResult::Failed { .. }
                | CallResult::ServerError { .. }
                | CallResult::Unknown => (false, None),
            };
            let webhook = WebhookRef::new(called.phase, &called.webhook);
            SampleCall {
                webhook,
                round: called.round,
                changed,
                patch: patch.map(|patch| patch.to_vec()).unwrap_or_default(),
            }
        });
        Some(Self {
            webhooks: webhooks.collect(),
            request: outcome.request.clone(),
            object: outcome.admitted().cloned(),
            end: End::from_outcome(outcome),
            calls: calls.collect(),
            is_about_namespace: false,
        })
    }

    /// Creates a request while `webhook` is down. If `is_called` is set, the failure policy of `webhook` applies.
    pub(super) fn while_down(webhook: &Webhook, request: Attributes, is_called: bool) -> Self {
        let met = SampleWebhook { is_down: true, ..SampleWebhook::new(webhook) };
        let (object, end) = if is_called {
            (None, End::Failed { webhook: met.webhook.clone() })
        } else {
            (request.object.clone(), End::Admitted)
        };
        let webhooks = vec![met];
        Self { webhooks, request, object, end, calls: Vec::new(), is_about_namespace: false }
    }

    /// Marks the request as requiring the namespace that it names.
    pub(super) fn about_its_namespace(self) -> Self {
        Self { is_about_namespace: true, ..self }
    }

    /// Masks the values of Secrets in the request.
    pub(super) fn mask(&mut self, masker: &mut Masker) {
        let objects = [&mut self.request.object, &mut self.request.old_object, &mut self.object];
        for object in objects.into_iter().flatten() {
            masker.document(object);
        }
        if is_secret_kind(&self.request.kind) {
            for call in &mut self.calls {
                masker.patch(&mut call.patch);
            }
        }
    }
}

impl End {
    fn from_outcome(outcome: &Outcome) -> Self {
        let code = match &outcome.refusal {
            Some(Rejection::Status(status)) => status.code,
            Some(Rejection::Unsupported(_)) | None => 0,
        };
        // The webhook that rejected the request.
        let refusing = outcome
            .calls()
            .find(|called| !matches!(called.result, CallResult::Allowed { .. } | CallResult::Unknown));
        let refusing = refusing.map(|called| WebhookRef::new(called.phase, &called.webhook));
        match (outcome.verdict(), refusing) {
            (Verdict::Admitted, _) => Self::Admitted,
            (Verdict::Denied(status), Some(webhook)) => {
                Self::Denied { webhook, code, message: status.message.clone() }
            }
            (Verdict::Failed(_), Some(webhook)) => Self::Failed { webhook },
            (Verdict::ServerError(_), _) => Self::Refused { code },
            (Verdict::NoConditions(reason), _) => match outcome.failed_conditions().next() {
                Some((failed, _)) => {
                    let webhook = WebhookRef::new(failed.phase, &failed.webhook);
                    Self::NoConditions { webhook, reason: reason.to_owned() }
                }
                None => Self::Unknown,
            },
            (Verdict::Denied(_) | Verdict::Failed(_), None) | (Verdict::Unsupported(_), _) => Self::Unknown,
        }
    }
}
