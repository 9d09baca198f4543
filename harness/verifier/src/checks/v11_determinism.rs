//! V11: the same request has the same answer.

use std::sync::Arc;

use serde_json::Value;

use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;

/// How often the same is asked again, unless another answer comes before. A webhook that throws a coin for each answer, such
/// as one that writes a Go map of two keys in the order of its iteration, gives the same one each time in 1 of 16,384 cases.
const REPETITIONS: usize = 14;

pub(super) const CHECK: Check = Check {
    id: "V11",
    title: "deterministic: the same request, with a new uid, has the same answer",
    severity: Severity::Error,
    why: "kube-apiserver sends a review again when the webhook asks for that with Retry-After, calls a webhook a \
          second time in one request, and clients retry. A webhook that draws lots, or writes the time, makes each \
          of them another object, and no test of it can be trusted.",
    source: "client-go rest/with_retry.go: a retry sends the same body; Dynamic Admission Control, Idempotence",
    audience: Audience::All,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let alone = object_probe.alone();
    let first = object_probe.answered(&alone, object_probe.request).await?;
    let mut other_bytes = None;
    for _ in 0..REPETITIONS {
        let again = object_probe.outcome_anew(&alone, object_probe.request).await;
        let steps = [Arc::clone(&first), Arc::clone(&again)];
        if let Verdict::Failed(reason) = again.verdict() {
            let message =
                format!("what it answered once, it gives no valid answer to the next time: {reason}");
            return Ok(vec![Violation::new("fails now and then", message).with_steps(steps)]);
        }
        if first.refusal.is_some() != again.refusal.is_some() {
            let (one, other) = (first.verdict().to_string(), again.verdict().to_string());
            let message = format!("the same request has two answers: {one}; {other}");
            return Ok(vec![Violation::new("changes its mind", message).with_steps(steps)]);
        }
        if let (Some(expected), Some(found)) = (&first.object, &again.object) {
            let differences = object_probe.differences(expected, found, Order::Counts);
            if !differences.is_empty() {
                let message =
                    format!("the same request comes out different: {}", super::fields(&differences));
                let violation = Violation::new("not deterministic", message);
                return Ok(vec![violation.with_differences(differences).with_steps(steps)]);
            }
        }
        if patch(&first) != patch(&again) {
            other_bytes = Some(steps);
        }
    }
    Ok(other_bytes.map_or_else(Vec::new, |steps| {
        let message = "the same request has patches that are written differently and do the same";
        vec![Violation::new("patch varies", message).with_steps(steps).with_severity(Severity::Note)]
    }))
}

/// `response.patch` as it came.
fn patch(outcome: &Outcome) -> Option<Value> {
    let reply = outcome.exchanges.first()?.reply.as_ref().ok()?;
    let review: Value = serde_json::from_slice(&reply.body).ok()?;
    review.pointer("/response/patch").cloned()
}
