//! V22: every response is a complete `AdmissionReview`.

use std::sync::Arc;

use bytes::Bytes;
use kubernetes_admission::event::Called;
use kubernetes_types::json::at;
use serde_json::Value;

use super::typical_request::is_late;
use crate::call_recorder::Exchange;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Difference;
use crate::environment::Outcome;
use crate::failed_call;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V22",
    title: "response envelope: apiVersion, kind, uid, and allowed are correct when the webhook allows, \
            denies, and cannot decode",
    severity: Severity::Error,
    why: "kube-apiserver rejects a response whose apiVersion or kind differs from the request's, or whose \
          uid is not the request's, and treats a missing `allowed` as a denial without explanation. Often \
          only the error path is incomplete, and it is not tested until the webhook receives the first \
          object that it cannot decode. Because kube-apiserver does not send the undecodable object of this check, \
          a finding about it is a note; if the webhook then hangs or does not answer the next review, it is a \
          warning.",
    help: "Copy apiVersion, kind, and uid from the request into every response, and set allowed, also on \
           errors.",
    source: "Dynamic Admission Control, Response; apiserver VerifyAdmissionResponse; hashicorp/vault-k8s#363",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// An error in a response.
#[derive(Debug, PartialEq)]
struct Fault {
    kind: &'static str,
    /// The message. It does not depend on the object, so that equal errors of several webhooks have one message.
    message: String,
    /// The difference in the invalid field of the response.
    difference: Option<Difference>,
}

/// The situation in which a webhook sends an invalid response.
struct Path {
    kind: &'static str,
    /// The message that describes the situation and the request.
    message: &'static str,
}

const ANSWERS: Path = Path { kind: "when it answers", message: "in its response" };
const ALLOWS: Path = Path { kind: "when it answers", message: "when it allows the object" };
const DENIES: Path = Path { kind: "when it denies", message: "when it denies the object" };
const CANNOT_READ: Path = Path {
    kind: "when it cannot decode the object",
    message: "when it cannot decode the object (metadata is a string, spec and data are numbers)",
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let id = &object_probe.subject.webhook.id;
    let outcome = object_probe.outcome(&object_probe.alone(), object_probe.request).await;
    let Some(called) = outcome.calls_of(id).next() else {
        // Returns the reason why the webhook was not called.
        return object_probe.answered(&object_probe.alone(), object_probe.request).await.map(|_| Vec::new());
    };
    let Some(exchange) = outcome.exchanges_of(id).next() else {
        return Err(Skipped::not_checked(outcome.verdict().to_string()));
    };
    let Ok(reply) = &exchange.reply else { return Err(Skipped::not_checked(outcome.verdict().to_string())) };
    let path = path_of(&reply.body);
    let mut violations = Vec::new();
    if reply.status != 200 {
        let body = failed_call::response_start(reply, object_probe.request);
        let message = format!("the webhook responds with HTTP status {} instead of 200{body}", reply.status);
        let kind = format!("HTTP status {}", path.kind);
        violations.push(
            Violation::new(kind, message)
                .with_steps([Arc::clone(&outcome)])
                .with_why(
                    "kube-apiserver reads a review only from a response with a status from 200 to 206, and Kubernetes \
                     documents 200. Any other status is a failed call: failurePolicy applies, and the client does not \
                     see the reason for a denial.",
                )
                .with_help(
                    "Find the reason for the status in the webhook's log. To deny an object, respond with status 200 and \
                     a review with allowed: false; to report an error, add a message.",
                ),
        );
    }
    let faults = faults(&exchange.review, reply.status, &reply.body);
    violations.extend(faults.into_iter().map(|fault| violation(&path, fault, &outcome)));
    violations.extend(on_the_error_path(object_probe, called, &outcome).await);
    Ok(violations)
}

/// Returns the situation in which the webhook sent a response, according to `response.allowed`.
fn path_of(body: &[u8]) -> Path {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    match at(&answer, &["response", "allowed"]).as_bool() {
        Some(true) => ALLOWS,
        Some(false) => DENIES,
        None => ANSWERS,
    }
}

