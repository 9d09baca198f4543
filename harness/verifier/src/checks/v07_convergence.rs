//! V07: one reinvocation is enough.

use std::sync::Arc;

use kubernetes_admission::config::ReinvocationPolicy;
use serde_json::Value;

use super::collection;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::comparison::Order;
use crate::environment::{Outcome, Verdict};
use crate::object_probe::ObjectProbe;
use crate::rejection;
use crate::subject::Subject;

pub(super) const CHECK: Check = Check {
    id: "V07",
    title: "convergence: one reinvocation of all webhooks is enough",
    severity: Severity::Error,
    why: "kube-apiserver calls a webhook with reinvocationPolicy IfNeeded at most once more and then \
          continues with the object as it is. If webhooks still react to each other's changes in the second \
          round, the stored object depends on where the server stopped.",
    help: "Make each change independent of the fields that the other webhooks change.",
    source: "KEP-492: a single re-run; kubernetes/apiserver \
             pkg/admission/plugin/webhook/mutating/reinvocationcontext.go",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Collection(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let subjects = collection::called(object_probe).await?;
    let again = |subject: &Subject| subject.with_reinvocation(ReinvocationPolicy::IfNeeded);
    let two_rounds = collection::admitted(object_probe, &subjects, again).await?;
    let Some(then) = two_rounds.object.clone() else { return collection::HOLDS };
    // V05 judges the result of one round.
    let one_round = |subject: &Subject| subject.with_reinvocation(ReinvocationPolicy::Never);
    let once = collection::admitted(object_probe, &subjects, one_round).await?;
    let (what, known) = ("the result of two rounds", std::slice::from_ref(&once));
    if let Some(rejected) = rejection::rejection(object_probe.environment, what, &two_rounds, known) {
        return Ok(vec![rejected]);
    }
    // Runs one more round: webhooks that still change the object were cut off by the server.
    let third = object_probe.outcome(&once.webhook_set, &object_probe.with_object(then.clone())).await;
    let steps = [Arc::clone(&two_rounds), Arc::clone(&third)];
    match third.verdict() {
        Verdict::Admitted => {}
        Verdict::Denied(status) => {
            let message =
                format!("the webhooks deny the object that two rounds produced: {}", status.message);
            let kind = "denied after two rounds";
            return Ok(vec![Violation::new(kind, message).with_steps(steps)]);
        }
        Verdict::NoConditions(_) => return Err(Skipped::no_conditions()),
        verdict @ (Verdict::Failed(_) | Verdict::ServerError(_) | Verdict::Unsupported(_)) => {
            return Err(Skipped::not_checked(verdict.to_string()));
        }
    }
    let Some(found) = &third.object else { return collection::HOLDS };
    let differences = object_probe.differences(&then, found, Order::Counts);
    let restless = changing(object_probe, &third);
    if differences.is_empty() && restless.is_empty() {
        return collection::HOLDS;
    }
    let verb = if restless.len() == 1 { "changes" } else { "change" };
    let kind = format!("{} still {verb} the object after two rounds", restless.join(", "));
    let what = if differences.is_empty() {
        "each webhook undoes the other's change".to_owned()
    } else {
        super::fields(&differences)
    };
    let message = format!("{kind}: {what}");
    Ok(vec![Violation::new(kind, message).with_differences(differences).with_steps(steps)])
}

/// Returns the webhooks that changed the object, by comparing the objects that consecutive webhooks received.
fn changing(object_probe: &ObjectProbe<'_>, outcome: &Outcome) -> Vec<String> {
    let calls: Vec<(String, Value)> = outcome
        .calls()
        .filter_map(|called| {
            let review: Value = serde_json::from_slice(&called.review).ok()?;
            let name = format!("{}/{}", called.webhook.configuration, called.webhook.name);
            Some((name, review.pointer("/request/object")?.clone()))
        })
        .collect();
    let after = calls.iter().skip(1).map(|(_, shown)| shown).chain(&outcome.object);
    let changing = calls
        .iter()
        .zip(after)
        .filter(|((_, before), after)| !object_probe.differences(before, after, Order::Counts).is_empty());
    changing.map(|((name, _), _)| name.clone()).collect()
}
