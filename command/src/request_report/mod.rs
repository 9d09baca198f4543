//! Builds the report of a request from its record.
//!
//! The types are the schema of `-o json`; see docs/guide/review.md.

mod call_notes;
mod condition;
mod conversions;
mod difference;
mod explain;
mod invalid_object;
pub(super) mod json;
mod kubectl;
pub(crate) mod line;
pub(super) mod people;
mod policies;
pub(crate) mod question;
mod recorded;
mod rejection;
mod response_advice;
mod secret;
mod steps;
mod webhooks;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use harness::attributes::{GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use harness::chain::{Request, Sent, Verdict};
use harness::event::Called;
use harness::server::{ApiServer, ServedResource};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::call_notes::{call_notes, cut, error_body, response_hint, short_cause};
use self::condition::Condition;
use self::conversions::ConversionReport;
use self::explain::Facts;
use self::policies::PolicyReport;
pub(crate) use self::rejection::Places;
use self::steps::Step;
pub(crate) use self::steps::{patched, shown};
pub(crate) use self::webhooks::WebhookReport;
pub(crate) use self::webhooks::Webhooks;
use self::webhooks::{CallReport, Exchanges};
use crate::documents::DocumentLocation;
pub(crate) use crate::machine_readable::API_VERSION;
use crate::pull::PulledCluster;
use crate::unbound_policies::UnboundPolicy;

/// A request, the decision about it, and everything that led to the decision.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The version of the schema: `admit.dev/v1alpha1`.
    api_version: Cow<'static, str>,
    /// The kind of the report: `AdmissionReport`.
    kind: Cow<'static, str>,
    /// The location of the object under review, or of the line in a record.
    source: Source,
    /// Details of a recorded request; omitted for other requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<Recorded>,
    /// The pulled cluster of an offline review; omitted for other requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<PulledCluster>,
    /// The request that the report describes.
    request: RequestReport,
    /// The server's decision on the request.
    decision: Decision,
    /// The warnings for the client, in order.
    warnings: Vec<String>,
    /// The audit annotations of the webhooks.
    audit_annotations: BTreeMap<String, String>,
    /// All webhooks of the configurations, in dispatch order.
    webhooks: Vec<WebhookReport>,
    /// All calls, in the order in which they ended.
    calls: Vec<CallReport>,
    /// The policies with bindings, in the order in which they were evaluated, then policies without a binding and bindings
    /// without a policy; omitted if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    policies: Vec<PolicyReport>,
    /// The first 1,000 calls to conversion webhooks, in the order in which they ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conversions: Vec<ConversionReport>,
    /// The steps that changed the object, with the actor and changes of each step.
    steps: Vec<Step>,
    /// The object as stored, or as the server would store it without a dry run.
    ///
    /// If the request is not admitted, this is the object at the time of the rejection. Omitted if there is no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// Notes about preparations that the request required.
    notes: Vec<String>,
    /// The duration of the request in milliseconds.
    duration_ms: f64,
}

/// The location of the object under review, or of the line in a record.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    /// The file path as specified by the user; `STDIN` for standard input.
    file: String,
    /// The first line of the document, counted from 1.
    line: u64,
}

/// The details of a request that `--record` saved.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recorded {
    /// The number of the request in the record, counted from 1 in the order in which requests ended.
    #[serde(default)]
    pub(super) number: usize,
    /// The time at which the server received the request.
    pub(super) time: Timestamp,
    /// The verb, such as `create`, `patch`, or `deletecollection`.
    pub(super) verb: String,
    /// The audit ID. It identifies the request in the audit log and in the response.
    #[serde(rename = "auditID")]
    pub(super) audit_id: String,
    /// The user agent; omitted if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) user_agent: String,
}

/// The attributes and the body of the request.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestReport {
    /// The operation: `CREATE`, `UPDATE`, `DELETE`, or `CONNECT`.
    operation: Operation,
    /// The kind of the object in the path.
    kind: GroupVersionKind,
    /// The resource in the path.
    resource: GroupVersionResource,
    /// The subresource; omitted if the request is for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    subresource: String,
    /// The namespace; omitted for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    /// The name of the object; omitted if the server generates it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    /// The user who made the request.
    user_info: UserInfo,
    /// Whether the request is a dry run.
    dry_run: bool,
    /// The body of the request; omitted if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// The patch that the client sent; omitted for other requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch: Option<Value>,
}

/// The server's decision on the request.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    /// `admitted`, `denied`, `undecided` (the request failed because a webhook did not return a valid response),
    /// `unsupported` (admit does not support what kube-apiserver would do), or `conditional` (the decision depends on
    /// webhooks that were not called).
    #[serde(with = "verdict_name")]
    verdict: Verdict,
    /// Whether the request is admitted.
    allowed: bool,
    /// The HTTP status code.
    code: u16,
    /// The message that kubectl would print; for a conditional decision, a sentence with the condition.
    message: String,
    /// The `Status` that the server returned; omitted if the request is admitted, or would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
    /// The condition of a conditional decision; omitted for other decisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    condition: Option<Condition>,
}

