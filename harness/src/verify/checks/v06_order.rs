//! V06: the order of the webhooks does not matter.

use std::sync::Arc;

use super::together;
use crate::verify::check::{Audience, Check, Observed, Probe, Severity, Violation};
use crate::verify::comparison::{Difference, Order};
use crate::verify::laboratory::Outcome;
use crate::verify::subject::Subject;
use crate::verify::trial::Trial;

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
    probe: Probe::Collection(|trial| Box::pin(run(trial))),
};

async fn run(trial: &Trial<'_>) -> Observed {
    let subjects = together::called(trial).await?;
    let mut violations = Vec::new();
    for (position, one) in subjects.iter().enumerate() {
        for other in subjects.iter().skip(position + 1) {
            violations.extend(differ(trial, &[one, other], &[other, one]).await);
        }
    }
    // Three that commute in pairs may still not do so together.
    if violations.is_empty() && (3..=MOST).contains(&subjects.len()) {
        for order in orders(&subjects) {
            let violation = differ(trial, &subjects, &order).await;
            if violation.is_some() {
                violations.extend(violation);
                break;
            }
        }
    }
    Ok(violations)
}

/// What differs between two orders of the same webhooks.
async fn differ(trial: &Trial<'_>, one: &[&Subject], other: &[&Subject]) -> Option<Violation> {
    let run = async |order: &[&Subject]| -> Arc<Outcome> {
        let lineup = Trial::in_order(order.iter().map(|subject| Arc::clone(&subject.called)));
        trial.outcome(&lineup, trial.request).await
    };
    let (first, second) = (run(one).await, run(other).await);
    let (what, differences): (String, Vec<Difference>) = match (&first.refusal, &second.refusal) {
        (None, None) => {
            let (expected, found) = (first.object.as_ref()?, second.object.as_ref()?);
            let differences = trial.differences(expected, found, Order::Free);
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
