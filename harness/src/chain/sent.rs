//! What came back of a request, and all that led to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use kubernetes_admission::attributes::Operation;
use kubernetes_admission::event::{CallResult, Called, Event, Part, Phase, Record};
use kubernetes_admission::{audit, failure};
use kubernetes_api_server::{ObservedRequest, ResourceName};
use kubernetes_types::status::NOT_IMITATED;

use super::Request;

/// What came back of a request, and all that led to it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// What the answer means.
    pub verdict: Verdict,
    /// The HTTP status code.
    pub code: u16,
    /// The object as it is stored now, or would be; a `Status` for a failure, most deletions, and what has no object.
    pub body: Value,
    /// The texts of the warnings, as a client gets them.
    pub warnings: Vec<String>,
    /// The annotations of the audit event that admission leaves.
    pub audit_annotations: BTreeMap<String, String>,
    /// The body as the server read it, with the defaults of its version: what admission began with.
    pub read: Option<Value>,
    /// What happened in admission. Each call has its review and its reply as bytes.
    pub record: Record,
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "yes, no, and two ways not to know")]
pub enum Verdict {
    /// The request is admitted.
    Admitted,
    /// A webhook, a plugin or the server itself said no.
    Denied,
    /// The request is refused because nobody could say: a webhook gave no valid answer and its failure policy is `Fail`,
    /// or the server could not go on with what it answered.
    Undecided,
    /// kube-apiserver would have an answer, admit has none.
    Unsupported,
}

impl Sent {
    /// A request of a client over a connection, and what came of it, as if it had been sent in process.
    ///
    /// The body of a DELETE, a patch of an object and what opens a connection are no objects: these requests have no body.
    /// A request that was not answered has the code 0.
    pub fn of_observed(observed: ObservedRequest) -> (Request, Self) {
        let ObservedRequest {
            operation, resource, namespace, name, subresource, sent, dry_run, user, ..
        } = observed;
        let is_patch = observed.verb == "patch";
        let has_object = !is_patch && matches!(operation, Operation::Create | Operation::Update);
        let request = Request {
            operation,
            resource: ResourceName::Named(resource),
            namespace,
            name,
            subresource,
            body: sent.filter(|_| has_object),
            query: Vec::new(),
            dry_run,
            user,
        };
        let body = observed.answer.map(Arc::unwrap_or_clone).unwrap_or_default();
        let verdict = StatusCode::from_u16(observed.code)
            .map_or(Verdict::Undecided, |code| Verdict::new(operation, code, &body, &observed.record));
        let sent = Self {
            verdict,
            code: observed.code,
            body,
            warnings: observed.warnings,
            audit_annotations: audit::annotations(&observed.record),
            read: observed.read.filter(|_| has_object),
            record: observed.record,
        };
        (request, sent)
    }

    /// The calls, in the order in which they ended.
    pub fn calls(&self) -> impl Iterator<Item = &Called> {
        self.record.calls()
    }
}

impl Verdict {
    pub(super) fn new(operation: Operation, code: StatusCode, body: &Value, record: &Record) -> Self {
        // Behind admission there is only the connection itself, which needs a node.
        let connects = operation == Operation::Connect && passed(record);
        if code.is_success() || connects {
            return Self::Admitted;
        }
        let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
        if code == StatusCode::NOT_IMPLEMENTED && message.contains(NOT_IMITATED) {
            return Self::Unsupported;
        }
        // Of several validating webhooks that refuse, one has the word.
        let decided = record
            .calls()
            .find(|called| failure::refusal(called).is_some_and(|status| status.message == message));
        match decided.map(|called| &called.result) {
            Some(CallResult::Denied(_)) => Self::Denied,
            Some(CallResult::Failed { .. }) => Self::Undecided,
            Some(CallResult::ServerError { .. } | CallResult::Allowed { .. }) | None => {
                if code.is_server_error() && !refused_by_a_plugin(record) {
                    Self::Undecided
                } else {
                    Self::Denied
                }
            }
        }
    }
}

fn refused_by_a_plugin(record: &Record) -> bool {
    record.events.iter().any(|event| matches!(event, Event::PluginRefused { .. }))
}

/// Whether the request came through both phases.
fn passed(record: &Record) -> bool {
    record
        .timings
        .iter()
        .any(|pass| pass.part == Part::Phase && pass.phase == Phase::Validating && !pass.refused)
}
