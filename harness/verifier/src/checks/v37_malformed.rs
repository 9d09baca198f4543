//! V37: a webhook rejects malformed input and keeps working.

use std::sync::Arc;

use admission_webhook_client::DirectRequest;
use bytes::Bytes;
use http::Method;
use kubernetes_admission::caller::{CallError, Reply};
use kubernetes_types::json::{at, set};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::typical_request::{self, TypicalRequest};
use super::v22_envelope::with_exchange;
use super::webhook_response;
use crate::call_recorder::{Direct, Exchange, JSON};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::object_probe::Memory;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V37",
    title: "malformed input: the webhook rejects it with a 4xx or a denial, and answers the next review as \
            before",
    severity: Severity::Warning,
    why: "Any client that reaches the port can send anything: a scanner, the health check of a load balancer, or \
          curl. A webhook that panics, hangs, or allows input that it could not read will do the same on the first \
          review that a future version encodes differently. If its process exits and failurePolicy is Fail, every \
          write that it matches fails until it restarts. Because no API server sends these inputs, a finding about \
          the response to such an input is a note. If the webhook hangs or responds differently afterward, the finding is a \
          warning; if it no longer responds, it is an error.",
    help: "Return status 400 for a body that you cannot decode, and handle all errors and panics in the handler.",
    source: "kubernetes-sigs/controller-runtime pkg/webhook/admission/http.go, which answers 200 with a \
             review that \
             says 400, which is equivalent; Go net/http, which closes the connection when a handler panics",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// The kind of the finding about the responses to all malformed inputs.
const MALFORMED: &str = "accepts or fails on malformed input";

/// The kind of a fault whose message contains the HTTP status of the response.
const HTTP_STATUS: &str = "HTTP status";

/// Malformed input, or a review that is sent in an incorrect way.
struct Malformed {
    what: &'static str,
    method: Method,
    content_type: &'static str,
    body: Option<Bytes>,
    /// Whether a response with status 200 must deny the request.
    must_deny: bool,
}

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let typical = TypicalRequest::new(webhook_probe, webhook_probe.subject).await?;
    // A response that varies anyway cannot show an effect of the input.
    let mut is_stable = change(webhook_probe, &typical, &*ask(webhook_probe, &typical).await).is_none();
    let mut violations = Vec::new();
    let mut faults = Vec::new();
    let mut exchanges = Vec::new();
    for malformed in malformed(&typical.review) {
        let what = malformed.what;
        let (exchange, fault) = send(webhook_probe, &malformed).await;
        if let Some(fault) = fault {
            faults.push((what, fault));
            exchanges.push(with_exchange(&typical.outcome, exchange));
        }
        let after = ask(webhook_probe, &typical).await;
        if let Verdict::Failed(reason) = after.verdict() {
            let message = format!("after {what}, the webhook no longer returns a valid response: {reason}");
            let violation = Violation::new(format!("stops responding after {what}"), message);
            violations.push(violation.with_severity(Severity::Error).with_steps([after]));
            break;
        }
        if is_stable && let Some(change) = change(webhook_probe, &typical, &after) {
            let message = format!("after {what}, {change}");
            let steps = [Arc::clone(&typical.outcome), after];
            violations.push(
                Violation::new(format!("responds differently after {what}"), message).with_steps(steps),
            );
            // The difference may be permanent, so later inputs are not compared.
            is_stable = false;
        }
    }
    let accepted = combined(&faults).map(|violation| violation.with_steps(exchanges));
    Ok(accepted.into_iter().chain(violations).collect())
}

