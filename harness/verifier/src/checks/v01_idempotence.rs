//! V01: a webhook does not change or deny its own result.

use std::sync::Arc;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::comparison::Order;
use crate::environment::Verdict;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V01",
    title: "idempotence: a second call leaves the mutated object unchanged",
    severity: Severity::Error,
    why: "kube-apiserver calls a webhook with reinvocationPolicy IfNeeded a second time when a later \
          webhook changed the object. Clients also create objects from objects that they read before, and \
          backups restore them. A webhook that then adds its container or volume again, or denies its own \
          result, produces objects that cannot be created.",
    help: "Check whether the object already has the field or list item before you add it.",
    source: "Dynamic Admission Control, Idempotence; KEP-492, Mutating Plugin ordering",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Object(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let first = object_probe.first().await?;
    let Some(once) = first.object.clone() else { return Ok(Vec::new()) };
    let second = object_probe.answered(&object_probe.alone(), &object_probe.with_object(once.clone())).await;
    // Selectors may match only objects that the webhook has not mutated: then it is not called again, and the
    // check passes.
    let second = match second {
        Ok(second) => second,
        Err(crate::check::Skipped::NotApplicable(_)) => return Ok(Vec::new()),
        Err(skip) => return Err(skip),
    };
    let steps = [Arc::clone(&first), Arc::clone(&second)];
    if let Verdict::Denied(status) = second.verdict() {
        let message = format!("the webhook denies an object that it has already mutated: {}", status.message);
        return Ok(vec![Violation::new("denies its own result", message).with_steps(steps)]);
    }
    let Some(twice) = &second.object else { return Ok(Vec::new()) };
    let differences = object_probe.differences(&once, twice, Order::Counts);
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let fields = super::fields(&differences);
    let what = if differences.iter().all(|difference| difference.expected.is_none()) {
        format!("adds {fields}")
    } else if differences.iter().all(|difference| difference.found.is_none()) {
        format!("removes {fields}")
    } else {
        format!("changes {fields} again")
    };
    let message = format!("not idempotent: called with its own result, the webhook {what}");
    Ok(vec![
        Violation::new("not idempotent", message)
            .with_differences(differences)
            .showing_all_fields()
            .with_steps(steps),
    ])
}