/// Sends an object that the webhook cannot decode, and checks its response.
async fn on_the_error_path(
    object_probe: &ObjectProbe<'_>,
    called: &Called,
    outcome: &Arc<Outcome>,
) -> Vec<Violation> {
    let Some(body) = unreadable(&called.review) else { return Vec::new() };
    let exchange = object_probe.environment.post(&object_probe.subject.called, body).await;
    let Path { kind: path, message: told } = CANNOT_READ;
    match &exchange.reply {
        Err(error) => {
            // The process may have ended, or the next review may wait for this one.
            let (alone, request) = (object_probe.alone(), object_probe.request);
            let is_stuck =
                is_late(error) || object_probe.outcome_again(&alone, request).await.failure().is_some();
            let message = format!("{told}, the webhook does not respond: {error}");
            let violation = undecodable(Violation::new(format!("no response {path}"), message), &exchange);
            let severity = if is_stuck { Severity::Warning } else { Severity::Note };
            vec![violation.with_severity(severity).with_steps([with_exchange(outcome, exchange)])]
        }
        // The API server does not read the review in this case, and failurePolicy applies.
        Ok(reply) if reply.status != 200 => {
            let kind = format!("HTTP status {path}");
            // The body differs between webhooks of one cause, which are one finding.
            let status = reply.status;
            let message = format!(
                "{told}, the webhook returns HTTP {status} instead of a review that denies the request"
            );
            let violation = undecodable(Violation::new(kind, message), &exchange);
            vec![violation.with_steps([with_exchange(outcome, exchange.clone())])]
        }
        Ok(reply) => {
            let faults = faults(&exchange.review, reply.status, &reply.body);
            let told = with_exchange(outcome, exchange.clone());
            let violations = faults.into_iter().map(|fault| {
                let help = help_on_the_error_path(fault.kind);
                undecodable(violation(&CANNOT_READ, fault, &told), &exchange).with_help(help)
            });
            violations.collect()
        }
    }
}

/// Returns the advice on an error in the response to an object that the webhook cannot decode.
fn help_on_the_error_path(kind: &str) -> &'static str {
    match kind {
        "uid" => {
            "Copy request.uid to response.uid before you decode the object, so that error responses have it, \
             too: kube-apiserver ignores a response with another uid or without one, and failurePolicy applies."
        }
        "apiVersion" | "kind" => {
            "Copy apiVersion and kind of the review to the response about an error, too: kube-apiserver ignores a \
             response with other values, and failurePolicy applies."
        }
        "allowed" => {
            "Set response.allowed to false in the response about an error, and state the error in \
             response.status.message."
        }
        _ => {
            "Answer with a complete review also if an error occurs: apiVersion and kind of the request's review, and a \
             response with the uid of the request, allowed: false, and a message."
        }
    }
}

/// Marks a violation as a response to an object that no API server sends. By default, it is then a note.
fn undecodable(violation: Violation, exchange: &Exchange) -> Violation {
    let review: Value = serde_json::from_slice(&exchange.review).unwrap_or_default();
    violation
        .with_sent(review.pointer(sent_object(&review)).cloned())
        .with_severity(Severity::Note)
        .with_why(
            "kube-apiserver validates the type of metadata before it calls webhooks, so it does not send this object. \
             The finding is therefore a note, or a warning if the webhook hangs or does not answer the next review. The same \
             code responds to objects that a webhook receives but cannot decode: a later Kubernetes release may \
             change a type, and a CustomResourceDefinition may allow other types. Without a complete response, \
             failurePolicy applies, and the client does not see the reason.",
        )
        .with_help(
            "Handle errors and exceptions in the handler, and answer with a complete review that has the uid of the \
             request, allowed: false, and a message.",
        )
}

/// Returns the review with an object, or `oldObject` on DELETE, whose fields have the wrong types.
pub(super) fn unreadable(review: &[u8]) -> Option<Bytes> {
    let mut review: Value = serde_json::from_slice(review).ok()?;
    let field = sent_object(&review);
    let object = review.pointer_mut(field)?.as_object_mut()?;
    object.insert("spec".to_owned(), 7.into());
    object.insert("data".to_owned(), 7.into());
    object.insert("metadata".to_owned(), "unreadable".into());
    serde_json::to_vec(&review).ok().map(Bytes::from)
}

/// Returns the JSON pointer to the object in a review: `oldObject` on DELETE.
fn sent_object(review: &Value) -> &'static str {
    if at(review, &["request", "object"]).is_null() { "/request/oldObject" } else { "/request/object" }
}

/// Returns a copy of the outcome with only `exchange`, so that the report shows it.
pub(super) fn with_exchange(outcome: &Arc<Outcome>, exchange: Exchange) -> Arc<Outcome> {
    Arc::new(Outcome {
        webhook_set: outcome.webhook_set.clone(),
        request: outcome.request.clone(),
        object: None,
        refusal: None,
        record: kubernetes_admission::event::Record::default(),
        exchanges: vec![exchange],
    })
}

fn violation(path: &Path, fault: Fault, outcome: &Arc<Outcome>) -> Violation {
    let Fault { kind, message, difference } = fault;
    Violation::new(format!("{kind} {}", path.kind), format!("{}, {message}", path.message))
        .with_differences(difference.into_iter().collect())
        .with_steps([Arc::clone(outcome)])
}

