//! V57: the defaults of a configuration are intended.

use kubernetes_admission::config::{self, FailurePolicy};
use kubernetes_admission::event::Phase;
use serde_json::Value;

use crate::check::{Audience, Check, Probe, Repeatability, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V57",
    title: "explicit defaults: failurePolicy is set, v1 is listed, and the defaults of omitted fields are \
            intended",
    severity: Severity::Warning,
    why: "An omitted field has a default: failurePolicy Fail, timeoutSeconds 10, matchPolicy Equivalent, \
          reinvocationPolicy Never. Whether writes succeed while a webhook is down should be a deliberate \
          decision. A webhook that does not accept v1 AdmissionReviews works only until v1beta1 is removed.",
    help: "Set failurePolicy, and list v1 in admissionReviewVersions.",
    source: "Dynamic Admission Control, Webhook configuration; kubernetes \
             pkg/apis/admissionregistration/v1/defaults.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(|subject, _| Ok(run(subject))),
};

/// The fields whose defaults affect requests, except `failurePolicy`, which has a separate message.
const DEFAULTED: [&str; 3] = ["matchPolicy", "timeoutSeconds", "reinvocationPolicy"];

fn run(subject: &Subject) -> Vec<Violation> {
    let mut violations = Vec::new();
    let written = subject.declaration();
    let is_left_out = |field: &str| written.get(field).is_none_or(Value::is_null);
    if is_left_out("failurePolicy") {
        let message = match subject.webhook.failure_policy {
            FailurePolicy::Fail => {
                "failurePolicy is not set and defaults to Fail: matching requests are rejected while the \
                 webhook is down"
            }
            FailurePolicy::Ignore => "failurePolicy is not set and defaults to Ignore",
        };
        let violation = Violation::new("failurePolicy is not set", message);
        violations.push(
            violation
                .with_severity(Severity::Note)
                .at("failurePolicy")
                .with_help("Set failurePolicy to Fail or Ignore."),
        );
    }
    if !subject.webhook.admission_review_versions.iter().any(|version| version == "v1") {
        let message = format!(
            "admissionReviewVersions is {}: without v1, the webhook receives an AdmissionReview that is \
             deprecated since 1.19",
            subject.webhook.admission_review_versions.join(", ")
        );
        let violation = Violation::new("v1 is not listed", message).at("admissionReviewVersions");
        violations.push(violation.with_help("Support v1, and list it in admissionReviewVersions."));
    }
    let mut stored = (*subject.configuration).clone();
    config::set_defaults(&mut stored);
    let stored = subject.entry_of(&stored);
    let effective: Vec<String> = DEFAULTED
        .into_iter()
        .filter(|field| {
            is_left_out(field) && (*field != "reinvocationPolicy" || subject.webhook.phase == Phase::Mutating)
        })
        .map(|field| format!("{field}: {}", stored[field]).replace('"', ""))
        .collect();
    if !effective.is_empty() {
        let message = format!("omitted fields have the defaults {}", effective.join(", "));
        let violation = Violation::new("defaults", message).with_severity(Severity::Note);
        violations.push(violation.with_help(
            "Set the fields for which the default is not intended; otherwise no change is needed.",
        ));
    }
    violations
}
