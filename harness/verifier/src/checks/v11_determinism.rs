//! V11: the same request gets the same response.

use std::sync::Arc;

use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V11",
    title: "determinism: the same request gets the same response",
    severity: Severity::Error,
    why: "kube-apiserver resends a review after Retry-After and can call a webhook twice within one request, and \
          clients retry whole requests. A webhook that uses randomness or the current time yields a \
          different object each time, and its tests are not reliable. admit repeats a request within a second, so it \
          does not find a value that changes less often, such as the date.",
    help: "Derive values only from the object, and sort map keys before you write a patch.",
    source: "client-go rest/with_retry.go: a retry sends the same body; Dynamic Admission Control, \
             Idempotence",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

/// The kind of the violation of a webhook that sometimes allows a request and sometimes denies it.
const VERDICT_VARIES: &str = "verdict varies";

/// The kind of the violation of a webhook that changes an object in different ways.
const OBJECT_VARIES: &str = "not deterministic";

/// The kinds of violations after which responses to different requests cannot be compared.
pub(super) const VARIES: [&str; 2] = [VERDICT_VARIES, OBJECT_VARIES];

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let alone = object_probe.alone();
    let first = object_probe.answered(&alone, object_probe.request).await?;
    let mut other_bytes = None;
    for _ in 0..object_probe.environment.repetitions {
        let again = object_probe.outcome_again(&alone, object_probe.request).await;
        let steps = [Arc::clone(&first), Arc::clone(&again)];
        if let Verdict::Failed(reason) = again.verdict() {
            let message =
                format!("the webhook answered a request once and then failed on the same request: {reason}");
            return Ok(vec![
                Violation::new("fails intermittently", message)
                    .with_help("Find the reason for the failed call in the webhook's log.")
                    .with_steps(steps),
            ]);
        }
        if first.refusal.is_some() != again.refusal.is_some() {
            let (one, other) = (first.verdict().to_string(), again.verdict().to_string());
            let message = format!("the same request gets two different responses: {one}; {other}");
            return Ok(vec![Violation::new(VERDICT_VARIES, message).with_steps(steps)]);
        }
        if let (Some(expected), Some(found)) = (&first.object, &again.object) {
            let differences = object_probe.differences(expected, found, Order::Counts);
            if !differences.is_empty() {
                let message =
                    format!("the same request gives different objects: {}", super::fields(&differences));
                let violation = Violation::new(OBJECT_VARIES, message);
                return Ok(vec![violation.with_differences(differences).with_steps(steps)]);
            }
        }
        if patch(&first) != patch(&again) {
            other_bytes = Some(steps);
        }
    }
    Ok(other_bytes.map_or_else(Vec::new, |steps| {
        let message = "the same request gets patches that differ in form but have the same effect";
        let violation = Violation::new("patch varies", message).with_steps(steps).with_severity(Severity::Note);
        vec![violation.with_help(
            "Write the operations of a patch in a fixed order. controller-runtime's PatchResponseFromRaw does not; \
             accept the finding if no program compares the patches.",
        )]
    }))
}

/// Returns the value of `response.patch` as received.
fn patch(outcome: &Outcome) -> Option<Value> {
    let reply = outcome.exchanges.first()?.reply.as_ref().ok()?;
    let review: Value = serde_json::from_slice(&reply.body).ok()?;
    review.pointer("/response/patch").cloned()
}
