//! V05: after the whole chain, no webhook has anything left to do.

use std::sync::Arc;

use super::together;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::comparison::Order;
use crate::object_probe::ObjectProbe;

pub(super) const CHECK: Check = Check {
    id: "V05",
    title: "idempotent together: no single webhook would change the object again after all have run",
    severity: Severity::Error,
    why: "Each webhook may be idempotent alone while the collection is not: a later one undoes or extends what an \
          earlier one made, and the object that is stored is one that the earlier webhook would not have let be. \
          The next update then changes it again, for reasons that nobody asked for.",
    source: "Admission Webhook Good Practices, Ensure that the mutating webhooks are idempotent as a collection",
    audience: Audience::Mutating,
    probe: Probe::Collection(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let subjects = together::called(object_probe).await?;
    let chain = together::admitted(object_probe, &subjects, |subject| Arc::clone(&subject.called)).await?;
    let Some(last) = &chain.object else { return together::HOLDS };
    let mut violations = Vec::new();
    for subject in subjects {
        let alone = ObjectProbe { subject, ..*object_probe };
        let again = match alone.answered(&alone.alone(), &object_probe.with_object(last.clone())).await {
            Ok(again) => again,
            // It no longer picks the object: then it would not change it either.
            Err(Obstacle::NotApplicable(_)) => continue,
            Err(obstacle) => return Err(obstacle),
        };
        let Some(found) = &again.object else { continue };
        let name = subject.name();
        let steps = [Arc::clone(&chain), Arc::clone(&again)];
        if again.refusal.is_some() {
            let kind = format!("{name} denies what all webhooks made");
            violations.push(Violation::new(kind.clone(), kind).with_steps(steps));
            continue;
        }
        let differences = object_probe.differences(last, found, Order::Counts);
        if !differences.is_empty() {
            let kind = format!("{name} is not done when all webhooks are");
            let message = format!(
                "after all webhooks have run, {name} alone would still change {}",
                super::fields(&differences)
            );
            violations.push(Violation::new(kind, message).with_differences(differences).with_steps(steps));
        }
    }
    Ok(violations)
}
