//! V06: the order of the webhooks does not change the result.

use std::sync::Arc;

use super::collection;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Violation};
use crate::comparison::{Difference, Order};
use crate::environment::Outcome;
use crate::object_probe::ObjectProbe;
use crate::subject::Subject;

/// The maximum number of webhooks to try in all orders. For more webhooks, only pairs are swapped.
const MAX_PERMUTED: usize = 4;

pub(super) const CHECK: Check = Check {
    id: "V06",
    title: "order independence: the result is the same in every order of the webhooks",
    severity: Severity::Warning,
    why: "Webhooks are called in the order of the names of their configurations. Kubernetes does not \
          guarantee this order, and webhook authors work around it with names such as 0-… or zzz-…. If the \
          order determines the result, a product that is installed or renamed changes what another one \
          does.",
    help: "Do not read or overwrite fields that another webhook sets.",
    source: "Admission Webhook Good Practices, Don't rely on mutating webhook invocation order; \
             kubernetes/website#23992",
    audience: Audience::Mutating,
    repeatability: Repeatability::Same,
    probe: Probe::Collection(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let subjects = collection::called(object_probe).await?;
    let mut violations = Vec::new();
    for (position, one) in subjects.iter().enumerate() {
        for other in subjects.iter().skip(position + 1) {
            violations.extend(differ(object_probe, &[one, other], &[other, one]).await);
        }
    }
    // Webhooks that commute in pairs may still not commute together.
    if violations.is_empty() && (3..=MAX_PERMUTED).contains(&subjects.len()) {
        for order in orders(&subjects) {
            let violation = differ(object_probe, &subjects, &order).await;
            if violation.is_some() {
                violations.extend(violation);
                break;
            }
        }
    }
    Ok(violations)
}

/// Returns a violation if two orders of the same webhooks give different results.
async fn differ(object_probe: &ObjectProbe<'_>, one: &[&Subject], other: &[&Subject]) -> Option<Violation> {
    let run = async |order: &[&Subject]| -> Arc<Outcome> {
        let webhook_set = ObjectProbe::in_order(order.iter().map(|subject| Arc::clone(&subject.called)));
        object_probe.outcome(&webhook_set, object_probe.request).await
    };
    let (first, second) = (run(one).await, run(other).await);
    let (what, differences): (String, Vec<Difference>) = match (&first.refusal, &second.refusal) {
        (None, None) => {
            let (expected, found) = (first.object.as_ref()?, second.object.as_ref()?);
            let differences = object_probe.differences(expected, found, Order::Free);
            if differences.is_empty() {
                return None;
            }
            (super::fields(&differences), differences)
        }
        (Some(_), Some(_)) => return None,
        (None, Some(refusal)) | (Some(refusal), None) => {
            (format!("one order is rejected: {refusal}"), Vec::new())
        }
    };
    let kind = format!("the order of {} matters", collection::names(one));
    let message = format!(
        "the order {} and the order {} give different objects: {what}",
        collection::names(one),
        collection::names(other)
    );
    Some(Violation::new(kind, message).with_differences(differences).with_steps([first, second]))
}

/// Returns all orders of `subjects` other than the given order.
fn orders<'a>(subjects: &[&'a Subject]) -> Vec<Vec<&'a Subject>> {
    let mut orders: Vec<Vec<&Subject>> = vec![Vec::new()];
    for subject in subjects {
        orders = orders
            .into_iter()
            .flat_map(|order| {
                (0..=order.len()).rev().map(move |position| {
                    let mut longer = order.clone();
                    longer.insert(position, *subject);
                    longer
                })
            })
            .collect();
    }
    orders.split_off(1)
}
