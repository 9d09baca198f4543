//! Records what happens to a request during admission, in order.
//!
//! The audit annotations, metrics, warnings, and reports are all derived from the [`Record`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubernetes_types::status::Status;

use crate::caller::Reply;
use crate::conditions::Evaluation;
use crate::config::{FailurePolicy, WebhookId};
pub use crate::config::{Phase, Round};
use crate::patch::Operations;
use crate::policy::PoliciesChecked;

/// The events of one admission run, or of all runs for one request, in order.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The durations of plugins and phases, oldest first; used for metrics in addition to the calls.
    pub timings: Vec<Timing>,
    /// Up to 1,000 calls to conversion webhooks for the request, including calls outside of admission.
    ///
    /// The calls are in the order in which they ended.
    pub conversions: Vec<ConversionCall>,
    /// The time from the start of the request until the client got a timeout response; `None` without a timeout.
    pub cut_off: Option<Duration>,
}

impl Record {
    /// Appends the record of a later admission run for the same request.
    pub fn append(&mut self, later: Self) {
        let Self { events, timings, conversions, cut_off } = later;
        self.events.extend(events);
        self.timings.extend(timings);
        self.conversions.extend(conversions);
        self.cut_off = self.cut_off.or(cut_off);
    }

    /// Returns the webhook calls, in the order in which they ended.
    pub fn calls(&self) -> impl Iterator<Item = &Called> {
        self.events.iter().filter_map(|event| match event {
            Event::Called(called) => Some(called.as_ref()),
            Event::Skipped { .. }
            | Event::Conditions(_)
            | Event::PluginChanged { .. }
            | Event::PluginRefused { .. }
            | Event::PluginRemarked { .. }
            | Event::Policies(_)
            | Event::MatchFailed { .. } => None,
        })
    }
}

/// The duration of an admission plugin or of a whole phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The plugin or phase that was measured.
    pub part: Part,
    /// The admission phase in which the plugin ran, or the measured phase itself.
    pub phase: Phase,
    /// The duration of the plugin or phase.
    pub took: Duration,
    /// Whether the plugin or phase rejected the request.
    pub refused: bool,
}

/// A part of admission whose duration kube-apiserver measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the server times these two")]
pub enum Part {
    /// A plugin, such as `LimitRanger` or `MutatingAdmissionWebhook`.
    Plugin(&'static str),
    /// All plugins of the phase, in both rounds.
    Phase,
}

/// An event in the admission of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A webhook was skipped. A dispatcher with a webhook index records only webhooks that their conditions exclude.
    Skipped {
        /// The skipped webhook.
        webhook: Arc<WebhookId>,
        /// The phase in which the webhook was skipped.
        phase: Phase,
        /// The round in which the webhook was skipped.
        round: Round,
        /// The criterion that excluded the webhook.
        mismatch: Mismatch,
    },
    /// The conditions of a webhook were evaluated, because all other criteria match.
    Conditions(Box<Conditions>),
    /// A webhook was called, the call failed before it started, or its response is unknown.
    Called(Box<Called>),
    /// An in-tree plugin changed the object.
    PluginChanged {
        /// The plugin's name.
        plugin: &'static str,
        /// The round in which the plugin ran.
        round: Round,
    },
    /// An in-tree plugin rejected the request.
    PluginRefused {
        /// The plugin's name.
        plugin: &'static str,
        /// The phase in which the plugin ran.
        phase: Phase,
        /// The response for the client.
        status: Box<Status>,
    },
    /// An in-tree plugin has warnings or audit annotations for the final object.
    PluginRemarked {
        /// The plugin's name.
        plugin: &'static str,
        /// The warnings for the client.
        warnings: Vec<String>,
        /// The audit annotations, by their full keys.
        audit_annotations: BTreeMap<String, String>,
    },
    /// The admission policies of a phase were evaluated: at least one matches the request, or skipped ones are recorded.
    Policies(Box<PoliciesChecked>),
    /// The request was rejected because the server could not decide whether to call a webhook.
    ///
    /// A selector cannot be evaluated, a namespace was deleted, an object cannot be converted, or a condition failed.
    MatchFailed {
        /// The webhook for which the decision failed.
        webhook: Arc<WebhookId>,
        /// The phase in which the decision failed.
        phase: Phase,
        /// The round in which the decision failed.
        round: Round,
        /// The response for the client.
        status: Box<Status>,
    },
}

