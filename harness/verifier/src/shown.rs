//! The requests that show a finding, in a form that can be sent to an API server.

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::config::{ReinvocationPolicy, Webhook, WebhookId};
use kubernetes_admission::dispatcher::Refusal;
use kubernetes_admission::event::{CallResult, Phase, Round};
use kubernetes_types::secrets::{Masker, is_secret_kind};
use serde_json::Value;

use super::environment::{Outcome, Verdict};
use super::subject::Subject;

/// A request as an API server would get it, the webhooks that it met, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownRequest {
    /// The webhooks in dispatch order, those that mutate first.
    pub webhooks: Vec<ShownWebhook>,
    /// The request as the first webhook saw it.
    pub request: Attributes,
    /// The object after the mutating webhooks; none if the request makes none or is refused.
    pub object: Option<Value>,
    /// How it ended.
    pub end: End,
    /// The calls, in order.
    pub calls: Vec<ShownCall>,
    /// Whether it is about this namespace, and another one of the same labels would not do.
    pub is_about_namespace: bool,
}

/// Which webhook it is: a mutating and a validating one may have the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownId {
    /// The phase in which it is called.
    pub phase: Phase,
    /// Its configuration and name.
    pub id: WebhookId,
}

impl ShownId {
    pub(super) fn new(phase: Phase, id: &WebhookId) -> Self {
        Self { phase, id: id.clone() }
    }

    /// Whether it is this webhook.
    pub fn is(&self, subject: &Subject) -> bool {
        self.phase == subject.webhook.phase && self.id == *subject.webhook.id
    }
}

/// A webhook that a request met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownWebhook {
    /// Which one.
    pub webhook: ShownId,
    /// Whether it is one of [`super::other_webhooks::LIBRARY`].
    pub is_other: bool,
    /// Whether it was set to be called again, whatever its configuration says.
    pub reinvocation_policy: ReinvocationPolicy,
    /// Whether nobody answers at its address: the finding is about what happens then.
    pub is_down: bool,
}

impl ShownWebhook {
    fn of(webhook: &Webhook) -> Self {
        Self {
            webhook: ShownId::new(webhook.phase, &webhook.id),
            is_other: super::other_webhooks::is_one(webhook),
            reinvocation_policy: webhook.reinvocation_policy,
            is_down: false,
        }
    }
}

/// A call that a webhook got.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownCall {
    /// Which webhook.
    pub webhook: ShownId,
    /// The round.
    pub round: Round,
    /// Whether the object was another one afterward.
    pub changed: bool,
    /// The operations of its patch.
    pub patch: Vec<Value>,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the ways in which a request ends")]
pub enum End {
    /// It is admitted.
    Admitted,
    /// A webhook denied it.
    Denied {
        /// Which webhook.
        webhook: ShownId,
        /// The HTTP status of the server's answer.
        code: i32,
        /// The message of the server's answer.
        message: String,
    },
    /// A webhook gave no valid answer, so that its failurePolicy decides.
    Failed {
        /// Which webhook.
        webhook: ShownId,
    },
    /// The server refuses it, whatever the failurePolicy: a patch that does not apply, for instance.
    Refused {
        /// The HTTP status of the server's answer.
        code: i32,
    },
    /// The match conditions of a webhook have no value, so that its failurePolicy decides without a call.
    NoConditions {
        /// Which webhook.
        webhook: ShownId,
        /// The reason in kube-apiserver's words.
        reason: String,
    },
    /// admit does not imitate what would happen.
    Unknown,
}

impl ShownRequest {
    /// The request of an outcome; none if a review was sent past the dispatcher, as no API server would.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        if outcome.exchanges.iter().any(|exchange| exchange.direct.is_some()) {
            return None;
        }
        let webhooks = outcome.webhook_set.mutating.iter().chain(&outcome.webhook_set.validating);
        let webhooks = webhooks.map(|webhook| ShownWebhook::of(webhook));
        let calls = outcome.calls().map(|called| {
            let (changed, patch) = match &called.result {
                CallResult::Allowed { patch, changed } => (*changed, patch.clone()),
                CallResult::Denied(_) | CallResult::Failed { .. } | CallResult::ServerError { .. } => {
                    (false, None)
                }
            };
            let webhook = ShownId::new(called.phase, &called.webhook);
            ShownCall {
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
            end: End::of(outcome),
            calls: calls.collect(),
            is_about_namespace: false,
        })
    }

    /// A request that meets this webhook while it is down: its failurePolicy decides if it is called.
    pub(super) fn while_down(webhook: &Webhook, request: Attributes, is_called: bool) -> Self {
        let met = ShownWebhook { is_down: true, ..ShownWebhook::of(webhook) };
        let (object, end) = if is_called {
            (None, End::Failed { webhook: met.webhook.clone() })
        } else {
            (request.object.clone(), End::Admitted)
        };
        let webhooks = vec![met];
        Self { webhooks, request, object, end, calls: Vec::new(), is_about_namespace: false }
    }

    /// The same, in the namespace that the request names and in no other.
    pub(super) fn about_its_namespace(self) -> Self {
        Self { is_about_namespace: true, ..self }
    }

    /// Masks the values of Secrets.
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
    fn of(outcome: &Outcome) -> Self {
        let code = match &outcome.refusal {
            Some(Refusal::Status(status)) => status.code,
            Some(Refusal::Unsupported(_)) | None => 0,
        };
        // The one that the verdict is about.
        let refusing = outcome.calls().find(|called| !matches!(called.result, CallResult::Allowed { .. }));
        let refusing = refusing.map(|called| ShownId::new(called.phase, &called.webhook));
        match (outcome.verdict(), refusing) {
            (Verdict::Admitted, _) => Self::Admitted,
            (Verdict::Denied(status), Some(webhook)) => {
                Self::Denied { webhook, code, message: status.message.clone() }
            }
            (Verdict::Failed(_), Some(webhook)) => Self::Failed { webhook },
            (Verdict::ServerError(_), _) => Self::Refused { code },
            (Verdict::NoConditions(reason), _) => match outcome.failed_conditions().next() {
                Some((failed, _)) => {
                    let webhook = ShownId::new(failed.phase, &failed.webhook);
                    Self::NoConditions { webhook, reason: reason.to_owned() }
                }
                None => Self::Unknown,
            },
            (Verdict::Denied(_) | Verdict::Failed(_), None) | (Verdict::Unsupported(_), _) => Self::Unknown,
        }
    }
}
