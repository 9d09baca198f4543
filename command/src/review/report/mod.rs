//! What is told of one request: a view of its record. The types are the schema of `-o json`; see docs/guide/review.md.

mod conversions;
mod difference;
pub(super) mod json;
mod kubectl;
pub(super) mod people;
mod recorded;
mod secret;
mod steps;
mod webhooks;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use harness::attributes::{GroupVersionKind, GroupVersionResource, Operation, UserInfo};
use harness::chain::{Request, Sent, Verdict};
use harness::server::{ApiServer, ServedResource};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::conversions::ConversionReport;
use self::steps::Step;
pub(super) use self::steps::{patched, shown};
pub(super) use self::webhooks::Webhooks;
use self::webhooks::{CallReport, WebhookReport};
use super::explain::Facts;
use crate::documents::Place;

/// One request, its decision, and all that led to it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// `admit.dev/v1alpha1`.
    api_version: Cow<'static, str>,
    /// `AdmissionReport`.
    kind: Cow<'static, str>,
    /// Where the object under review stands, or the line of the record.
    source: Source,
    /// Only of a request that `--record` wrote down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<Recorded>,
    /// What was asked.
    request: RequestReport,
    /// What the server answered.
    decision: Decision,
    /// What a client is warned of, in order.
    warnings: Vec<String>,
    /// What the audit event says of the webhooks.
    audit_annotations: BTreeMap<String, String>,
    /// Every webhook of the configurations, in dispatch order.
    webhooks: Vec<WebhookReport>,
    /// Every call, in the order in which they ended.
    calls: Vec<CallReport>,
    /// Every call of a conversion webhook, in the order in which they ended; the first 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conversions: Vec<ConversionReport>,
    /// Who changed the object on its way, and what; only steps that changed it.
    steps: Vec<Step>,
    /// The object as it is stored, or would be; of a request that is not admitted, as it was when it was refused. Left
    /// out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// What was done so that the request could be made at all.
    notes: Vec<String>,
    /// How long all of it took, in milliseconds.
    duration_ms: f64,
}

/// Where the object under review stands.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    /// The file as it was given; `STDIN` for standard input.
    file: String,
    /// The line on which its document begins, from 1.
    line: u64,
}

/// A request that `--record` wrote down.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recorded {
    /// The number of the request among those of the record, from 1: the order in which they ended.
    #[serde(default)]
    pub(super) number: usize,
    /// When it came.
    pub(super) time: Timestamp,
    /// Such as `create`, `patch` or `deletecollection`.
    pub(super) verb: String,
    /// The Audit-ID, by which the audit log and clients know it.
    #[serde(rename = "auditID")]
    pub(super) audit_id: String,
    /// Left out without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) user_agent: String,
}

/// What was asked.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestReport {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    operation: Operation,
    /// The kind of the object that the path names.
    kind: GroupVersionKind,
    /// The resource that the path names.
    resource: GroupVersionResource,
    /// Left out for the object itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    subresource: String,
    /// Left out for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    /// Left out if the server chooses it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    /// Who asked.
    user_info: UserInfo,
    /// Whether nothing was to be stored.
    dry_run: bool,
    /// The body as it was sent; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// The patch as it was sent; left out without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch: Option<Value>,
}

/// What the server answered.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    /// `admitted`, `denied`, `undecided` (a webhook gave no valid answer, and that decided), or `unsupported` (admit does
    /// not imitate what kube-apiserver would do).
    #[serde(with = "verdict_name")]
    verdict: Verdict,
    /// Whether the request is admitted.
    allowed: bool,
    /// The HTTP status code.
    code: u16,
    /// What kubectl would print.
    message: String,
    /// The server's Status; left out if the request is admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

mod verdict_name {
    use harness::chain::Verdict;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    const NAMES: [(Verdict, &str); 4] = [
        (Verdict::Admitted, "admitted"),
        (Verdict::Denied, "denied"),
        (Verdict::Undecided, "undecided"),
        (Verdict::Unsupported, "unsupported"),
    ];

    pub(super) fn of(verdict: Verdict) -> &'static str {
        NAMES.iter().find(|(known, _)| *known == verdict).map_or("", |(_, name)| name)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(super) fn serialize<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(of(*verdict))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let found = NAMES.iter().find(|(_, name)| *name == text).map(|(verdict, _)| *verdict);
        found.ok_or_else(|| {
            de::Error::unknown_variant(&text, &["admitted", "denied", "undecided", "unsupported"])
        })
    }
}

/// What a report needs beside what came back.
#[derive(Debug)]
pub(super) struct Circumstances<'a> {
    pub(super) place: &'a Place,
    pub(super) request: &'a Request,
    /// None if the server has no such resource.
    pub(super) served: Option<&'a ServedResource>,
    /// The object as it was before the request, if it was there.
    pub(super) old: Option<Arc<Value>>,
    pub(super) webhooks: &'a Webhooks,
    pub(super) took: Duration,
    pub(super) notes: Vec<String>,
    /// Whether to say of webhooks that are not called what was compared.
    pub(super) explain: bool,
    /// Of a request that `--record` writes down.
    pub(super) recorded: Option<Recorded>,
    /// The patch that was sent.
    pub(super) patch: Option<Value>,
}

impl Report {
    /// The report of one request.
    pub(super) fn new(circumstances: Circumstances<'_>, sent: &Sent, server: &ApiServer) -> Self {
        let Circumstances { place, request, served, old, webhooks, took, notes, explain, recorded, patch } =
            circumstances;
        let admitted = sent.verdict == Verdict::Admitted;
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
        let explained =
            served.filter(|_| explain).map(|served| Facts::new(request, served, sent, server, old));
        Self {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            source: Source { file: place.file.clone(), line: place.line },
            recorded,
            decision: Decision {
                verdict: sent.verdict,
                allowed: admitted,
                code: sent.code,
                message: kubectl::message(&request_report, sent, &place.file),
                status: (!admitted).then(|| sent.body.clone()),
            },
            request: request_report,
            warnings: sent.warnings.clone(),
            audit_annotations: sent.audit_annotations.clone(),
            webhooks: webhooks.reports(&sent.record, explained.as_ref()),
            calls: webhooks.calls(&sent.record, server),
            conversions: sent.record.conversions.iter().map(ConversionReport::new).collect(),
            object: steps.last,
            steps: steps.taken,
            notes,
            duration_ms: milliseconds(took),
        }
    }

    /// What the answer means.
    pub(super) fn verdict(&self) -> Verdict {
        self.decision.verdict
    }
}

/// To the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The version of the schema.
const API_VERSION: &str = "admit.dev/v1alpha1";
const KIND: &str = "AdmissionReport";
