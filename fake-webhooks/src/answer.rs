//! What is answered to a call: a function of the behaviour, the number of the call and the review.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bytes_of::{Script, script};
use crate::misanswer::misanswer;
use crate::raw::raw;
use crate::{Behaviour, Hang, Timeout, mutation};

/// What happens to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing is ever sent.
    Never,
    /// The connection is closed without an answer.
    Closed {
        /// How long nothing is done before.
        after: Duration,
    },
    /// An HTTP response.
    Reply(Reply),
    /// Bytes instead of one.
    Bytes {
        /// How long nothing is sent before.
        after: Duration,
        /// What is sent.
        script: Script,
    },
}

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How long nothing is sent before.
    pub after: Duration,
    /// The HTTP status.
    pub status: http::StatusCode,
    /// The `Content-Type`; empty for none.
    pub content_type: Cow<'static, str>,
    /// Headers beside that and the length.
    pub headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// The body, whole.
    pub body: Bytes,
    /// The answer in a few words for people, such as `denied: not today`.
    pub summary: String,
}

/// What `behaviour` answers to `review` on the `nth` call (counted from 0).
pub fn answer(behaviour: &Behaviour, nth: u64, review: &Value) -> Answer {
    match behaviour {
        Behaviour::Sequence(sequence) => answer(sequence.behaviour(nth), sequence.within(nth), review),
        Behaviour::Timeout(timeout) => hang(timeout, nth, review),
        Behaviour::BadResponse(bad) => misanswer(*bad, review),
        Behaviour::Raw(response) => Answer::Reply(raw(response, review)),
        Behaviour::Bytes(bytes) => Answer::Bytes { after: Duration::ZERO, script: script(bytes, review) },
        Behaviour::When(when) if mutation::holds(&when.condition, object(review)) => {
            answer(&when.then, nth, review)
        }
        Behaviour::When(when) => answer(&when.otherwise, nth, review),
        Behaviour::Allow(_)
        | Behaviour::Deny(_)
        | Behaviour::Patch(_)
        | Behaviour::AlwaysMutate(_)
        | Behaviour::NonIdempotent(_)
        | Behaviour::Sidecar(_)
        | Behaviour::ContainerEnv(_) => match Question::read(review) {
            Ok(question) => review_answer(behaviour, &question, review),
            Err(fault) => Answer::Reply(Reply::not_a_review(&fault)),
        },
    }
}

pub(crate) const JSON: &str = "application/json";

impl Reply {
    /// The answer to something that is no review.
    pub(crate) fn not_a_review(fault: &str) -> Self {
        let text = format!("not an AdmissionReview: {fault}");
        Self::text(http::StatusCode::BAD_REQUEST, text.clone(), text)
    }

    /// A plain text.
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

    /// A JSON document with status 200.
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

/// What an answer has to repeat.
pub(crate) struct Question<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) uid: &'a str,
}

impl<'a> Question<'a> {
    pub(crate) fn read(review: &'a Value) -> Result<Self, String> {
        let text = |value: &'a Value, field: &str| {
            value.as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("`{field}` is missing"))
        };
        let api_version = text(&review["apiVersion"], "apiVersion")?;
        if review["kind"] != "AdmissionReview" {
            return Err("`kind` is not `AdmissionReview`".to_owned());
        }
        Ok(Self { api_version, uid: text(&review["request"]["uid"], "request.uid")? })
    }

    /// The whole review around a response.
    pub(crate) fn answered(&self, response: &Value) -> Value {
        json!({"apiVersion": self.api_version, "kind": "AdmissionReview", "response": response})
    }
}

fn object(review: &Value) -> &Value {
    &review["request"]["object"]
}

fn hang(timeout: &Timeout, nth: u64, review: &Value) -> Answer {
    let Hang::For(time) = timeout.hang else {
        return Answer::Never;
    };
    match answer(&timeout.then, nth, review) {
        Answer::Never => Answer::Never,
        Answer::Closed { after } => Answer::Closed { after: after.saturating_add(time) },
        Answer::Bytes { after, script } => Answer::Bytes { after: after.saturating_add(time), script },
        Answer::Reply(reply) => {
            let summary = format!("{} after {time:?}", reply.summary);
            Answer::Reply(Reply { after: reply.after.saturating_add(time), summary, ..reply })
        }
    }
}

fn review_answer(behaviour: &Behaviour, question: &Question<'_>, review: &Value) -> Answer {
    let mut response = json!({"uid": question.uid, "allowed": true});
    let mut summary = "allowed".to_owned();
    match behaviour {
        Behaviour::Allow(allow) => remark(&mut response, &allow.warnings, &allow.audit_annotations),
        Behaviour::Deny(deny) => {
            response["allowed"] = json!(false);
            summary = match &deny.message {
                Some(message) => format!("denied: {message}"),
                None => "denied".to_owned(),
            };
            let status = json!({"code": deny.code, "reason": deny.reason, "message": deny.message});
            response["status"] = without_nulls(status);
            remark(&mut response, &deny.warnings, &deny.audit_annotations);
        }
        Behaviour::Patch(patch) => {
            summary = mutate(&mut response, &patch.operations);
            if patch.padding > 0 {
                let text = Value::from(patch.operations.as_slice()).to_string() + &" ".repeat(patch.padding);
                response["patch"] = json!(STANDARD.encode(text));
            }
            remark(&mut response, &patch.warnings, &patch.audit_annotations);
        }
        Behaviour::AlwaysMutate(parameters) => {
            summary = mutate(&mut response, &mutation::always_mutate(parameters, object(review)));
        }
        Behaviour::NonIdempotent(parameters) => {
            summary = mutate(&mut response, &mutation::append(parameters, object(review)));
        }
        Behaviour::Sidecar(parameters) => {
            summary = mutate(&mut response, &mutation::sidecar(parameters, object(review)));
        }
        Behaviour::ContainerEnv(parameters) => {
            summary = mutate(&mut response, &mutation::container_env(parameters, object(review)));
        }
        Behaviour::When(_)
        | Behaviour::Timeout(_)
        | Behaviour::BadResponse(_)
        | Behaviour::Raw(_)
        | Behaviour::Bytes(_)
        | Behaviour::Sequence(_) => {
            unreachable!("answer() does not ask for a review here")
        }
    }
    Answer::Reply(Reply::json(&question.answered(&response), summary))
}

fn mutate(response: &mut Value, operations: &[Value]) -> String {
    if operations.is_empty() {
        return "allowed, nothing to patch".to_owned();
    }
    response["patchType"] = json!("JSONPatch");
    response["patch"] = json!(encoded(operations));
    match operations.len() {
        1 => "allowed, patched with 1 operation".to_owned(),
        count => format!("allowed, patched with {count} operations"),
    }
}

/// A patch as it stands in a review.
pub(crate) fn encoded(operations: &[Value]) -> String {
    STANDARD.encode(Value::from(operations).to_string())
}

fn remark(response: &mut Value, warnings: &[String], audit_annotations: &BTreeMap<String, String>) {
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    if !audit_annotations.is_empty() {
        response["auditAnnotations"] = json!(audit_annotations);
    }
}

fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}
