//! L06: the API server does not wait long for one webhook.

use std::time::Duration;

use kubernetes_admission::config::FailurePolicy;
use kubernetes_api_server::ClusterFixture;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "L06",
    title: "its timeout is no longer than the default of 10 s",
    severity: Severity::Warning,
    why: "While a webhook hangs, each request that it matches takes as long as its timeout, whatever its failurePolicy \
          is, and a webhook answers in milliseconds when it is well. Clients and controllers give up or queue long \
          before 30 s. How timeouts of several webhooks add up is V52's, leases are V50's.",
    source: "Admission Webhook Good Practices, Set a small timeout value; Dynamic Admission Control, Timeouts",
    audience: Audience::All,
    probe: Probe::Configuration(run),
};

/// The default of v1.
const LONG: Duration = Duration::from_secs(10);

fn run(subject: &Subject, _: &ClusterFixture) -> Observed {
    let webhook = &subject.webhook;
    if webhook.rules.is_empty() {
        return Err(Obstacle::not_applicable("it has no rules and is never called"));
    }
    if webhook.timeout <= LONG {
        return Ok(Vec::new());
    }
    let (severity, then) = match webhook.failure_policy {
        FailurePolicy::Fail => (Severity::Warning, "is refused"),
        FailurePolicy::Ignore => (Severity::Note, "goes on"),
    };
    let message = format!(
        "a request that it matches waits up to {} s for it before it {then}; the default is {} s, and less is better",
        webhook.timeout.as_secs(),
        LONG.as_secs()
    );
    Ok(vec![Violation::new("long timeout", message).with_severity(severity).at("timeoutSeconds")])
}