/// A call to a conversion webhook for one object, or a call that failed before it started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversionCall {
    /// The name of the definition that configures the webhook.
    pub definition: String,
    /// The namespace of the object; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name of the object; empty until it is set.
    pub name: String,
    /// The `apiVersion` of the object.
    pub from: String,
    /// The requested `apiVersion`.
    pub to: String,
    /// The duration of the call.
    pub took: Duration,
    /// The reason why the conversion failed; `None` if it succeeded.
    pub failure: Option<String>,
}

/// The first criterion that excludes a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum Mismatch {
    /// The selector does not match the labels of the namespace.
    NamespaceSelector,
    /// The selector matches the labels of neither the new nor the old object.
    ObjectSelector,
    /// No rule matches the request or an equivalent resource.
    Rules,
    /// A condition is false, or fails under the failure policy `Ignore`.
    Conditions,
    /// The kind is exempt from webhooks, or the resource is virtual.
    Exempt,
    /// In the second round, the webhook is not due for reinvocation.
    NotReinvoked,
}

/// An evaluation of the conditions of a webhook.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The webhook that has the conditions.
    pub webhook: Arc<WebhookId>,
    /// The phase in which the conditions were evaluated.
    pub phase: Phase,
    /// The round in which the conditions were evaluated.
    pub round: Round,
    /// The webhook's failure policy.
    pub failure_policy: FailurePolicy,
    /// The values of the conditions and the result.
    pub evaluation: Evaluation,
}

/// A call to an admission webhook, or a call that failed before it started.
#[derive(Clone, Debug)]
pub struct Called {
    /// The called webhook.
    pub webhook: Arc<WebhookId>,
    /// The phase of the call.
    pub phase: Phase,
    /// The round of the call.
    pub round: Round,
    /// The index in audit annotations.
    ///
    /// This is the position among all mutating webhooks, or among the matching validating webhooks.
    pub index: usize,
    /// The webhook's failure policy.
    pub failure_policy: FailurePolicy,
    /// `request.uid` of the review; empty if no review was created.
    pub uid: String,
    /// The review as sent; empty if none was sent.
    pub review: Bytes,
    /// The reply; `None` if no complete reply arrived.
    pub reply: Option<Reply>,
    /// The HTTP status of the response, even if its body could not be read; `None` if no response arrived.
    pub http_status: Option<u16>,
    /// The time from the start of the request until the call started.
    pub started: Duration,
    /// The duration of the call.
    pub took: Duration,
    /// The `warnings` of a well-formed response; otherwise empty.
    pub warnings: Vec<String>,
    /// The `auditAnnotations` of a well-formed response; otherwise empty.
    pub audit_annotations: BTreeMap<String, String>,
    /// The outcome of the call for the request.
    pub result: CallResult,
}

/// The result of a webhook call.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum CallResult {
    /// The webhook allowed the request.
    Allowed {
        /// The applied `JSONPatch` operations, never empty; `None` without a patch.
        patch: Option<Operations>,
        /// Whether the call changed the object.
        changed: bool,
    },
    /// The webhook denied the request. Contains the response for the client.
    Denied(Box<Status>),
    /// The call failed: there is no valid response. The failure policy applies only to this result.
    Failed {
        /// The reason why the call failed.
        failure: CallFailure,
        /// Whether the failure policy is `Ignore`, so that the request continues.
        failed_open: bool,
    },
    /// The server rejects the request regardless of the failure policy.
    ///
    /// For example, a patch does not apply, or the webhook does not support dry runs.
    ServerError {
        /// The response for the client.
        status: Box<Status>,
        /// The patch that was applied before the error, if any: it is written to an audit annotation.
        patch: Option<Operations>,
    },
    /// The caller did not send the review, so the webhook's response is unknown. The request continues unchanged.
    ///
    /// The failure policy does not apply: the webhook might allow, change, or reject the request.
    Unknown,
}

/// The reason why a call does not have a valid response: upstream's `ErrCallingWebhook`.
///
/// Rule: ERR-02.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFailure {
    /// The reason, with its prefix: `failed to call webhook: Post "https://…": …`.
    pub reason: String,
    /// The HTTP status code that metrics report.
    ///
    /// It is the webhook's HTTP status, 503 for transport errors and invalid reviews, 429 if there is not enough memory
    /// for the call, or 400 or 500 for errors before the call.
    pub code: u16,
}

impl CallFailure {
    /// Returns whether the webhook answered with an `AdmissionReview` whose response is invalid.
    pub(crate) fn has_response(&self) -> bool {
        self.reason.starts_with("received invalid webhook response: ")
    }
}
