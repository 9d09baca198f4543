//! Tests whether a webhook gives the same response to the same request.

use serde_json::Value;

use super::environment::Outcome;
use super::plan::Plan;
use super::subject::Subject;

/// The number of identical requests that a deterministic webhook must answer equally, as in V11.
const TIMES: usize = 15;

/// Returns whether the webhook gives the same response to repeated creations of `object`.
///
/// Returns `true` without a test if `subject` is `None`, that is, for all webhooks together.
pub(super) async fn is_deterministic(plan: &Plan, subject: Option<&Subject>, object: &Value) -> bool {
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