/// Returns one violation for all inputs with an incorrect response, with the highest of their severities.
fn combined(faults: &[(&'static str, Fault)]) -> Option<Violation> {
    let severity = faults.iter().map(|(_, (_, _, severity))| *severity).max()?;
    let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for (what, (kind, text, _)) in faults {
        // The message about a failed connection may contain a port, which differs between calls.
        let is_same = |known: &str, other: &str| known == *kind && (*kind != HTTP_STATUS || other == text);
        match groups.iter_mut().find(|(known, other, _)| is_same(known, other)) {
            Some((_, _, inputs)) => inputs.push(what),
            None => groups.push((kind, text, vec![what])),
        }
    }
    let message =
        groups.iter().map(|(_, text, inputs)| format!("on malformed input ({}), {text}", inputs.join(", ")));
    let message = message.collect::<Vec<String>>().join("; ");
    Some(Violation::new(MALFORMED, message).with_severity(severity))
}

fn malformed(review: &Bytes) -> Vec<Malformed> {
    let body = |what, body: Bytes, must_deny| Malformed {
        what,
        method: Method::POST,
        content_type: JSON,
        body: Some(body),
        must_deny,
    };
    let text = |value: &Value| Bytes::from(value.to_string());
    let envelope: Value = serde_json::from_slice(review).unwrap_or_default();
    let (api_version, kind) = (at(&envelope, &["apiVersion"]), at(&envelope, &["kind"]));
    let mut unknown = envelope.clone();
    set(&mut unknown, &["apiVersion"], "admission.k8s.io/v0admit");
    let other =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}});
    vec![
        body("text that is not JSON", Bytes::from_static(b"this is no JSON"), true),
        body("an empty body", Bytes::new(), true),
        body("a truncated review", review.slice(..review.len() / 2), true),
        body("an object of another kind", text(&other), true),
        body("a review without a request", text(&json!({"apiVersion": api_version, "kind": kind})), true),
        // V23 checks whether the webhook denies this review.
        body("a review of an unknown version", text(&unknown), false),
        Malformed { what: "a GET", method: Method::GET, content_type: "", body: None, must_deny: false },
        Malformed {
            content_type: "text/plain",
            ..body("a review with another Content-Type", review.clone(), false)
        },
    ]
}

/// The kind of an error, a part of a sentence about it, and its severity.
type Fault = (&'static str, String, Severity);

async fn send(webhook_probe: &WebhookProbe<'_>, malformed: &Malformed) -> (Exchange, Option<Fault>) {
    let webhook = &webhook_probe.subject.called;
    let content_type = malformed.content_type;
    let started = Instant::now();
    let reply = webhook_probe
        .environment
        .send(DirectRequest {
            client_config: &webhook.client_config,
            phase: webhook.phase,
            method: malformed.method.clone(),
            content_type,
            body: malformed.body.clone(),
            timeout: webhook.timeout,
            patience: webhook.timeout,
        })
        .await;
    let fault = judge(&reply, &malformed.method, malformed.must_deny);
    let review = malformed.body.clone().unwrap_or_default();
    let direct = Direct { webhook: Arc::clone(&webhook.id), method: malformed.method.clone(), content_type };
    let (took, redirects_and_retries) = (started.elapsed(), Vec::new());
    (
        Exchange {
            review,
            reply,
            took,
            redirects_and_retries,
            is_other_webhook: false,
            direct: Some(direct),
        },
        fault,
    )
}

fn judge(reply: &Result<Reply, CallError>, method: &Method, must_deny: bool) -> Option<Fault> {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) if typical_request::is_late(error) => {
            return Some(("hangs", format!("the webhook does not respond: {error}"), Severity::Warning));
        }
        Err(error) => {
            let text = format!("the webhook closes the connection, as after a panic: {error}");
            return Some(("closes the connection", text, Severity::Note));
        }
    };
    let status = reply.status;
    match status {
        // The status for a method that a server does not support, as from Python's http.server.
        501 if method == Method::GET => None,
        500.. => {
            let text = format!("the webhook returns HTTP status {status} instead of a 4xx");
            Some((HTTP_STATUS, text, Severity::Note))
        }
        200..=299 if must_deny => {
            let response = webhook_response::response(reply);
            match response.map(|response| at(&response, &["allowed"]).as_bool()) {
                Some(Some(true)) => Some((
                    "allows",
                    "the webhook allows what it cannot have understood".to_owned(),
                    Severity::Note,
                )),
                Some(Some(false)) => None,
                Some(None) | None => {
                    let text = format!(
                        "the webhook returns HTTP status {status} without a review that \
                                        denies the request"
                    );
                    Some((HTTP_STATUS, text, Severity::Note))
                }
            }
        }
        _ => None,
    }
}

