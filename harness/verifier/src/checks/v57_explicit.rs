//! V57: what a configuration leaves to defaults is known.

use kubernetes_admission::config::{self, FailurePolicy};
use kubernetes_admission::event::Phase;
use serde_json::Value;

use crate::check::{Audience, Check, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V57",
    title: "explicit: it says its failurePolicy, lists v1, and what it leaves to defaults is what was meant",
    severity: Severity::Warning,
    why: "A field that is not there has a value all the same: failurePolicy is then Fail, timeoutSeconds 10, matchPolicy \
          Equivalent, reinvocationPolicy Never. Whether writes go on while a webhook is down should be somebody's \
          decision; and a webhook that takes no AdmissionReview of v1 works only until v1beta1 is gone.",
    source: "Dynamic Admission Control, Webhook configuration; kubernetes \
             pkg/apis/admissionregistration/v1/defaults.go",
    audience: Audience::All,
    probe: Probe::Configuration(|subject, _| Ok(run(subject))),
};

/// Fields with a default that changes what happens to requests, beside failurePolicy, of which more is said.
const DEFAULTED: [&str; 3] = ["matchPolicy", "timeoutSeconds", "reinvocationPolicy"];

fn run(subject: &Subject) -> Vec<Violation> {
    let mut violations = Vec::new();
    let written = subject.declaration();
    let is_left_out = |field: &str| written.get(field).is_none_or(Value::is_null);
    if is_left_out("failurePolicy") {
        let message = match subject.webhook.failure_policy {
            FailurePolicy::Fail => {
                "failurePolicy is not set, so it is Fail: what the webhook matches is refused while it is down"
            }
            FailurePolicy::Ignore => "failurePolicy is not set, so it is Ignore",
        };
        let violation = Violation::new("failurePolicy is left to the default", message);
        violations.push(violation.with_severity(Severity::Note).at("failurePolicy"));
    }
    if !subject.webhook.admission_review_versions.iter().any(|version| version == "v1") {
        let message = format!(
            "admissionReviewVersions is {}: without v1 it gets an AdmissionReview that is deprecated since 1.19",
            subject.webhook.admission_review_versions.join(", ")
        );
        violations.push(Violation::new("v1 is not listed", message).at("admissionReviewVersions"));
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
        let message = format!("the API server fills in {}", effective.join(", "));
        violations.push(Violation::new("defaults", message).with_severity(Severity::Note));
    }
    violations
}
