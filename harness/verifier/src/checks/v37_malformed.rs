//! V37: what is no review is refused, and nothing comes of it.

use std::sync::Arc;

use admission_webhook_client::DirectRequest;
use bytes::Bytes;
use http::Method;
use kubernetes_admission::caller::{CallError, Reply};
use kubernetes_types::json::{at, set};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::said;
use super::usual::{self, Usual};
use super::v22_envelope::retold;
use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::line::{Direct, Exchange, JSON};
use crate::object_probe::Memory;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V37",
    title: "malformed input: refused with a 4xx or a denial, and the next review is answered as before",
    severity: Severity::Warning,
    why: "Anybody who reaches the port can send anything: scanners, health checks of load balancers, a person with curl. \
          A webhook that panics there, hangs, or lets something pass that it could not read, fails the same way on the \
          first review that a future version writes otherwise; and if its process ends, every write that it matches \
          fails until it is back.",
    source: "kubernetes-sigs/controller-runtime pkg/webhook/admission/http.go, which answers 200 with a review that \
             says 400: that is as good; Go net/http, which closes the connection when a handler panics",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// Something that is no review, or does not come as one.
struct Malformed {
    what: &'static str,
    method: Method,
    content_type: &'static str,
    body: Option<Bytes>,
    /// How bad it is to answer that with 200 and without a denial; none if it is right.
    pass: Option<Severity>,
}

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let usual = Usual::of(webhook_probe, webhook_probe.subject).await?;
    // What differs anyway says nothing about what came between.
    let mut is_stable = change(webhook_probe, &usual, &*ask(webhook_probe, &usual).await).is_none();
    let mut violations = Vec::new();
    for malformed in malformed(&usual.review) {
        let what = malformed.what;
        let (exchange, fault) = send(webhook_probe, &malformed).await;
        if let Some((kind, text, severity)) = fault {
            let violation = Violation::new(format!("{kind} on {what}"), format!("on {what} {text}"));
            let steps = [retold(&usual.outcome, exchange)];
            violations.push(violation.with_severity(severity).with_steps(steps));
        }
        let after = ask(webhook_probe, &usual).await;
        if let Verdict::Failed(reason) = after.verdict() {
            let message = format!("after {what} it gives no valid answer any more: {reason}");
            let violation = Violation::new(format!("does not survive {what}"), message);
            violations.push(violation.with_severity(Severity::Error).with_steps([after]));
            break;
        }
        if is_stable && let Some(change) = change(webhook_probe, &usual, &after) {
            let message = format!("after {what} {change}");
            let steps = [Arc::clone(&usual.outcome), after];
            violations
                .push(Violation::new(format!("answers otherwise after {what}"), message).with_steps(steps));
            // It may have come to stay.
            is_stable = false;
        }
    }
    Ok(violations)
}

fn malformed(review: &Bytes) -> Vec<Malformed> {
    let body = |what, body: Bytes, pass| Malformed {
        what,
        method: Method::POST,
        content_type: JSON,
        body: Some(body),
        pass,
    };
    let text = |value: &Value| Bytes::from(value.to_string());
    let envelope: Value = serde_json::from_slice(review).unwrap_or_default();
    let (api_version, kind) = (at(&envelope, &["apiVersion"]), at(&envelope, &["kind"]));
    let mut unknown = envelope.clone();
    set(&mut unknown, &["apiVersion"], "admission.k8s.io/v0admit");
    let other =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}});
    let unreadable = Some(Severity::Warning);
    vec![
        body("a text that is no JSON", Bytes::from_static(b"this is no JSON"), unreadable),
        body("an empty body", Bytes::new(), unreadable),
        body("a review that is cut off", review.slice(..review.len() / 2), unreadable),
        body("an object of another kind", text(&other), unreadable),
        // No API server sends that, and a framework that decodes it hands it on.
        body(
            "a review without a request",
            text(&json!({"apiVersion": api_version, "kind": kind})),
            Some(Severity::Note),
        ),
        // Whether it is refused is V23's.
        body("a review of an unknown version", text(&unknown), None),
        Malformed { what: "a GET", method: Method::GET, content_type: "", body: None, pass: None },
        Malformed {
            content_type: "text/plain",
            ..body("a review with another Content-Type", review.clone(), None)
        },
    ]
}

/// What is wrong: a kind, a part of a sentence, and how bad it is.
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
    let fault = judge(&reply, malformed.pass);
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

fn judge(reply: &Result<Reply, CallError>, pass: Option<Severity>) -> Option<Fault> {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) if usual::is_late(error) => {
            return Some(("hangs", format!("it never answers: {error}"), Severity::Warning));
        }
        Err(error) => {
            let text = format!("it ends the connection, as one does that panics: {error}");
            return Some(("gives no answer", text, Severity::Warning));
        }
    };
    let status = reply.status;
    match status {
        500.. => {
            let text = format!("it says that the fault is its own: HTTP status {status} instead of a 4xx");
            Some(("HTTP status", text, Severity::Note))
        }
        200..=299 => {
            let severity = pass?;
            let response = said::response(reply);
            match response.map(|response| at(&response, &["allowed"]).as_bool()) {
                Some(Some(true)) => {
                    Some(("allows", "it allows what it cannot have understood".to_owned(), severity))
                }
                Some(Some(false)) => None,
                Some(None) | None => {
                    let text = format!("it answers with HTTP status {status} and no review that says no");
                    Some(("HTTP status", text, Severity::Note))
                }
            }
        }
        _ => None,
    }
}

async fn ask(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>) -> Arc<Outcome> {
    Arc::new(webhook_probe.environment.admit(&webhook_probe.alone(), usual.request).await)
}

/// How an answer differs from the usual one.
fn change(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>, found: &Outcome) -> Option<String> {
    let expected = &usual.outcome;
    if expected.refusal.is_some() != found.refusal.is_some() {
        let (before, after) = (expected.verdict(), found.verdict());
        return Some(format!("the same request is told something else: `{before}`, then `{after}`"));
    }
    let memory = Memory::default();
    let object_probe = webhook_probe.object_probe(usual.request, &memory);
    let differences =
        object_probe.differences(expected.object.as_ref()?, found.object.as_ref()?, Order::Counts);
    (!differences.is_empty())
        .then(|| format!("the same object comes out otherwise: {}", super::fields(&differences)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: Option<(&str, Severity)>) {
        let reply = Reply { status, content_type: None, body: Bytes::copy_from_slice(body.as_bytes()) };
        let fault = judge(&Ok(reply), Some(Severity::Warning));
        assert_eq!(fault.map(|(kind, _, severity)| (kind, severity)), expected, "{status} {body}");
    }

    #[test]
    fn a_refusal_is_a_4xx_or_a_review_that_says_no() {
        check(400, "what is this?", None);
        check(404, "", None);
        check(200, r#"{"response": {"uid": "", "allowed": false, "status": {"code": 400}}}"#, None);
        check(200, r#"{"response": {"allowed": true}}"#, Some(("allows", Severity::Warning)));
        check(200, "ok", Some(("HTTP status", Severity::Note)));
        check(500, "", Some(("HTTP status", Severity::Note)));
    }

    #[test]
    fn no_answer_is_a_hang_or_a_panic() {
        for (text, expected) in
            [("Post \"u\": EOF", "gives no answer"), ("Post \"u\": context deadline exceeded", "hangs")]
        {
            let fault = judge(&Err(CallError::Transport(text.to_owned())), None);
            assert_eq!(fault.map(|(kind, _, _)| kind), Some(expected));
        }
    }
}
