//! Describes the steps about calls, audit events, metrics, and checks.

use super::super::{StepHelp, audit, metrics, then};

pub(super) const STEPS: &[StepHelp] = &[
    then(
        "{string} is called {times}",
        "The webhook received this many reviews during the last request: `once`, `twice`, or a number, as in `3 times`. A call that could not connect does not count",
        r#"Then "sidecar" is called twice"#,
    ),
    then(
        "{string} is not called",
        "The webhook was not called during the last request. The step fails if the request did not reach admission, or if the webhook is limited to other namespaces",
        r#"Then "sidecar" is not called"#,
    ),
    then(
        "the webhooks are called in the order {string}",
        "The webhooks received the reviews of the last request, of both rounds, in this order",
        r#"Then the webhooks are called in the order "labels, sidecar, labels""#,
    ),
    then(
        "the {ordinal} review sent to {string} contains:",
        "The AdmissionReview of this call contains all of this",
        r#"Then the second review sent to "sidecar" contains:
  """yaml
  request: {operation: UPDATE}
  """"#,
    ),
    then(
        "the {ordinal} review sent to {string} does not contain:",
        "The AdmissionReview of this call lacks at least one of these fields; the run prints which",
        r#"Then the second review sent to "sidecar" does not contain:
  """yaml
  request: {operation: UPDATE}
  """"#,
    ),
    then(
        "the {ordinal} review sent to {string} has the container {string}",
        "The object in the review has the container",
        r#"Then the second review sent to "labels" has the container "proxy""#,
    ),
    then(
        "the {ordinal} review sent to {string} does not have the container {string}",
        "The object in the review does not have the container",
        r#"Then the first review sent to "labels" does not have the container "proxy""#,
    ),
    then(
        "the audit log records that {string} changed the object in the {ordinal} round",
        "The annotation of the call has `mutated: true`",
        r#"Then the audit log records that "sidecar" changed the object in the first round"#,
    ),
    then(
        "the audit log records that {string} did not change the object in the {ordinal} round",
        "The annotation of the call has `mutated: false`",
        r#"Then the audit log records that "sidecar" did not change the object in the second round"#,
    ),
    then(
        "the audit log records that {string} was not called in the {ordinal} round",
        "The audit log has no annotation for a call of this mutating webhook in this round",
        r#"Then the audit log records that "sidecar" was not called in the second round"#,
    ),
    audit::PATCH,
    then(
        "the audit log records that {string} failed open",
        "The audit log has a failed-open annotation for this webhook",
        r#"Then the audit log records that "policy" failed open"#,
    ),
    then(
        "the audit log records that {string} failed open in the {ordinal} round",
        "The audit log has a failed-open annotation for this webhook and round",
        r#"Then the audit log records that "policy" failed open in the first round"#,
    ),
    then(
        "the audit log does not record that {string} failed open",
        "The audit log has no failed-open annotation for this webhook",
        r#"Then the audit log does not record that "policy" failed open"#,
    ),
    then(
        "the audit annotation {string} of {string} is {string}",
        "The webhook or the admission policy added this audit annotation",
        r#"Then the audit annotation "rule" of "policy" is "weekdays""#,
    ),
    metrics::COUNTS,
    then(
        "{string} is idempotent",
        "Check V01 passes for the representative objects of `admit verify`; admit calls the webhook itself on every target",
        r#"Then "sidecar" is idempotent"#,
    ),
    then(
        "{string} is idempotent for every {word} in the corpus",
        "Check V01 passes for all built-in objects of a kind, which takes longer",
        r#"Then "sidecar" is idempotent for every pod in the corpus"#,
    ),
    then(
        "{string} is not idempotent",
        "Check V01 reports a finding for a representative object of `admit verify`",
        r#"Then "sidecar" is not idempotent"#,
    ),
    then(
        "the check {word} passes for {string}",
        "A check of `admit verify --list` passes; admit calls the webhook itself on every target",
        r#"Then the check V02 passes for "sidecar""#,
    ),
    then(
        "the check {word} reports {string} for {string}",
        "A check of `admit verify --list` reports a finding that contains this text",
        r#"Then the check V01 reports "its own result" for "sidecar""#,
    ),
];
