//! V25: a denial tells the user what to do.

use std::sync::Arc;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use super::said::{self, Said};
use super::v22_envelope::{retold, unreadable};
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V25",
    title: "denials: a message for people, an HTTP code of an error, and nothing of the webhook's inside",
    severity: Severity::Warning,
    why: "The message of a denial is all that the user sees, in kubectl, in events of controllers, in a pipeline's log. \
          Without one they read `denied the request without explanation`. A stack trace or a value of a Secret in it is \
          shown to whoever may create objects; a message that differs each time cannot be searched for, and makes \
          controllers write a new event on each try; a code below 400 is replaced.",
    source: "Dynamic Admission Control, Response; apiserver pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// What is in traces of programs and in no message for people.
const TRACES: [&str; 11] = [
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
/// A value of a Secret that is shorter may be in any message.
const SHORTEST_SECRET: usize = 8;

/// What is wrong: a kind, a sentence, and how bad it is.
type Fault = (&'static str, String, Severity);

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let said = Said::of(object_probe).await?;
    let mut violations = Vec::new();
    let mut looked = false;
    if *at(&said.response, &["allowed"]) != true {
        looked = true;
        let faults = faults(at(&said.response, &["status"]), &secrets(object_probe.object()));
        let steps = || [Arc::clone(&said.outcome)];
        violations.extend(faults.into_iter().map(|(kind, message, severity)| {
            Violation::new(kind, message).with_severity(severity).with_steps(steps())
        }));
        violations.extend(another_time(object_probe, &said).await);
    }
    // Where it cannot read the object, a trace is most likely.
    let Some(body) = said.outcome.exchanges.first().and_then(|exchange| unreadable(&exchange.review)) else {
        return Ok(violations);
    };
    let exchange = object_probe.environment.post(&object_probe.subject.called, body).await;
    let response = exchange.reply.as_ref().ok().and_then(said::response);
    if let Some(response) = response.filter(|response| *at(response, &["allowed"]) == false) {
        looked = true;
        let steps = [retold(&said.outcome, exchange)];
        let faults = faults(at(&response, &["status"]), &[]);
        violations.extend(faults.into_iter().map(|(kind, message, severity)| {
            let kind = format!("{kind} when it cannot read the object");
            Violation::new(kind, message).with_severity(severity).with_steps(steps.clone())
        }));
    }
    if looked {
        Ok(violations)
    } else {
        Err(Obstacle::not_applicable("it denies neither the object nor one that cannot be read"))
    }
}

/// Whether the same request is denied with another message.
async fn another_time(object_probe: &ObjectProbe<'_>, said: &Said) -> Option<Violation> {
    let again = object_probe.outcome_anew(&object_probe.alone(), object_probe.request).await;
    let reply = again.exchanges.first()?.reply.as_ref().ok()?;
    let response = said::response(reply)?;
    let message = |response: &Value| text(response, &["status", "message"]).to_owned();
    let (one, other) = (message(&said.response), message(&response));
    if *at(&response, &["allowed"]) == true || one == other {
        return None;
    }
    let text = format!("the same request is denied with another message: {one:?}, {other:?}");
    let steps = [Arc::clone(&said.outcome), again];
    Some(Violation::new("another message each time", text).with_severity(Severity::Note).with_steps(steps))
}

fn faults(status: &Value, secrets: &[String]) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    let message = status["message"].as_str().unwrap_or_default();
    match (message.trim().is_empty(), status["reason"].as_str().is_some_and(|reason| !reason.is_empty())) {
        (true, false) => {
            let text = "it denies without a message: the user reads `denied the request without explanation`";
            faults.push(("no message", text.to_owned(), Severity::Warning));
        }
        (true, true) => {
            let text = "it denies with a reason and no message: the user reads the reason's word alone";
            faults.push(("no message", text.to_owned(), Severity::Note));
        }
        (false, _) => {}
    }
    if let Some(code) = status.get("code").filter(|code| !code.is_null() && **code != 0)
        && !code.as_i64().is_some_and(|code| (400..600).contains(&code))
    {
        let text = format!("its code is {code}, and a denial has one from 400 to 599");
        faults.push(("code", text, Severity::Warning));
    }
    if status["status"] == "Success" {
        let text = "its status says Success, and it denies".to_owned();
        faults.push(("status", text, Severity::Warning));
    }
    if let Some(trace) = TRACES.iter().find(|trace| message.contains(**trace)) {
        let text = format!("its message looks like a stack trace: it contains {trace:?}");
        faults.push(("stack trace", text, Severity::Warning));
    }
    if secrets.iter().any(|secret| message.contains(secret)) {
        let text = "its message contains a value of the Secret that it denies".to_owned();
        faults.push(("tells a secret", text, Severity::Error));
    }
    faults
}

/// The values of a Secret, as they stand in it and decoded.
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
    all.filter(|value| value.len() >= SHORTEST_SECRET).collect()
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
    fn a_denial_has_a_message_and_a_code_of_an_error() {
        check(&json!({"message": "set spec.hostNetwork to false", "code": 403}), &[]);
        check(&json!({"message": "set spec.hostNetwork to false"}), &[]);
        check(&Value::Null, &["no message"]);
        check(&json!({"reason": "Forbidden"}), &["no message"]);
        check(&json!({"message": "no", "code": 200, "status": "Success"}), &["code", "status"]);
        check(&json!({"message": "no", "code": 799}), &["code"]);
    }

    #[test]
    fn nothing_of_the_inside_is_told() {
        check(
            &json!({"message": "runtime error: index out of range\n\ngoroutine 7 [running]:"}),
            &["stack trace"],
        );
        check(&json!({"message": "hunter2-the-second is too short a password"}), &["tells a secret"]);
        check(&json!({"message": "aHVudGVyMi10aGUtc2Vjb25k is no password"}), &["tells a secret"]);
    }
}
