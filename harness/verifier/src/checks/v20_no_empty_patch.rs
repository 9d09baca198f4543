//! V20: who changes nothing sends no patch.

use std::sync::Arc;

use super::said::Said;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V20",
    title: "quiet: where it changes nothing it sends no patch",
    severity: Severity::Note,
    why: "A patch that changes nothing costs the server a decoding, a conversion and a comparison of the whole object \
          on each call, and leaves an audit annotation that says that the webhook patched something. Most objects that \
          a webhook sees are written by controllers again and again and are already as it wants them.",
    source: "open-policy-agent/gatekeeper#1026; apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go: the \
             patch annotation is written for every patch, mutated or not",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let first = object_probe.first().await?;
    if let Some(violation) = idle(object_probe, &Said::of(object_probe).await?, "the object")? {
        return Ok(vec![violation]);
    }
    // What it has made itself has nothing left to do.
    let Some(made) = &first.object else { return Ok(Vec::new()) };
    let request = object_probe.with_object(made.clone());
    let again = match object_probe.answered(&object_probe.alone(), &request).await {
        Ok(again) => again,
        Err(Obstacle::NotApplicable(_)) => return Ok(Vec::new()),
        Err(obstacle) => return Err(obstacle),
    };
    match again.verdict() {
        Verdict::Admitted => {
            let said = Said::to(object_probe, &request).await?;
            Ok(idle(object_probe, &said, "what it made itself")?.into_iter().collect())
        }
        Verdict::Denied(_)
        | Verdict::Failed(_)
        | Verdict::ServerError(_)
        | Verdict::NoConditions(_)
        | Verdict::Unsupported(_) => Ok(Vec::new()),
    }
}

/// A patch that leaves the object as it is.
fn idle(object_probe: &ObjectProbe<'_>, said: &Said, what: &str) -> Result<Option<Violation>, Obstacle> {
    if said.response.get("patch").is_none_or(serde_json::Value::is_null) {
        return Ok(None);
    }
    let kind = format!("patches nothing in {what}");
    let steps = [Arc::clone(&said.outcome)];
    let patched = match said.patched() {
        Ok(patched) => patched,
        Err(Obstacle::NotApplicable(_)) => {
            let message = format!("it sends a patch without operations for {what}");
            return Ok(Some(Violation::new(kind, message).with_steps(steps)));
        }
        Err(obstacle) => return Err(obstacle),
    };
    if !object_probe.differences(said.object(), &patched, Order::Counts).is_empty() {
        return Ok(None);
    }
    let count = said.patch()?.operations().len();
    let message = format!("it sends a patch with {count} operations for {what}, which leaves that as it is");
    Ok(Some(Violation::new(kind, message).with_steps(steps)))
}
