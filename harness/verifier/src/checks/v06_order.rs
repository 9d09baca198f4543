//! V06: the order of the webhooks does not matter.

use std::sync::Arc;

use super::together;
use crate::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::comparison::{Difference, Order};
use crate::environment::Outcome;
use crate::object_probe::ObjectProbe;
use crate::subject::Subject;

/// Up to so many webhooks, all orders are tried; of more, each pair.
const MOST: usize = 4;

pub(super) const CHECK: Check = Check {
    id: "V06",
    title: "commuting: in whatever order the webhooks run, the object is the same in the end",
    severity: Severity::Warning,
    why: "Webhooks are called in the order of the names of their configurations, which nobody promises to keep and \
          which people work around by calling them 0-… or zzz-…. Where the order decides what comes out, installing \
          or renaming one product changes what another one does.",
    source: "Admission Webhook Good Practices, Don't rely on mutating webhook invocation order; kubernetes/website#23992",
    audience: Audience::Mutating,
    probe: Probe::Collection(|object_probe| Box::pin(run(object_probe))),
};

async fn run(object_probe: &ObjectProbe<'_>) -> Observed {
    let subjects = together::called(object_probe).await?;
    let mut violations = Vec::new();
    for (position, one) in subjects.iter().enumerate() {
        for other in subjects.iter().skip(position + 1) {
            violations.extend(differ(object_probe, &[one, other], &[other, one]).await);
        }
    }
    // Three that commute in pairs may still not do so together.
    if violations.is_empty() && (3..=MOST).contains(&subjects.len()) {
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

/// What differs between two orders of the same webhooks.
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
            (format!("one order is refused: {refusal}"), Vec::new())
        }
    };
    let kind = format!("the order of {} matters", together::names(one));
    let message = format!(
        "in the order {} and in the order {} different objects come out: {what}",
        together::names(one),
        together::names(other)
    );
    Some(Violation::new(kind, message).with_differences(differences).with_steps([first, second]))
}

/// All orders but the first.
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
