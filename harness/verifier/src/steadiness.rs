//! Whether a webhook answers the same request in the same way.

use serde_json::Value;

use super::environment::Outcome;
use super::plan::Plan;
use super::subject::Subject;

/// How often a webhook is asked the same before it counts as steady: as often as V11 asks.
const TIMES: usize = 15;

/// Whether the webhook answers the creation of `object` in the same way each time. Of several together that is not asked.
pub(super) async fn is_steady(plan: &Plan, subject: Option<&Subject>, object: &Value) -> bool {
    let Some(subject) = subject else { return true };
    let Ok(request) = plan.environment.create(object.clone()) else { return true };
    let mut first: Option<Outcome> = None;
    for _ in 0..TIMES {
        let outcome = plan.environment.admit(&subject.alone(), &request).await;
        let Some(first) = &first else {
            first = Some(outcome);
            continue;
        };
        if first.refusal.is_some() != outcome.refusal.is_some() || first.object != outcome.object {
            return false;
        }
    }
    true
}
