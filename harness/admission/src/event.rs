//! What happened to a request in admission, in order: the only record.
//!
//! Audit annotations, metrics, warnings and reports are views of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubernetes_types::status::Status;

use crate::caller::Reply;
use crate::conditions::Evaluation;
pub use crate::config::Phase;
use crate::config::{FailurePolicy, WebhookId};
use crate::patch::Operations;

/// Everything that happened in one run of admission, or to one request in all of them, in order.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// What ran, oldest first: what metrics time beside the calls.
    pub timings: Vec<Timing>,
    /// What conversion webhooks were asked for the request, within admission and outside of it, in the order in which they
    /// answered: the first 1,000.
    pub conversions: Vec<ConversionCall>,
    /// When the client was answered because the request's time was up, counted from its beginning; none if it was not.
    pub cut_off: Option<Duration>,
}

impl Record {
    /// Adds what happened later, in another run of admission for the same request.
    pub fn append(&mut self, later: Self) {
        let Self { events, timings, conversions, cut_off } = later;
        self.events.extend(events);
        self.timings.extend(timings);
        self.conversions.extend(conversions);
        self.cut_off = self.cut_off.or(cut_off);
    }

    /// The calls of webhooks, in the order in which they ended.
    pub fn calls(&self) -> impl Iterator<Item = &Called> {
        self.events.iter().filter_map(|event| match event {
            Event::Called(called) => Some(called.as_ref()),
            Event::Skipped { .. }
            | Event::Conditions(_)
            | Event::PluginChanged { .. }
            | Event::PluginRefused { .. }
            | Event::PluginRemarked { .. }
            | Event::MatchFailed { .. } => None,
        })
    }
}

/// One run of an admission plugin, or of a whole phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// What ran.
    pub part: Part,
    /// In which phase.
    pub phase: Phase,
    /// How long it took.
    pub took: Duration,
    /// Whether it refused the request.
    pub refused: bool,
}

/// A part of admission that the server times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the server times these two")]
pub enum Part {
    /// A plugin, such as `LimitRanger` or `MutatingAdmissionWebhook`.
    Plugin(&'static str),
    /// All plugins of the phase, in both rounds.
    Phase,
}

/// One thing that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A webhook was not called. A dispatcher with an index of its webhooks records only those that their conditions exclude.
    Skipped {
        /// Which webhook.
        webhook: Arc<WebhookId>,
        /// In which phase.
        phase: Phase,
        /// In which round.
        round: Round,
        /// Why not.
        mismatch: Mismatch,
    },
    /// The conditions of a webhook were evaluated: everything else says that it is called.
    Conditions(Box<Conditions>),
    /// A webhook was called, or was about to be and could not.
    Called(Box<Called>),
    /// An in-tree plugin changed the object.
    PluginChanged {
        /// The plugin's name.
        plugin: &'static str,
        /// In which round.
        round: Round,
    },
    /// An in-tree plugin refused the request.
    PluginRefused {
        /// The plugin's name.
        plugin: &'static str,
        /// In which phase.
        phase: Phase,
        /// What the client gets.
        status: Box<Status>,
    },
    /// An in-tree plugin has something to say about the final object.
    PluginRemarked {
        /// The plugin's name.
        plugin: &'static str,
        /// Warnings for the client.
        warnings: Vec<String>,
        /// Audit annotations, by their whole key.
        audit_annotations: BTreeMap<String, String>,
    },
    /// The request was refused while deciding whether to call a webhook: a selector that cannot be evaluated, a
    /// namespace that is gone, an object that cannot be converted, a condition without a value.
    MatchFailed {
        /// Which webhook.
        webhook: Arc<WebhookId>,
        /// In which phase.
        phase: Phase,
        /// In which round.
        round: Round,
        /// What the client gets.
        status: Box<Status>,
    },
}

