//! V01: a webhook leaves alone what it made itself.

use std::sync::Arc;

use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V01",
    title: "idempotent: what it mutated once, it admits and leaves as it is",
    severity: Severity::Error,
    why: "kube-apiserver calls a webhook with reinvocationPolicy IfNeeded a second time when a later one changed the \
          object, clients create objects from what they read before, and backups restore them. A webhook that then \
          adds its container or volume once more, or refuses its own work, makes objects that nobody can create.",
    source: "Dynamic Admission Control, Idempotence; KEP-492, Mutating Plugin ordering",
    audience: Audience::Mutating,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let first = object_probe.first().await?;
    let Some(once) = first.object.clone() else { return Ok(Vec::new()) };
    let second = object_probe.answered(&object_probe.alone(), &object_probe.with_object(once.clone())).await;
    // Selectors may pick only what the webhook has not touched: then it is not called again, and all is well.
    let second = match second {
        Ok(second) => second,
        Err(crate::check::Obstacle::NotApplicable(_)) => return Ok(Vec::new()),
        Err(obstacle) => return Err(obstacle),
    };
    let steps = [Arc::clone(&first), Arc::clone(&second)];
    if let Verdict::Denied(status) = second.verdict() {
        let message = format!("it denies the object that it mutated itself: {}", status.message);
        return Ok(vec![Violation::new("denies its own work", message).with_steps(steps)]);
    }
    let Some(twice) = &second.object else { return Ok(Vec::new()) };
    let differences = object_probe.differences(&once, twice, Order::Counts);
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let message = format!("called with its own result it changes {} more", super::fields(&differences));
    Ok(vec![Violation::new("not idempotent", message).with_differences(differences).with_steps(steps)])
}
