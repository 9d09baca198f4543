//! The response to a call: a function of the behavior, the number of the call, and the review.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bytes_of::{Script, script};
use crate::condition::holds;
use crate::conversion::converted;
use crate::json::set;
use crate::misanswer::misanswer;
use crate::raw::raw;
use crate::{Behavior, Circumstances, Hang, Leak, MixUp, Queue, Timeout, Write, changed, mutation};

/// The outcome of a call, as the caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing is sent, and the connection stays open.
    Never,
    /// The connection is closed without a response.
    Closed {
        /// The delay before the connection is closed.
        after: Duration,
    },
    /// A complete HTTP response is sent.
    Reply(Reply),
    /// Raw bytes are sent instead of an HTTP response.
    Bytes {
        /// The delay before the first byte.
        after: Duration,
        /// The bytes to send, and how the connection ends.
        script: Script,
    },
}

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The delay before the response.
    pub after: Duration,
    /// The HTTP status of the response.
    pub status: http::StatusCode,
    /// The `Content-Type`, or an empty string to omit the header.
    pub content_type: Cow<'static, str>,
    /// Headers other than `Content-Type` and `Content-Length`.
    pub headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// The complete body of the response.
    pub body: Bytes,
    /// A summary for the log, such as `denied: not today`.
    pub summary: String,
}

/// The response of a fake to one call, and its side effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// The response to the call.
    pub answer: Answer,
    /// The side effects before the response, in order.
    pub effects: Vec<Effect>,
}

/// A side effect of a call, which the sender of the response performs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Counts a side effect, and sends the request, if any.
    SideEffect(Option<Write>),
    /// Leaks memory on each call, up to a maximum.
    Leak {
        /// The bytes to leak for this call.
        bytes: u32,
        /// The maximum number of bytes for all calls.
        most: u32,
    },
    /// Waits until earlier calls end, and then for this duration, even if the caller disconnects.
    Queue(Duration),
}

/// Returns the response of `behavior` to `review` on the `nth` call, counted from 0.
///
/// Assumes that no other call is in progress and that the object has not been seen before.
pub fn answer(behavior: &Behavior, nth: u64, review: &Value) -> Answer {
    act(behavior, &Circumstances::for_call(nth), review).answer
}

/// Returns the response and the side effects of `behavior`, which depend only on `at` and `review`.
pub fn act(behavior: &Behavior, at: &Circumstances, review: &Value) -> Act {
    let only = |answer| Act { answer, effects: Vec::new() };
    match behavior {
        Behavior::Sequence(sequence) => {
            act(sequence.behavior(at.nth), &at.numbered(sequence.within(at.nth)), review)
        }
        Behavior::Cycle(cycle) => {
            let (behavior, round) = cycle.behavior(at.nth);
            act(behavior, &at.numbered(round), review)
        }
        Behavior::First(first) => match at.nth.checked_sub(first.calls) {
            None => act(&first.of, at, review),
            Some(after) => act(&first.then, &at.numbered(after), review),
        },
        Behavior::Rate(rate) => act(rate.behavior(at.nth), at, review),
        Behavior::When(when) if holds(&when.condition, at, review) => act(&when.then, at, review),
        Behavior::When(when) => act(&when.otherwise, at, review),
        Behavior::Timeout(Timeout { hang: Hang::Forever, .. }) => only(Answer::Never),
        Behavior::Timeout(Timeout { hang: Hang::For(time), then }) => act(then, at, review).after(*time),
        Behavior::Delay(delay) => act(&delay.then, at, review).after(delay.for_call(at.nth)),
        Behavior::SideEffect(effect) => {
            let write = effect.write.as_ref().map(|write| write.filled(at, review));
            act(&effect.then, at, review).with(Effect::SideEffect(write))
        }
        Behavior::Leak(Leak { bytes, most, then }) => {
            act(then, at, review).with(Effect::Leak { bytes: *bytes, most: *most })
        }
        Behavior::Queue(Queue { hold, then }) => act(then, at, review).with(Effect::Queue(hold.duration())),
        Behavior::Demand(demand) => match demand.refusal(&at.caller) {
            Some(refusal) => only(Answer::Reply(refusal)),
            None => act(&demand.then, at, review),
        },
        Behavior::MixUp(mix_up) => mixed_up(mix_up, at, review),
        Behavior::BadResponse(bad) => only(misanswer(*bad, review)),
        Behavior::Convert(convert) => only(converted(convert, review)),
        Behavior::Raw(response) => only(Answer::Reply(raw(response, review))),
        Behavior::Bytes(bytes) => {
            only(Answer::Bytes { after: Duration::ZERO, script: script(bytes, review) })
        }
        Behavior::Allow(_)
        | Behavior::Deny(_)
        | Behavior::Patch(_)
        | Behavior::AlwaysMutate(_)
        | Behavior::NonIdempotent(_)
        | Behavior::Sidecar(_)
        | Behavior::ContainerEnv(_)
        | Behavior::Mutate(_) => only(match Question::read(review) {
            Ok(question) => review_answer(behavior, &question, at, review),
            Err(fault) => Answer::Reply(Reply::not_a_review(&fault)),
        }),
    }
}