/// A conversion webhook was asked for one object, or was about to be and could not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversionCall {
    /// The name of the definition that configures the webhook.
    pub definition: String,
    /// The namespace of the object; empty without one.
    pub namespace: String,
    /// The name of the object; empty before it has one.
    pub name: String,
    /// Its `apiVersion`.
    pub from: String,
    /// The `apiVersion` that was asked for.
    pub to: String,
    /// How long the call took.
    pub took: Duration,
    /// Why there is no converted object; none if there is one.
    pub failure: Option<String>,
}

/// The first or the second time through the mutating chain. Validating has the first only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "admission has these two")]
pub enum Round {
    /// `round_0` of the audit annotations.
    First,
    /// `round_1`: reinvocation.
    Second,
}

impl Round {
    /// The number in the audit annotations: 0 or 1.
    pub fn number(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }
}

/// The first test that said that a webhook is not called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum Mismatch {
    /// The namespace's labels are not selected.
    NamespaceSelector,
    /// Neither the new nor the old object's labels are selected.
    ObjectSelector,
    /// No rule catches the request, exactly or by an equivalent resource.
    Rules,
    /// A condition is false, or has no value under `Ignore`.
    Conditions,
    /// The kind is exempt from webhooks, or the resource is virtual.
    Exempt,
    /// In the second round: the webhook is not due for reinvocation.
    NotReinvoked,
}

/// The conditions of a webhook, evaluated.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Which webhook.
    pub webhook: Arc<WebhookId>,
    /// In which phase.
    pub phase: Phase,
    /// In which round.
    pub round: Round,
    /// The webhook's failure policy.
    pub failure_policy: FailurePolicy,
    /// What they came to.
    pub evaluation: Evaluation,
}

/// One call of a webhook.
#[derive(Clone, Debug)]
pub struct Called {
    /// Which webhook.
    pub webhook: Arc<WebhookId>,
    /// In which phase.
    pub phase: Phase,
    /// In which round.
    pub round: Round,
    /// The number in the audit annotations: the position among all mutating webhooks, but among the matching ones for
    /// validating webhooks.
    pub index: usize,
    /// The webhook's failure policy.
    pub failure_policy: FailurePolicy,
    /// `request.uid` of the review; empty if none was made.
    pub uid: String,
    /// The review as it was sent; empty if none was sent.
    pub review: Bytes,
    /// What came back; none if no whole reply did.
    pub reply: Option<Reply>,
    /// When the call began, from the beginning of the request.
    pub started: Duration,
    /// How long it took.
    pub took: Duration,
    /// `warnings` of a well-formed response.
    pub warnings: Vec<String>,
    /// `auditAnnotations` of a well-formed response.
    pub audit_annotations: BTreeMap<String, String>,
    /// How it ended.
    pub result: CallResult,
}

/// How a call ended.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum CallResult {
    /// `allowed: true`.
    Allowed {
        /// The patch that was applied: `JSONPatch` operations, never empty; none without a patch.
        patch: Option<Operations>,
        /// Whether the object is another one now.
        changed: bool,
    },
    /// `allowed: false`: what the client gets.
    Denied(Box<Status>),
    /// The call failed: no valid answer. Only this obeys the failure policy.
    Failed {
        /// What went wrong.
        failure: CallFailure,
        /// Whether the request went on (`Ignore`) or not (`Fail`).
        failed_open: bool,
    },
    /// The server itself could not go on, whatever the failure policy: a patch that does not apply, a dry run that the
    /// webhook does not support. What the client gets.
    ServerError {
        /// The Status that the client gets.
        status: Box<Status>,
        /// The patch that was applied before it went wrong, if any: it leaves an audit annotation.
        patch: Option<Operations>,
    },
}

/// Why a call has no valid answer: upstream's `ErrCallingWebhook`.
///
/// Rule: ERR-02.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The reason, with its prefix: `failed to call webhook: Post "https://…": …`.
    pub reason: String,
    /// The code in metrics: what the webhook's server answered, 503 for transport and bad reviews, 400 or 500 for what
    /// happened before a call.
    pub code: u16,
}

impl CallFailure {
    /// Whether the webhook answered with an `AdmissionReview`, and it is the response in it that is not valid.
    pub(crate) fn has_response(&self) -> bool {
        self.reason.starts_with("received invalid webhook response: ")
    }
}
