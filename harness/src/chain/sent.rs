//! Interprets the response to a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use kubernetes_admission::attributes::Operation;
use kubernetes_admission::event::{CallResult, Called, Event, Part, Phase, Record};
use kubernetes_admission::{audit, failure};
use kubernetes_api_server::{ObservedRequest, ResourceName};
use kubernetes_types::status::UNSUPPORTED_PREFIX;

use super::Request;

/// The result of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// The interpretation of the response.
    pub verdict: Verdict,
    /// The verdict if all webhooks that were not called allow the request and do not change the object.
    ///
    /// Differs from `verdict` only if that is [`Verdict::Conditional`].
    pub provisional: Verdict,
    /// The HTTP status code.
    pub code: u16,
    /// The response body: the object as stored or, in a dry run, as it would be stored.
    ///
    /// The body is a `Status` for failures, most deletions, and operations without an object.
    pub body: Value,
    /// The warnings that the client receives.
    pub warnings: Vec<String>,
    /// The audit annotations that admission added.
    pub audit_annotations: BTreeMap<String, String>,
    /// The decoded request body, with the defaults of its version, as it was before admission.
    pub read: Option<Value>,
    /// The admission record. Each call contains its review and its response as bytes.
    pub record: Record,
}

/// The interpretation of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the list of verdicts is complete")]
pub enum Verdict {
    /// The request was admitted.
    Admitted,
    /// A webhook, a plugin, or the server itself rejected the request.
    Denied,
    /// The request failed without a decision.
    ///
    /// A webhook with the failure policy `Fail` did not return a valid response, or the server could not process the
    /// response.
    Undecided,
    /// The request requires a feature that admit does not support.
    Unsupported,
    /// The decision depends on webhooks that were not called: see [`Sent::open_calls`].
    Conditional,
}

impl Sent {
    /// Converts a request that a client sent over a connection, and its result, to the types of this module.
    ///
    /// The body of the request is `None` for DELETE, PATCH, and CONNECT, because it is not an object. The code is 0 if
    /// the server did not respond.
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
        let provisional = StatusCode::from_u16(observed.code)
            .map_or(Verdict::Undecided, |code| Verdict::new(operation, code, &body, &observed.record));
        let sent = Self {
            verdict: provisional.given(operation, &observed.record),
            provisional,
            code: observed.code,
            body,
            warnings: observed.warnings,
            audit_annotations: audit::annotations(&observed.record),
            read: observed.read.filter(|_| has_object),
            record: observed.record,
        };
        (request, sent)
    }

    /// Returns the calls with an unknown response on which the decision depends; none if the decision is definite.
    ///
    /// `operation` is the operation of the request.
    pub fn open_calls(&self, operation: Operation) -> impl Iterator<Item = &Called> {
        open_calls(self.provisional, operation, &self.record)
    }

    /// Returns the webhook calls in the order in which they ended.
    pub fn calls(&self) -> impl Iterator<Item = &Called> {
        self.record.calls()
    }
}

impl Verdict {
    /// Returns this provisional verdict if it is definite.
    pub(super) fn given(self, operation: Operation, record: &Record) -> Self {
        if open_calls(self, operation, record).next().is_some() { Self::Conditional } else { self }
    }

    /// Returns the verdict if webhooks that were not called allow the request and do not change the object.
    pub(super) fn new(operation: Operation, code: StatusCode, body: &Value, record: &Record) -> Self {
        // After admission, a CONNECT fails only because the connection requires a node.
        let connects = operation == Operation::Connect && passed(record);
        if code.is_success() || connects {
            return Self::Admitted;
        }
        let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
        if code == StatusCode::NOT_IMPLEMENTED && message.contains(UNSUPPORTED_PREFIX) {
            return Self::Unsupported;
        }
        // If several validating webhooks reject the request, one of them determines the response.
        let decided = record
            .calls()
            .find(|called| failure::refusal(called).is_some_and(|status| status.message == message));
        match decided.map(|called| &called.result) {
            Some(CallResult::Denied(_)) => Self::Denied,
            Some(CallResult::Failed { .. }) => Self::Undecided,
            Some(CallResult::ServerError { .. } | CallResult::Allowed { .. } | CallResult::Unknown)
            | None => {
                if code.is_server_error() && !refused_by_a_plugin(record) {
                    Self::Undecided
                } else {
                    Self::Denied
                }
            }
        }
    }
}

/// Returns whether the webhook of a call could change the object of a request with this operation.
///
/// The API server rejects a deletion if a webhook patches it, because a deletion has no object to change.
pub fn could_change(operation: Operation, called: &Called) -> bool {
    called.phase == Phase::Mutating && operation != Operation::Delete
}

/// Returns the calls with an unknown response on which the decision depends.
///
/// Any webhook could reject a request that is otherwise admitted. A rejection is definite unless a webhook could have
/// changed the object before: mutating webhooks are called one after another and before the validation, so all calls in
/// the record precede the rejection.
fn open_calls(provisional: Verdict, operation: Operation, record: &Record) -> impl Iterator<Item = &Called> {
    record.calls().filter(move |called| {
        matches!(called.result, CallResult::Unknown)
            && match provisional {
                Verdict::Admitted => true,
                Verdict::Denied | Verdict::Undecided => could_change(operation, called),
                Verdict::Unsupported | Verdict::Conditional => false,
            }
    })
}

fn refused_by_a_plugin(record: &Record) -> bool {
    record.events.iter().any(|event| matches!(event, Event::PluginRefused { .. }))
}

/// Returns whether the request passed both admission phases.
fn passed(record: &Record) -> bool {
    record
        .timings
        .iter()
        .any(|pass| pass.part == Part::Phase && pass.phase == Phase::Validating && !pass.refused)
}
