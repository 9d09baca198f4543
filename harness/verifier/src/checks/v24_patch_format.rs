//! V24: a patch has the format that the API defines.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_admission::event::Phase;
use serde_json::Value;

use super::webhook_response::WebhookResponse;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::exercised::NEVER_CHANGED;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V24",
    title: "patch format: patch and patchType are set together, JSONPatch, standard base64, and only by \
            mutating webhooks",
    severity: Severity::Error,
    why: "kube-apiserver rejects a patch without patchType, a patchType without a patch, any type other \
          than JSONPatch, base64 without padding or in the URL alphabet, and any patch from a validating \
          webhook. failurePolicy then applies, and with Ignore the change is missing without an error. \
          kube-apiserver currently accepts line breaks in base64, and lists of numbers instead of a string, \
          but the API does not define them.",
    help: "Return patchType: JSONPatch together with the patch as one standard base64 string.",
    source: "apiserver pkg/admission/plugin/webhook/request/admissionreview.go, VerifyAdmissionResponse; \
             admission.k8s.io/v1 types, patch: a []byte, which JSON has as standard base64",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The kind, the message, and the severity of an error.
type Fault = (&'static str, String, Severity);

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let webhook_response = WebhookResponse::to_creation(object_probe).await?;
    let phase = object_probe.subject.webhook.phase;
    let faults = faults(&webhook_response.response, phase);
    let has = |field: &str| webhook_response.response.get(field).is_some_and(|value| !value.is_null());
    if phase == Phase::Mutating && faults.is_empty() && !has("patch") {
        return Err(Skipped::not_exercised(NEVER_CHANGED));
    }
    let violation = |(kind, message, severity): Fault| {
        Violation::new(kind, message)
            .with_severity(severity)
            .with_steps([Arc::clone(&webhook_response.outcome)])
    };
    Ok(faults.into_iter().map(violation).collect())
}

fn faults(response: &Value, phase: Phase) -> Vec<Fault> {
    let given = |field: &str| response.get(field).filter(|value| !value.is_null());
    let (patch, patch_type) = (given("patch"), given("patchType"));
    let mut faults: Vec<Fault> = Vec::new();
    let mut fault = |kind, message: String, severity| faults.push((kind, message, severity));
    if patch.is_none() && patch_type.is_none() {
        return faults;
    }
    if phase == Phase::Validating {
        let message = "a validating webhook must not return a patch or a patchType".to_owned();
        fault("validating webhook patches", message, Severity::Error);
        return faults;
    }
    if response["allowed"] != true {
        let message = "the webhook denies the request and returns a patch, which is not applied".to_owned();
        fault("denial with a patch", message, Severity::Note);
    }
    match (patch, patch_type) {
        (Some(_), None) => {
            fault(
                "patch without patchType",
                "the webhook returns a patch without patchType".to_owned(),
                Severity::Error,
            );
        }
        (None, Some(_)) => {
            fault(
                "patchType without patch",
                "the webhook returns patchType without a patch".to_owned(),
                Severity::Error,
            );
        }
        (Some(_), Some(name)) if name != "JSONPatch" => {
            fault("patchType", format!("invalid patchType {name}: must be JSONPatch"), Severity::Error);
        }
        _ => {}
    }
    match patch {
        Some(Value::String(text)) if STANDARD.decode(text).is_ok() => {}
        Some(Value::String(text)) => {
            let unbroken: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
            if STANDARD.decode(unbroken).is_ok() {
                let message = "the base64 text of the patch has line breaks".to_owned();
                fault("base64 with line breaks", message, Severity::Note);
            } else {
                let message = "the patch is not standard base64 with padding".to_owned();
                fault("not base64", message, Severity::Error);
            }
        }
        Some(Value::Array(items))
            if items.iter().all(|item| item.as_u64().is_some_and(|byte| byte < 256)) =>
        {
            let message = "the patch is a list of numbers instead of a base64 string: kube-apiserver accepts it, but \
                 the API does not define it";
            fault("patch as numbers", message.to_owned(), Severity::Warning);
        }
        Some(_) => fault("not base64", "the patch is not base64".to_owned(), Severity::Error),
        None => {}
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(phase: Phase, fields: &Value, expected: &[&str]) {
        let mut response = json!({"uid": "u", "allowed": true});
        for (name, value) in fields.as_object().unwrap() {
            response[name] = value.clone();
        }
        let faults = faults(&response, phase);
        assert_eq!(faults.iter().map(|(kind, _, _)| *kind).collect::<Vec<_>>(), expected, "{response}");
    }

    #[test]
    fn only_the_documented_patch_format_is_valid() {
        let mutating = |fields: Value, expected: &[&str]| check(Phase::Mutating, &fields, expected);
        mutating(json!({}), &[]);
        mutating(json!({"patch": null, "patchType": null}), &[]);
        mutating(json!({"patch": "W10=", "patchType": "JSONPatch"}), &[]);
        mutating(json!({"patch": "W10="}), &["patch without patchType"]);
        mutating(json!({"patchType": "JSONPatch"}), &["patchType without patch"]);
        mutating(json!({"patch": "W10=", "patchType": "MergePatch"}), &["patchType"]);
        mutating(json!({"patch": "W10", "patchType": "JSONPatch"}), &["not base64"]);
        mutating(json!({"patch": "W1\n0=", "patchType": "JSONPatch"}), &["base64 with line breaks"]);
        mutating(json!({"patch": [91, 93], "patchType": "JSONPatch"}), &["patch as numbers"]);
        mutating(json!({"patch": [{"op": "add"}], "patchType": "JSONPatch"}), &["not base64"]);
        let denial = json!({"allowed": false, "patch": "W10=", "patchType": "JSONPatch"});
        mutating(denial, &["denial with a patch"]);
        check(Phase::Validating, &json!({"patchType": "JSONPatch"}), &["validating webhook patches"]);
    }
}