impl Act {
    fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    fn after(self, time: Duration) -> Self {
        let answer = match self.answer {
            Answer::Never => Answer::Never,
            Answer::Closed { after } => Answer::Closed { after: after.saturating_add(time) },
            Answer::Bytes { after, script } => Answer::Bytes { after: after.saturating_add(time), script },
            Answer::Reply(reply) => {
                let summary = format!("{} after {time:?}", reply.summary);
                Answer::Reply(Reply { after: reply.after.saturating_add(time), summary, ..reply })
            }
        };
        Self { answer, ..self }
    }
}

fn mixed_up(mix_up: &MixUp, at: &Circumstances, review: &Value) -> Act {
    let Some(uid) = &at.other_uid else {
        return act(&mix_up.then, at, review).after(mix_up.hold.duration());
    };
    let mut other = review.clone();
    if let Some(request) = other.get_mut("request").and_then(Value::as_object_mut) {
        request.insert("uid".to_owned(), json!(uid));
    }
    act(&mix_up.then, at, &other).after(mix_up.hold.duration())
}

pub(crate) const JSON: &str = "application/json";

impl Reply {
    /// Creates the response to a body that is not a review.
    pub(crate) fn not_a_review(fault: &str) -> Self {
        let text = format!("not an AdmissionReview: {fault}");
        Self::text(http::StatusCode::BAD_REQUEST, text.clone(), text)
    }

    /// Creates a plain text response.
    pub(crate) fn text(status: http::StatusCode, text: String, summary: String) -> Self {
        Self {
            after: Duration::ZERO,
            status,
            content_type: "text/plain; charset=utf-8".into(),
            headers: Vec::new(),
            body: Bytes::from(text),
            summary,
        }
    }

    /// Creates a JSON response with status 200.
    pub(crate) fn json(body: &Value, summary: String) -> Self {
        Self {
            after: Duration::ZERO,
            status: http::StatusCode::OK,
            content_type: JSON.into(),
            headers: Vec::new(),
            body: Bytes::from(body.to_string()),
            summary,
        }
    }
}

/// The fields of a request that the response repeats.
pub(crate) struct Question<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) uid: &'a str,
}

impl<'a> Question<'a> {
    pub(crate) fn read(review: &'a Value) -> Result<Self, String> {
        let text = |value: Option<&'a Value>, field: &str| {
            let text = value.and_then(Value::as_str).filter(|text| !text.is_empty());
            text.ok_or_else(|| format!("`{field}` is missing"))
        };
        let api_version = text(review.get("apiVersion"), "apiVersion")?;
        if review["kind"] != "AdmissionReview" {
            return Err("`kind` is not `AdmissionReview`".to_owned());
        }
        Ok(Self { api_version, uid: text(review.pointer("/request/uid"), "request.uid")? })
    }

    /// Returns a review in the version of the request that contains `response`.
    pub(crate) fn answered(&self, response: &Value) -> Value {
        Self::around(&json!(self.api_version), response)
    }

    /// Returns a review in the version `api_version` that contains `response`.
    pub(crate) fn around(api_version: &Value, response: &Value) -> Value {
        json!({"apiVersion": api_version, "kind": "AdmissionReview", "response": response})
    }
}

