//! Computes the response to a call from the behavior, the circumstances of the call, and the review.

mod bad_response;
mod bytes;
mod changes;
mod circumstances;
mod condition;
mod conversion;
mod credentials;
mod mutation;
mod placeholders;
mod raw;
mod reply;
mod review;

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use self::bad_response::bad_response;
use self::bytes::script;
pub use self::circumstances::{Caller, Circumstances};
use self::condition::holds;
use self::conversion::converted;
use self::credentials::rejection;
use self::placeholders::filled_write;
use self::raw::raw;
pub use self::reply::{Act, Answer, ByteScript, Effect, Reply};
use self::review::{ReviewedRequest, encoded};
use crate::json::set;
use crate::{Behavior, Hang, Leak, MixUp, Queue, Timeout};

/// Returns the response of `behavior` to `review` in the `nth` call, counted from 0.
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
            let write = effect.write.as_ref().map(|write| filled_write(write, at, review));
            act(&effect.then, at, review).with(Effect::SideEffect(write))
        }
        Behavior::Leak(Leak { bytes, most, then }) => {
            act(then, at, review).with(Effect::Leak { bytes: *bytes, most: *most })
        }
        Behavior::Queue(Queue { hold, then }) => act(then, at, review).with(Effect::Queue(hold.duration())),
        Behavior::Demand(demand) => match rejection(&demand.credentials, &at.caller) {
            Some(rejection) => only(Answer::Reply(rejection)),
            None => act(&demand.then, at, review),
        },
        Behavior::MixUp(mix_up) => mixed_up(mix_up, at, review),
        Behavior::BadResponse(bad) => only(bad_response(*bad, review)),
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
        | Behavior::Mutate(_) => only(match ReviewedRequest::read(review) {
            Ok(request) => review_answer(behavior, &request, at, review),
            Err(fault) => Answer::Reply(Reply::not_a_review(&fault)),
        }),
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

fn object(review: &Value) -> &Value {
    review.pointer("/request/object").unwrap_or(&Value::Null)
}

fn review_answer(
    behavior: &Behavior,
    request: &ReviewedRequest<'_>,
    at: &Circumstances,
    review: &Value,
) -> Answer {
    let mut response = json!({"uid": request.uid, "allowed": true});
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
            summary = mutate(&mut response, &changes::operations(parameters.changes(), at, review));
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
    Answer::Reply(Reply::json(&request.answered(&response), summary))
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