mod verdict_name {
    use harness::chain::Verdict;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    const NAMES: [(Verdict, &str); 5] = [
        (Verdict::Admitted, "admitted"),
        (Verdict::Denied, "denied"),
        (Verdict::Undecided, "undecided"),
        (Verdict::Unsupported, "unsupported"),
        (Verdict::Conditional, "conditional"),
    ];

    pub(super) fn from_verdict(verdict: Verdict) -> &'static str {
        NAMES.iter().find(|(known, _)| *known == verdict).map_or("", |(_, name)| name)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(super) fn serialize<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(from_verdict(*verdict))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let found = NAMES.iter().find(|(_, name)| *name == text).map(|(verdict, _)| *verdict);
        found.ok_or_else(|| {
            const EXPECTED: [&str; 5] = ["admitted", "denied", "undecided", "unsupported", "conditional"];
            de::Error::unknown_variant(&text, &EXPECTED)
        })
    }
}

/// The inputs of a report other than the response.
#[derive(Debug)]
pub(super) struct Circumstances<'a> {
    pub(super) place: &'a DocumentLocation,
    pub(super) request: &'a Request,
    /// The requested resource; `None` if the server does not serve it.
    pub(super) served: Option<&'a ServedResource>,
    /// The object before the request, if it existed.
    pub(super) old: Option<Arc<Value>>,
    pub(super) webhooks: &'a Webhooks,
    /// The pulled cluster of an offline review.
    pub(super) cluster: Option<PulledCluster>,
    /// The policies without a binding, and the bindings without a policy.
    pub(super) unbound: &'a [UnboundPolicy],
    pub(super) took: Duration,
    pub(super) notes: Vec<String>,
    /// Whether to report the values that were compared for webhooks that are not called.
    pub(super) explain: bool,
    /// Whether to report the review that each webhook received, and its response.
    pub(super) reviews: bool,
    /// Details of a request that `--record` saves; `None` for other requests.
    pub(super) recorded: Option<Recorded>,
    /// The patch that the client sent.
    pub(super) patch: Option<Value>,
}

impl Report {
    /// Creates the report of a request from its circumstances and its response.
    pub(super) fn new(circumstances: Circumstances<'_>, sent: &Sent, server: &ApiServer) -> Self {
        let Circumstances {
            place,
            request,
            served,
            old,
            webhooks,
            cluster,
            unbound,
            took,
            notes,
            explain,
            reviews,
            recorded,
            patch,
        } = circumstances;
        let is_rejected = sent.provisional != Verdict::Admitted;
        let (kind, resource, namespaced) = served.map_or_else(Default::default, |served| {
            (served.kind.clone(), served.name.clone(), served.namespaced)
        });
        let steps = steps::steps(request, sent, server, namespaced);
        let request_report = RequestReport {
            operation: request.operation,
            kind,
            resource,
            subresource: request.subresource.clone(),
            namespace: if namespaced { request.namespace.clone() } else { String::new() },
            name: request.name.clone(),
            user_info: request.user.clone(),
            dry_run: request.dry_run,
            object: request.body.clone(),
            patch,
        };
        let exchanges = match (reviews, &recorded) {
            (true, _) => Exchanges::Both,
            (false, Some(_)) => Exchanges::Requests,
            (false, None) => Exchanges::Neither,
        };
        let message = kubectl::message(&request_report, sent, &place.file);
        let service = |called: &Called| webhooks.service(called);
        let condition = Condition::new(request.operation, sent, message.clone(), service);
        let facts = served.map(|served| Facts::new(request, served, sent, server, old));
        Self {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            source: Source { file: place.file.clone(), line: place.line },
            recorded,
            cluster,
            decision: Decision {
                verdict: sent.verdict,
                allowed: sent.verdict == Verdict::Admitted,
                code: sent.code,
                message: condition.as_ref().map_or(message, Condition::sentence),
                status: is_rejected.then(|| sent.body.clone()),
                condition,
            },
            request: request_report,
            warnings: sent.warnings.clone(),
            audit_annotations: sent.audit_annotations.clone(),
            webhooks: webhooks.reports(&sent.record, facts.as_ref(), explain),
            calls: webhooks.calls(&sent.record, server, exchanges),
            policies: policies::reports(&sent.record, unbound),
            conversions: sent.record.conversions.iter().map(ConversionReport::new).collect(),
            object: steps.last,
            steps: steps.taken,
            notes,
            duration_ms: milliseconds(took),
        }
    }

    /// Returns whether the request was admitted or denied, or why the result is unknown.
    pub(super) fn verdict(&self) -> Verdict {
        self.decision.verdict
    }
}

/// Converts a duration to milliseconds, rounded to microseconds.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

pub(crate) const KIND: &str = "AdmissionReport";

/// The kind of a list of reports.
pub(crate) const LIST_KIND: &str = "AdmissionReportList";