fn object(review: &Value) -> &Value {
    review.pointer("/request/object").unwrap_or(&Value::Null)
}

fn review_answer(behavior: &Behavior, question: &Question<'_>, at: &Circumstances, review: &Value) -> Answer {
    let mut response = json!({"uid": question.uid, "allowed": true});
    let mut summary = "allowed".to_owned();
    match behavior {
        Behavior::Allow(allow) => remark(&mut response, &allow.warnings, &allow.audit_annotations),
        Behavior::Deny(deny) => {
            set(&mut response, &["allowed"], false);
            summary = match &deny.message {
                Some(message) => format!("denied: {message}"),
                None => "denied".to_owned(),
            };
            let status = json!({"code": deny.code, "reason": deny.reason, "message": deny.message});
            set(&mut response, &["status"], without_nulls(status));
            remark(&mut response, &deny.warnings, &deny.audit_annotations);
        }
        Behavior::Patch(patch) => {
            summary = mutate(&mut response, &patch.operations);
            if patch.padding > 0 {
                let text = Value::from(patch.operations.as_slice()).to_string() + &" ".repeat(patch.padding);
                set(&mut response, &["patch"], STANDARD.encode(text));
            }
            remark(&mut response, &patch.warnings, &patch.audit_annotations);
        }
        Behavior::AlwaysMutate(parameters) => {
            summary = mutate(&mut response, &mutation::always_mutate(parameters, object(review)));
        }
        Behavior::NonIdempotent(parameters) => {
            summary = mutate(&mut response, &mutation::append(parameters, object(review)));
        }
        Behavior::Sidecar(parameters) => {
            summary = mutate(&mut response, &mutation::sidecar(parameters, object(review)));
        }
        Behavior::ContainerEnv(parameters) => {
            summary = mutate(&mut response, &mutation::container_env(parameters, object(review)));
        }
        Behavior::Mutate(parameters) => {
            summary = mutate(&mut response, &changed::operations(parameters.changes(), at, review));
        }
        Behavior::When(_)
        | Behavior::Convert(_)
        | Behavior::Demand(_)
        | Behavior::Timeout(_)
        | Behavior::BadResponse(_)
        | Behavior::Raw(_)
        | Behavior::Bytes(_)
        | Behavior::Sequence(_)
        | Behavior::Cycle(_)
        | Behavior::First(_)
        | Behavior::Rate(_)
        | Behavior::Delay(_)
        | Behavior::SideEffect(_)
        | Behavior::Leak(_)
        | Behavior::MixUp(_)
        | Behavior::Queue(_) => {
            unreachable!("act() does not ask for a review here")
        }
    }
    Answer::Reply(Reply::json(&question.answered(&response), summary))
}

fn mutate(response: &mut Value, operations: &[Value]) -> String {
    if operations.is_empty() {
        return "allowed, nothing to patch".to_owned();
    }
    set(response, &["patchType"], "JSONPatch");
    set(response, &["patch"], encoded(operations));
    match operations.len() {
        1 => "allowed, patched with 1 operation".to_owned(),
        count => format!("allowed, patched with {count} operations"),
    }
}

/// Encodes JSON Patch operations in base64, as a review requires.
pub(crate) fn encoded(operations: &[Value]) -> String {
    STANDARD.encode(Value::from(operations).to_string())
}

fn remark(response: &mut Value, warnings: &[String], audit_annotations: &BTreeMap<String, String>) {
    if !warnings.is_empty() {
        set(response, &["warnings"], warnings);
    }
    if !audit_annotations.is_empty() {
        set(response, &["auditAnnotations"], json!(audit_annotations));
    }
}

fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}
