//! The requests that show a finding, in a form that can be sent to an API server.

use serde_json::Value;

use super::laboratory::{Outcome, Verdict};
use crate::attributes::Attributes;
use crate::config::{ReinvocationPolicy, Webhook};
use crate::dispatcher::Refusal;
use crate::event::{CallResult, Round};
use crate::secrets::{Masker, is_secret_kind};

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
}

/// A webhook that a request met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownWebhook {
    /// `CONFIGURATION/WEBHOOK`, as a step names it.
    pub webhook: String,
    /// Whether it is one of [`super::foreign::LIBRARY`].
    pub foreign: bool,
    /// Whether it was set to be called again, whatever its configuration says.
    pub reinvocation_policy: ReinvocationPolicy,
}

/// A call that a webhook got.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownCall {
    /// `CONFIGURATION/WEBHOOK`.
    pub webhook: String,
    /// The round.
    pub round: Round,
    /// Whether the object was another one afterwards.
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
        /// `CONFIGURATION/WEBHOOK`.
        webhook: String,
        /// The HTTP status of the server's answer.
        code: i32,
        /// The message of the server's answer.
        message: String,
    },
    /// A webhook gave no valid answer, so that its failurePolicy decides.
    Failed {
        /// `CONFIGURATION/WEBHOOK`.
        webhook: String,
    },
    /// The server refuses it, whatever the failurePolicy: a patch that does not apply, for instance.
    Refused {
        /// The HTTP status of the server's answer.
        code: i32,
    },
    /// The match conditions of a webhook have no value, so that its failurePolicy decides without a call.
    NoConditions {
        /// `CONFIGURATION/WEBHOOK`.
        webhook: String,
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
        let is_foreign = |webhook: &Webhook| super::foreign::is_one(webhook);
        let webhooks = outcome.lineup.mutating.iter().chain(&outcome.lineup.validating);
        let webhooks = webhooks.map(|webhook| ShownWebhook {
            webhook: name(&webhook.id.configuration, &webhook.id.name),
            foreign: is_foreign(webhook),
            reinvocation_policy: webhook.reinvocation_policy,
        });
        let calls = outcome.calls().map(|called| {
            let (changed, patch) = match &called.result {
                CallResult::Allowed { patch, changed } => (*changed, patch.clone()),
                CallResult::Denied(_) | CallResult::Failed { .. } | CallResult::ServerError { .. } => {
                    (false, None)
                }
            };
            let webhook = name(&called.webhook.configuration, &called.webhook.name);
            ShownCall { webhook, round: called.round, changed, patch: patch.unwrap_or_default() }
        });
        Some(Self {
            webhooks: webhooks.collect(),
            request: outcome.request.clone(),
            object: outcome.admitted().cloned(),
            end: End::of(outcome),
            calls: calls.collect(),
        })
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
        let last = outcome.calls().last();
        let webhook = last.map(|called| name(&called.webhook.configuration, &called.webhook.name));
        let webhook = webhook.unwrap_or_default();
        match outcome.verdict() {
            Verdict::Admitted => Self::Admitted,
            Verdict::Denied(status) => Self::Denied { webhook, code, message: status.message.clone() },
            Verdict::Failed(_) => Self::Failed { webhook },
            Verdict::ServerError(_) => Self::Refused { code },
            Verdict::NoConditions(reason) => {
                let failed = outcome.failed_conditions().next();
                let webhook =
                    failed.map(|(failed, _)| name(&failed.webhook.configuration, &failed.webhook.name));
                Self::NoConditions { webhook: webhook.unwrap_or_default(), reason: reason.to_owned() }
            }
            Verdict::Unsupported(_) => Self::Unknown,
        }
    }
}

fn name(configuration: &str, webhook: &str) -> String {
    format!("{configuration}/{webhook}")
}
