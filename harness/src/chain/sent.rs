//! What came back of a request, and all that led to it.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::Value;

use kubernetes_admission::attributes::Operation;
use kubernetes_admission::event::{CallResult, Called, Event, Part, Phase, Record};
use kubernetes_admission::failure;
use kubernetes_types::status::NOT_IMITATED;

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
