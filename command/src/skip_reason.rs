//! States why the API server did not call a webhook.

use harness::conditions::{Evaluation, Outcome};
use harness::config::ReinvocationPolicy;
use harness::event::{Conditions, Mismatch};
use harness::status::Status;

/// Returns a clause that states the reason; `policy` is the webhook's reinvocation policy.
///
/// `conditions` is the latest evaluation of the webhook's match conditions, if there is one.
pub(crate) fn skip_reason(
    mismatch: &Mismatch,
    policy: ReinvocationPolicy,
    conditions: Option<&Conditions>,
) -> String {
    if let (Mismatch::Conditions, Some(Conditions { evaluation, .. })) = (mismatch, conditions) {
        return condition_reason(evaluation);
    }
    let text = match mismatch {
        Mismatch::NamespaceSelector => "its namespaceSelector does not select the namespace",
        Mismatch::ObjectSelector => "its objectSelector does not select the object",
        Mismatch::Rules => "none of its rules matches the request",
        Mismatch::Exempt => "webhooks are not called for this kind",
        Mismatch::NotReinvoked => match policy {
            ReinvocationPolicy::Never => "its reinvocationPolicy is Never",
            ReinvocationPolicy::IfNeeded => "nothing changed the object after its call",
        },
        Mismatch::Conditions => "it does not match",
    };
    text.to_owned()
}

/// Returns a clause that states why the API server could not decide whether to call a webhook, and rejected the request.
///
/// `conditions` is the latest evaluation of the webhook's match conditions, if there is one.
pub(crate) fn match_failure(status: &Status, conditions: Option<&Conditions>) -> String {
    let failed = conditions.into_iter().flat_map(|conditions| &conditions.evaluation.conditions).find_map(
        |condition| {
            let error = condition.value.as_ref().err()?;
            Some(format!(
                "its match condition \"{}\" failed, and its failurePolicy is Fail: {error}",
                condition.name
            ))
        },
    );
    failed
        .unwrap_or_else(|| format!("the API server could not decide whether it matches: {}", status.message))
}

/// Returns a clause that states why the match conditions of a webhook or a policy exclude a request.
pub(crate) fn condition_reason(evaluation: &Evaluation) -> String {
    match evaluation.outcome {
        Outcome::False { index } => {
            let name = evaluation.conditions.get(index).map_or("", |condition| &*condition.name);
            format!("its match condition \"{name}\" is false")
        }
        Outcome::True | Outcome::Errors(_) | Outcome::OutOfBudget => {
            let error = evaluation.error().unwrap_or_default();
            format!("its matchConditions cannot be evaluated, and its failurePolicy is Ignore: {error}")
        }
    }
}
