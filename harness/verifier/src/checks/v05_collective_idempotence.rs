//! V05: after the whole chain, no webhook changes the object.

use std::sync::Arc;

use super::collection;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::object_probe::ObjectProbe;
use crate::rejection;

pub(super) const CHECK: Check = Check {
    id: "V05",
    title: "collective idempotence: after all webhooks have run, no webhook changes the object again",
    severity: Severity::Error,
    why: "Each webhook may be idempotent alone while the collection is not: a later webhook undoes or \
          extends what an earlier one did, and the stored object is one that the earlier webhook would \
          change. The next update then changes the object again, although the client did not ask for it.",
    help: "Let only one webhook set each field.",
    source: "Admission Webhook Good Practices, Ensure that the mutating webhooks are idempotent as a \
             collection",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Collection(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let subjects = collection::called(object_probe).await?;
    let chain = collection::admitted(object_probe, &subjects, |subject| Arc::clone(&subject.called)).await?;
    let Some(last) = &chain.object else { return collection::HOLDS };
    let mut violations = Vec::new();
    let what = "the result of all webhooks";
    violations.extend(rejection::joint(object_probe, what, &chain, &subjects).await);
    for subject in subjects {
        let alone = ObjectProbe { subject, ..*object_probe };
        let again = match alone.answered(&alone.alone(), &object_probe.with_object(last.clone())).await {
            Ok(again) => again,
            // The selectors no longer match the object, so the webhook does not change it.
            Err(Skipped::NotApplicable(_)) => continue,
            Err(skip) => return Err(skip),
        };
        let Some(found) = &again.object else { continue };
        let name = subject.name();
        let steps = [Arc::clone(&chain), Arc::clone(&again)];
        if again.refusal.is_some() {
            let kind = format!("{name} denies the result of all webhooks");
            violations.push(Violation::new(kind.clone(), kind).with_steps(steps));
            continue;
        }
        let differences = object_probe.differences(last, found, Order::Counts);
        if !differences.is_empty() {
            let kind = format!("{name} changes the result of all webhooks");
            let message =
                format!("after all webhooks have run, {name} still changes {}", super::fields(&differences));
            violations.push(Violation::new(kind, message).with_differences(differences).with_steps(steps));
        }
    }
    Ok(violations)
}
