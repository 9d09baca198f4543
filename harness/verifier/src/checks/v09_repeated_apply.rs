//! V09: applying the same manifest again changes nothing.

use std::sync::Arc;

use kubernetes_admission::attributes::Attributes;
use serde_json::Value;

use super::v10_write_loop::overlay;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::rejection;
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
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let (created, made) = object_probe.created().await?;
    let Some(made) = made else { return Ok(Vec::new()) };
    let mut stored = object_probe.stored(&made)?;
    let mut earlier: Vec<Arc<Outcome>> = created.into_iter().collect();
    if earlier.is_empty() {
        // The webhook sees the object for the first time when it is updated.
        let request = update(object_probe.request, stored.clone(), stored.clone());
        let updated = answered(object_probe, &request).await?;
        if let Some(rejected) = rejection::rejection(object_probe.environment, "an update", &updated, &[]) {
            return Ok(vec![rejected.with_help(rejection::ALLOWED)]);
        }
        let Some(result) = updated.admitted() else {
            return Err(Skipped::not_applicable("the webhook denies the update"));
        };
        stored = as_updated(&request, result, &object_probe.environment.cluster_fixture);
        earlier.push(updated);
    }
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
        let updated = answered(object_probe, &request).await?;
        let steps: Vec<Arc<Outcome>> = earlier.iter().chain([&updated]).map(Arc::clone).collect();
        let what = format!("a second {way}");
        if let Some(rejected) = rejection::rejection(object_probe.environment, &what, &updated, &[]) {
            violations.push(rejected.with_steps(steps).with_help(rejection::ALLOWED));
            break;
        }
        violations
            .extend(judge(object_probe, way, &stored, &updated, order).map(|found| found.with_steps(steps)));
    }
    Ok(violations)
}

/// Returns the outcome of an update that the webhook answers.
async fn answered(object_probe: &ObjectProbe<'_>, request: &Attributes) -> Result<Arc<Outcome>, Skipped> {
    object_probe.answered(&object_probe.alone(), request).await.map_err(|skip| match skip {
        Skipped::NotApplicable(_) => {
            Skipped::not_applicable("the webhook's rules and selectors do not match UPDATE of the object")
        }
        other @ (Skipped::NotExercised(_)
        | Skipped::NotChecked(_)
        | Skipped::Uncontacted(_)
        | Skipped::Unequipped(_)) => other,
    })
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