async fn ask(webhook_probe: &WebhookProbe<'_>, typical: &TypicalRequest<'_>) -> Arc<Outcome> {
    Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), typical.request).await)
}

/// Describes how a response differs from the typical response; returns `None` if it does not differ.
fn change(webhook_probe: &WebhookProbe<'_>, typical: &TypicalRequest<'_>, found: &Outcome) -> Option<String> {
    let expected = &typical.outcome;
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (before, after) = (expected.verdict(), found.verdict());
        return Some(format!("the same request gets different responses: `{before}`, then `{after}`"));
    }
    let memory = Memory::default();
    let object_probe = webhook_probe.object_probe(typical.request, &memory);
    let differences =
        object_probe.differences(expected.object.as_ref()?, found.object.as_ref()?, Order::Counts);
    (!differences.is_empty())
        .then(|| format!("the same object gets a different result: {}", super::fields(&differences)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: Option<(&str, Severity)>) {
        check_method(&Method::POST, status, body, expected);
    }

    #[track_caller]
    fn check_method(method: &Method, status: u16, body: &str, expected: Option<(&str, Severity)>) {
        let reply = Reply { status, content_type: None, body: Bytes::copy_from_slice(body.as_bytes()) };
        let fault = judge(&Ok(reply), method, true);
        assert_eq!(fault.map(|(kind, _, severity)| (kind, severity)), expected, "{status} {body}");
    }

    #[test]
    fn rejection_is_a_4xx_or_a_denying_review() {
        check(400, "what is this?", None);
        check(404, "", None);
        check_method(&Method::GET, 501, "Unsupported method ('GET')", None);
        check(501, "", Some(("HTTP status", Severity::Note)));
        check(200, r#"{"response": {"uid": "", "allowed": false, "status": {"code": 400}}}"#, None);
        check(200, r#"{"response": {"allowed": true}}"#, Some(("allows", Severity::Note)));
        check(200, "ok", Some(("HTTP status", Severity::Note)));
        check(500, "", Some(("HTTP status", Severity::Note)));
    }

    #[test]
    fn all_inputs_are_one_finding() {
        let fault = |kind, severity| (kind, format!("the webhook {kind} it"), severity);
        let faults = [
            ("text", fault("allows", Severity::Note)),
            ("an empty body", fault("hangs", Severity::Warning)),
            ("a truncated review", fault("allows", Severity::Note)),
            ("a GET", fault("allows", Severity::Note)),
        ];
        let violation = combined(&faults).unwrap();
        assert_eq!((violation.kind.as_str(), violation.severity), (MALFORMED, Some(Severity::Warning)));
        let expected = "on malformed input (text, a truncated review, a GET), the webhook allows it; on malformed input \
                        (an empty body), the webhook hangs it";
        assert_eq!(violation.message, expected);
        assert!(combined(&[]).is_none());
    }

    #[test]
    fn each_http_status_is_reported_with_its_inputs() {
        let fault = |status: u16| (HTTP_STATUS, format!("the webhook returns {status}"), Severity::Note);
        let faults = [("text", fault(500)), ("an empty body", fault(502)), ("a GET", fault(500))];
        let expected = "on malformed input (text, a GET), the webhook returns 500; on malformed input (an empty body), the webhook \
             returns 502";
        assert_eq!(combined(&faults).unwrap().message, expected);
    }

    #[test]
    fn missing_response_is_a_timeout_or_a_panic() {
        for (text, expected) in [
            ("Post \"u\": EOF", ("closes the connection", Severity::Note)),
            ("Post \"u\": context deadline exceeded", ("hangs", Severity::Warning)),
        ] {
            let fault = judge(&Err(CallError::Transport(text.to_owned())), &Method::POST, false);
            assert_eq!(fault.map(|(kind, _, severity)| (kind, severity)), Some(expected));
        }
    }
}
