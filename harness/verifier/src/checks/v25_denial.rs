//! V25: a denial tells the user what to do.

use std::sync::Arc;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::v22_envelope::{unreadable, with_exchange};
use super::webhook_response::{self, WebhookResponse};
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V25",
    title: "denial messages: a denial has a readable message, an HTTP error code, and no internals",
    severity: Severity::Warning,
    why: "The message of a denial is all that the user sees: in kubectl, in the events of controllers, in a \
          pipeline's log. Without one, the user reads `denied the request without explanation`. A stack \
          trace or a Secret's value in the message is visible to everyone who may create objects. A message \
          that differs each time cannot be searched for and makes controllers write a new event on each \
          try. kube-apiserver replaces a code below 400.",
    help: "State in status.message which field is wrong and what is expected, and set a code from 400 to \
           599.",
    source: "Dynamic Admission Control, Response; apiserver \
             pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The reason for a run without a denial.
const NO_DENIAL: &str = "the webhook denied no object";

/// Strings that occur in stack traces but not in messages for users.
const STACK_TRACE_MARKERS: [&str; 11] = [
    "goroutine ",
    "runtime error:",
    "Traceback (most recent call last)",
    "stack backtrace:",
    "panicked at",
    "\n    at ",
    "\n\tat ",
    "\tat java.",
    "Exception in thread",
    "node_modules/",
    "RUST_BACKTRACE",
];
/// The minimum length of the Secret values to search for, because shorter values occur by chance.
const MIN_SECRET_LENGTH: usize = 8;

/// The kind, the message, and the severity of an error.
type Fault = (&'static str, String, Severity);

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::to_creation(object_probe).await?;
    let mut violations = Vec::new();
    let mut tested = false;
    if *at(&webhook_response.response, &["allowed"]) != true {
        tested = true;
        let deleted = object_probe.request.old_object.as_ref();
        let sent = object_probe.request.object.as_ref().or(deleted).unwrap_or(&Value::Null);
        let faults = faults(at(&webhook_response.response, &["status"]), &secrets(sent));
        let steps = || [Arc::clone(&webhook_response.outcome)];
        violations.extend(faults.into_iter().map(|(kind, message, severity)| {
            Violation::new(kind, message).with_severity(severity).with_steps(steps())
        }));
        violations.extend(another_time(object_probe, &webhook_response).await);
    }
    // A stack trace is most likely when the webhook cannot decode the object.
    let Some(body) =
        webhook_response.outcome.exchanges.first().and_then(|exchange| unreadable(&exchange.review))
    else {
        return Ok(violations);
    };
    let exchange = object_probe.environment.post(&object_probe.subject.called, body).await;
    let response = exchange.reply.as_ref().ok().and_then(webhook_response::response);
    if let Some(response) = response.filter(|response| *at(response, &["allowed"]) == false) {
        tested = true;
        let steps = [with_exchange(&webhook_response.outcome, exchange)];
        let faults = faults(at(&response, &["status"]), &[]);
        violations.extend(faults.into_iter().map(|(kind, message, severity)| {
            let kind = format!("{kind} when it cannot decode the object");
            Violation::new(kind, message).with_severity(severity).with_steps(steps.clone())
        }));
    }
    if tested { Ok(violations) } else { Err(Skipped::not_exercised(NO_DENIAL)) }
}

/// Reports a webhook that denies the same request with a different message each time.
async fn another_time(
    object_probe: &ObjectProbe<'_>,
    webhook_response: &WebhookResponse,
) -> Option<Violation> {
    let again = object_probe.outcome_again(&object_probe.alone(), object_probe.request).await;
    let reply = again.exchanges.first()?.reply.as_ref().ok()?;
    let response = webhook_response::response(reply)?;
    let message = |response: &Value| text(response, &["status", "message"]).to_owned();
    let (one, other) = (message(&webhook_response.response), message(&response));
    if *at(&response, &["allowed"]) == true || one == other {
        return None;
    }
    let text = format!("the same request is denied with different messages: {one:?}, {other:?}");
    let steps = [Arc::clone(&webhook_response.outcome), again];
    let violation = Violation::new("message varies", text).with_severity(Severity::Note).with_steps(steps);
    Some(violation.with_help("Omit times and random values from status.message, and sort the lists in it."))
}

fn faults(status: &Value, secrets: &[String]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    let message = status["message"].as_str().unwrap_or_default();
    match (message.trim().is_empty(), status["reason"].as_str().is_some_and(|reason| !reason.is_empty())) {
        (true, false) => {
            let text = "the denial has no message: the user reads `denied the request without explanation`";
            faults.push(("no message", text.to_owned(), Severity::Warning));
        }
        (true, true) => {
            let text = "the denial has a reason but no message: the user reads only the reason";
            faults.push(("no message", text.to_owned(), Severity::Note));
        }
        (false, _) => {}
    }
    if let Some(code) = status.get("code").filter(|code| !code.is_null() && **code != 0)
        && !code.as_i64().is_some_and(|code| (400..600).contains(&code))
    {
        let text = format!("invalid code {code}: must be 400 to 599");
        faults.push(("code", text, Severity::Warning));
    }
    if status["status"] == "Success" {
        let text = "the status of the denial is Success".to_owned();
        faults.push(("status", text, Severity::Warning));
    }
    if let Some(trace) = STACK_TRACE_MARKERS.iter().find(|trace| message.contains(**trace)) {
        let text = format!("the message looks like a stack trace: it contains {trace:?}");
        faults.push(("stack trace", text, Severity::Warning));
    }
    if secrets.iter().any(|secret| message.contains(secret)) {
        let text = "the message contains a value of the denied Secret".to_owned();
        faults.push(("reveals a secret", text, Severity::Error));
    }
    faults
}

/// Returns the values of a Secret, both encoded and decoded.
fn secrets(object: &Value) -> Vec<String> {
    use base64::Engine as _;
    if object["kind"] != "Secret" {
        return Vec::new();
    }
    let values = ["data", "stringData"].into_iter().flat_map(|field| {
        object[field].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str())
    });
    let decode = |text: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
        String::from_utf8(bytes).ok()
    };
    let all = values.flat_map(|value| [Some(value.to_owned()), decode(value)]).flatten();
    all.filter(|value| value.len() >= MIN_SECRET_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: &Value, expected: &[&str]) {
        let secret = json!({"kind": "Secret", "data": {"password": "aHVudGVyMi10aGUtc2Vjb25k"}});
        let faults = faults(status, &secrets(&secret));
        assert_eq!(faults.iter().map(|(kind, _, _)| *kind).collect::<Vec<_>>(), expected, "{status}");
    }

    #[test]
    fn denial_needs_a_message_and_an_error_code() {
        check(&json!({"message": "set spec.hostNetwork to false", "code": 403}), &[]);
        check(&json!({"message": "set spec.hostNetwork to false"}), &[]);
        check(&Value::Null, &["no message"]);
        check(&json!({"reason": "Forbidden"}), &["no message"]);
        check(&json!({"message": "no", "code": 200, "status": "Success"}), &["code", "status"]);
        check(&json!({"message": "no", "code": 799}), &["code"]);
    }

    #[test]
    fn stack_traces_and_secrets_are_reported() {
        check(
            &json!({"message": "runtime error: index out of range\n\ngoroutine 7 [running]:"}),
            &["stack trace"],
        );
        check(&json!({"message": "hunter2-the-second is too short a password"}), &["reveals a secret"]);
        check(&json!({"message": "aHVudGVyMi10aGUtc2Vjb25k is no password"}), &["reveals a secret"]);
    }
}
