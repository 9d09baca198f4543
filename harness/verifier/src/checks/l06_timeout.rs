//! L06: the timeout of one webhook is short.

use std::time::Duration;

use kubernetes_admission::config::FailurePolicy;
use kubernetes_api_server::ClusterFixture;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L06",
    title: "timeout length: timeoutSeconds is at most the default of 10 s",
    severity: Severity::Warning,
    why: "While a webhook hangs, each matching request takes as long as the timeout, whatever the \
          failurePolicy is; a healthy webhook responds in milliseconds. Clients and controllers give up or \
          queue long before 30 s. V52 checks how the timeouts of several webhooks add up; V50 checks leases.",
    help: "Set timeoutSeconds to 10 or less.",
    source: "Admission Webhook Good Practices, Set a small timeout value; Dynamic Admission Control, \
             Timeouts",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Configuration(run),
};

/// The maximum timeout without a finding: the default timeout of v1.
const LONG: Duration = Duration::from_secs(10);

fn run(subject: &Subject, _: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Skipped::not_applicable("the webhook has no rules and is never called"));
    }
    if webhook.timeout <= LONG {
        return Ok(Vec::new());
    }
    let (severity, then) = match webhook.failure_policy {
        FailurePolicy::Fail => (Severity::Warning, "is rejected"),
        FailurePolicy::Ignore => (Severity::Note, "continues"),
    };
    let message = format!(
        "a matching request waits up to {} s before it {then}; the default is {} s, and less is better",
        webhook.timeout.as_secs(),
        LONG.as_secs()
    );
    Ok(vec![Violation::new("long timeout", message).with_severity(severity).at("timeoutSeconds")])
}
