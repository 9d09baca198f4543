//! Creates the invalid responses of `bad-response`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value, json};

use super::reply::{Answer, JSON, Reply};
use super::review::{ReviewedRequest, encoded};
use crate::BadResponse;
use crate::json::set;

/// Creates a response to `review` with the defect `bad`.
pub(super) fn bad_response(bad: BadResponse, review: &Value) -> Answer {
    let spoiled = |what: &str, spoil: fn(&mut Value)| match ReviewedRequest::read(review) {
        Ok(request) => {
            let mut answer = request.answered(&json!({"uid": request.uid, "allowed": true}));
            spoil(&mut answer);
            Reply::json(&answer, format!("bad response: {what}"))
        }
        Err(fault) => Reply::not_a_review(&fault),
    };
    Answer::Reply(match bad {
        BadResponse::Closed => return Answer::Closed { after: Duration::ZERO },
        BadResponse::Status(code) => {
            let status = code.http();
            let text = status.canonical_reason().unwrap_or("no such status").to_owned();
            Reply::text(status, text, format!("bad response: HTTP status {}", status.as_u16()))
        }
        BadResponse::NotJson => {
            let text = "this is not JSON".to_owned();
            Reply::text(StatusCode::OK, text, "bad response: not JSON".to_owned())
        }
        BadResponse::Empty => {
            let reply = Reply::text(StatusCode::OK, String::new(), "bad response: empty".to_owned());
            Reply { content_type: JSON.into(), ..reply }
        }
        BadResponse::NoResponse => spoiled("no `response`", |answer| {
            answer.as_object_mut().map(|fields| fields.remove("response"));
        }),
        BadResponse::NoUid => spoiled("no uid", |answer| {
            answer.pointer_mut("/response").and_then(Value::as_object_mut).map(|fields| fields.remove("uid"));
        }),
        BadResponse::UidInCapitals => spoiled("uid in capital letters", |answer| {
            let uid = answer.pointer("/response/uid").and_then(Value::as_str).unwrap_or_default();
            let uid = uid.to_uppercase();
            set(answer, &["response", "uid"], uid);
        }),
        BadResponse::EchoedRequest => match ReviewedRequest::read(review) {
            Ok(request) => {
                let mut answer = request.answered(&json!({"uid": request.uid, "allowed": true}));
                set(&mut answer, &["request"], review["request"].clone());
                Reply::json(&answer, "allowed, with the request repeated".to_owned())
            }
            Err(fault) => Reply::not_a_review(&fault),
        },
        BadResponse::WrongUid => {
            spoiled("wrong uid", |answer| set(answer, &["response", "uid"], "not-the-uid-of-the-request"))
        }
        BadResponse::WrongKind => spoiled("wrong kind", |answer| set(answer, &["kind"], "AdmissionResponse")),
        BadResponse::WrongVersion => spoiled("wrong version", |answer| {
            let version = if answer["apiVersion"] == V1 { V1BETA1 } else { V1 };
            set(answer, &["apiVersion"], version);
        }),
        BadResponse::PatchWithoutPatchType => spoiled("patch without patchType", |answer| {
            let operation = json!({"op": "add", "path": "/metadata/labels", "value": {}});
            set(answer, &["response", "patch"], encoded(&[operation]));
        }),
        BadResponse::UndecodablePatch => spoiled("undecodable patch", |answer| {
            set(answer, &["response", "patchType"], "JSONPatch");
            set(answer, &["response", "patch"], STANDARD.encode("this is not a JSON Patch"));
        }),
        BadResponse::PatchThatDoesNotApply => spoiled("patch that does not apply", |answer| {
            let operation = json!({"op": "remove", "path": "/no/object/has/this"});
            set(answer, &["response", "patchType"], "JSONPatch");
            set(answer, &["response", "patch"], encoded(&[operation]));
        }),
    })
}

const V1: &str = "admission.k8s.io/v1";
const V1BETA1: &str = "admission.k8s.io/v1beta1";
