//! V09: applying the same manifest again changes nothing.

use std::sync::Arc;

use serde_json::Value;

use super::v10_write_loop::overlay;
use crate::check::{Audience, Check, Observed, Probe, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::stored::{as_updated, update};

pub(super) const CHECK: Check = Check {
    id: "V09",
    title: "repeated apply: applying the same manifest again leaves the stored object unchanged",
    severity: Severity::Warning,
    why: "GitOps tools, operators, and server-side apply send the same manifest again and again, as an \
          apply or as a full replacement. A webhook that adds something on each update, or mutates CREATE \
          but not UPDATE although its rules match both, turns every sync into a change. The results are \
          endless drift and restarts, and the API server rejects updates of immutable fields of Pods.",
    help: "Mutate CREATE and UPDATE in the same way, and keep values that are already set.",
    source: "kubernetes/kubernetes#124605, #129960; Admission Webhook Good Practices, competing controllers",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let created = object_probe.first().await?;
    let Some(made) = &created.object else { return Ok(Vec::new()) };
    let stored = object_probe.stored(made)?;
    let mut applied = stored.clone();
    overlay(&mut applied, object_probe.object());
    let mut violations = Vec::new();
    // An apply keeps the order of lists; a replacement may not.
    let ways = [
        ("apply", applied, Order::Counts),
        ("replacement with the same manifest", object_probe.stored(object_probe.object())?, Order::Free),
    ];
    for (way, written, order) in ways {
        let request = update(object_probe.request, stored.clone(), written);
        let updated = match object_probe.answered(&object_probe.alone(), &request).await {
            Ok(updated) => updated,
            Err(Skipped::NotApplicable(_)) => {
                let reason = "the webhook's rules and selectors do not match UPDATE of the object";
                return Err(Skipped::not_applicable(reason));
            }
            Err(skip) => return Err(skip),
        };
        let steps = [Arc::clone(&created), Arc::clone(&updated)];
        violations
            .extend(judge(object_probe, way, &stored, &updated, order).map(|found| found.with_steps(steps)));
    }
    Ok(violations)
}

fn judge(
    object_probe: &ObjectProbe<'_>,
    way: &str,
    stored: &Value,
    updated: &Outcome,
    order: Order,
) -> Option<Violation> {
    if let Verdict::Denied(status) = updated.verdict() {
        // A webhook may forbid the removal of what it injected; an apply removes nothing.
        let message = format!("the webhook denies an apply that changes nothing: {}", status.message);
        return (way == "apply").then(|| Violation::new("denies a second apply", message));
    }
    let updated =
        as_updated(&updated.request, updated.object.as_ref()?, &object_probe.environment.cluster_fixture);
    let differences = object_probe.differences(stored, &updated, order);
    if differences.is_empty() {
        return None;
    }
    let message = format!("a second {way} changes the stored object: {}", super::fields(&differences));
    Some(Violation::new(format!("changed by a second {way}"), message).with_differences(differences))
}