impl Fault {
    /// Creates the error for a `field` whose value should be `expected`.
    fn field(kind: &'static str, field: &str, found: &Value, expected: &str) -> Self {
        let found = Some(found).filter(|found| !found.is_null());
        let message = match found {
            None => format!("{field} is missing: must be {expected}"),
            Some(_) => format!("invalid {field}: must be {expected}"),
        };
        let difference =
            Difference { path: field.to_owned(), expected: Some(expected.into()), found: found.cloned() };
        Self { kind, message, difference: Some(difference) }
    }
}

/// Returns all errors in the body of a reply with HTTP status 200, or none for any other status.
///
/// Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, `VerifyAdmissionResponse`.
fn faults(review: &[u8], status: u16, body: &[u8]) -> Vec<Fault> {
    if status != 200 {
        return Vec::new();
    }
    let asked: Value = serde_json::from_slice(review).unwrap_or_default();
    let answer: Value = match serde_json::from_slice(body) {
        Ok(answer) => answer,
        Err(error) => {
            let message = format!("the body is not one JSON document: {error}");
            return vec![Fault { kind: "body", message, difference: None }];
        }
    };
    // The API server does not check these fields in v1beta1; V23 reports the ones that v1 would reject.
    let is_strict = *at(&asked, &["apiVersion"]) != "admission.k8s.io/v1beta1";
    let mut faults = Vec::new();
    for field in ["apiVersion", "kind"] {
        let (expected, found) = (at(&asked, &[field]), at(&answer, &[field]));
        if is_strict && found != expected {
            faults.push(Fault::field(field, field, found, &expected.to_string()));
        }
    }
    let Some(response) = answer.get("response").filter(|response| response.is_object()) else {
        faults.push(Fault::field("response", "response", at(&answer, &["response"]), "an object"));
        return faults;
    };
    let uid = at(&asked, &["request", "uid"]);
    if is_strict && response["uid"] != *uid {
        faults.push(Fault::field("uid", "response.uid", &response["uid"], "the uid of the request"));
    }
    if !response["allowed"].is_boolean() {
        faults.push(Fault::field("allowed", "response.allowed", &response["allowed"], "true or false"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(answer: &Value, expected: &[&str]) {
        check_in("v1", answer, expected);
    }

    #[track_caller]
    fn check_in(version: &str, answer: &Value, expected: &[&str]) {
        let api_version = format!("admission.k8s.io/{version}");
        let review = json!({"apiVersion": api_version, "kind": "AdmissionReview", "request": {"uid": "u"}});
        let faults = faults(review.to_string().as_bytes(), 200, answer.to_string().as_bytes());
        assert_eq!(faults.iter().map(|fault| fault.kind).collect::<Vec<_>>(), expected, "{faults:?}");
    }

    #[test]
    fn response_of_a_denial_is_attributed_to_the_denial() {
        let path = |allowed: Value| {
            path_of(json!({"response": {"allowed": allowed}}).to_string().as_bytes()).message
        };
        assert_eq!(path(false.into()), "when it denies the object");
        assert_eq!(path(true.into()), "when it allows the object");
        assert_eq!(path("true".into()), "in its response");
    }

    #[test]
    fn error_names_the_field_and_its_value() {
        let missing = Fault::field("uid", "response.uid", &Value::Null, "the uid of the request");
        assert_eq!(missing.message, "response.uid is missing: must be the uid of the request");
        let wrong = Fault::field("kind", "kind", &json!("Review"), "\"AdmissionReview\"");
        assert_eq!(wrong.message, "invalid kind: must be \"AdmissionReview\"");
        assert_eq!(wrong.difference.and_then(|it| it.found), Some(json!("Review")));
    }

    #[test]
    fn every_field_of_the_envelope_is_checked() {
        let around = |response: Value| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        check(&around(json!({"uid": "u", "allowed": false})), &[]);
        check(&around(json!({"uid": "U", "allowed": true})), &["uid"]);
        check(&around(json!({"uid": "u"})), &["allowed"]);
        check(&around(json!({"uid": "u", "allowed": "true"})), &["allowed"]);
        check(&around(Value::Null), &["response"]);
        check(&json!({"response": {"uid": "u", "allowed": true}}), &["apiVersion", "kind"]);
        check_in("v1beta1", &json!({"response": {"allowed": true}}), &[]);
        check_in("v1beta1", &json!({"response": {}}), &["allowed"]);
        let twice = b"{}{}";
        assert_eq!(faults(b"{}", 200, twice)[0].kind, "body");
        assert_eq!(faults(b"{}", 500, twice), Vec::new());
    }
}
