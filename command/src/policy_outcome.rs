//! Derives what each admission policy did from the record of a request.

use harness::conditions::{Evaluation, Outcome};
use harness::config::FailurePolicy;
use harness::event::{Event, Phase, Record, Round};
use harness::policy::{
    AnnotationOutcome, BindingRecord, Decision, ExpressionPart, MutationEffect, PoliciesChecked,
    PolicyMismatch, PolicyRun, ValidationAction, Verdict,
};

use crate::skip_reason::condition_reason;

/// The reason why a matching policy was not evaluated, for example because the request timed out.
const NOT_REACHED: &str = "the request ended before its evaluation";

/// What a policy did for one binding and one param.
#[derive(Clone, Debug)]
pub(crate) struct PolicyResult {
    /// The phase of the policy.
    pub(crate) phase: Phase,
    /// The round; always [`Round::First`] for a validating policy.
    pub(crate) round: Round,
    /// The name of the policy.
    pub(crate) policy: String,
    /// The name of the binding; `None` if the policy was skipped before its bindings.
    pub(crate) binding: Option<String>,
    /// The param, as `NAMESPACE/NAME` or `NAME`; `None` without a param.
    pub(crate) param: Option<String>,
    /// What the policy did.
    pub(crate) outcome: PolicyOutcome,
}

/// What a policy did about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolicyOutcome {
    /// Without a binding, `matchConstraints` excludes the request; otherwise `matchResources` of the binding does.
    Excluded(PolicyMismatch),
    /// The policy was not evaluated. Contains the reason.
    NotApplied(String),
    /// All validations are true.
    Allowed,
    /// All mutations were applied. Contains whether they changed the object.
    Applied(bool),
    /// The object was not changed, because a `test` operation of a JSON patch failed. Contains the error.
    TestFailed(String),
    /// A validation is false, so the policy denied the request. Contains the message.
    Denied(String),
    /// An expression failed or the policy could not be configured, and its `failurePolicy` denied the request.
    /// Contains the message.
    Failed(String),
    /// A validation is false or failed, and the request continues. Contains the reason and the message.
    NotEnforced(String),
}

impl PolicyResult {
    /// Returns the values that were compared if the policy or the binding does not match, with the paths of the fields.
    pub(crate) fn compared(&self, mismatch: &PolicyMismatch) -> String {
        let field = self.match_field();
        let lines = mismatch.compared.iter().map(|line| format!("{field}.{line}"));
        lines.collect::<Vec<_>>().join("; ")
    }

    /// Returns the field that decides whether the policy or, if there is one, the binding matches.
    pub(crate) fn match_field(&self) -> &'static str {
        if self.binding.is_some() { "matchResources" } else { "matchConstraints" }
    }
}

/// Returns what each policy did, in the order of the evaluation; policies that do not match come first.
///
/// For the second round, returns only the policies that were applied again.
pub(crate) fn policy_results(record: &Record) -> Vec<PolicyResult> {
    let checked = record
        .events
        .iter()
        .filter_map(|event| if let Event::Policies(checked) = event { Some(&**checked) } else { None });
    checked.flat_map(results).collect()
}

fn results(checked: &PoliciesChecked) -> Vec<PolicyResult> {
    let result = |policy: &str, binding: Option<&BindingRecord>, param: Option<&str>, outcome| PolicyResult {
        phase: checked.phase,
        round: checked.round,
        policy: policy.to_owned(),
        binding: binding.map(|binding| binding.binding.to_string()),
        param: param.map(str::to_owned),
        outcome,
    };
    let skipped = checked.skipped.iter();
    let mut results: Vec<PolicyResult> = skipped
        .map(|skipped| result(&skipped.policy, None, None, PolicyOutcome::Excluded(skipped.mismatch.clone())))
        .collect();
    for policy in &checked.policies {
        let not_configured = |error: &str| match policy.failure_policy {
            FailurePolicy::Fail => PolicyOutcome::Failed(error.to_owned()),
            FailurePolicy::Ignore => {
                PolicyOutcome::NotApplied(format!("its failurePolicy is Ignore, and {error}"))
            }
        };
        if let Some(error) = &policy.error {
            results.push(result(&policy.policy, None, None, not_configured(error)));
        }
        for binding in &policy.bindings {
            let early = if let Some(mismatch) = &binding.mismatch {
                Some(PolicyOutcome::Excluded(mismatch.clone()))
            } else if let Some(error) = &binding.error {
                Some(not_configured(error))
            } else if binding.lacks_params {
                let reason = "its paramRef selects no object, and its parameterNotFoundAction is Allow";
                Some(PolicyOutcome::NotApplied(reason.to_owned()))
            } else if binding.runs.is_empty() && policy.error.is_none() {
                Some(PolicyOutcome::NotApplied(NOT_REACHED.to_owned()))
            } else {
                None
            };
            let early = early.map(|outcome| result(&policy.policy, Some(binding), None, outcome));
            results.extend(early);
            for run in &binding.runs {
                let outcome = match checked.phase {
                    Phase::Validating => outcome(run, &binding.validation_actions),
                    Phase::Mutating => mutating_outcome(run, policy.failure_policy),
                };
                results.push(result(&policy.policy, Some(binding), run.param.as_deref(), outcome));
            }
        }
    }
    if checked.round == Round::Second {
        let is_result = |outcome: &PolicyOutcome| {
            !matches!(outcome, PolicyOutcome::Excluded(_) | PolicyOutcome::NotApplied(_))
        };
        results.retain(|result| is_result(&result.outcome));
    }
    results
}

/// Returns the message of the decision about the validation with this `index`.
///
/// If the validation has a message expression that failed, adds its error, which kube-apiserver only logs.
fn message(run: &PolicyRun, index: usize, decision: &Decision) -> String {
    let mut expressions = run.expressions.iter();
    let evaluated = expressions.find(|it| it.part == ExpressionPart::MessageExpression(index));
    match evaluated.and_then(|evaluated| evaluated.value.as_ref().err()) {
        Some(error) if decision.verdict == Verdict::Denied => {
            format!("{} (its messageExpression failed: {error})", decision.message)
        }
        _ => decision.message.clone(),
    }
}

fn outcome(run: &PolicyRun, actions: &[ValidationAction]) -> PolicyOutcome {
    if run.decisions.is_empty()
        && let Some(reason) = run.conditions.as_ref().and_then(unmet_condition)
    {
        return PolicyOutcome::NotApplied(reason);
    }
    let messages = |is_included: fn(Verdict) -> bool| {
        let decisions = run.decisions.iter().enumerate();
        let decisions = decisions.filter(|(_, decision)| is_included(decision.verdict));
        let messages: Vec<String> =
            decisions.map(|(index, decision)| message(run, index, decision)).collect();
        messages.join("; ")
    };
    let failed_annotation = run.annotations.iter().find_map(|annotation| match &annotation.outcome {
        AnnotationOutcome::Failed(error) => Some(error),
        AnnotationOutcome::Published(_) | AnnotationOutcome::Excluded => None,
    });
    let violations = messages(|verdict| matches!(verdict, Verdict::Denied | Verdict::Failed));
    if !violations.is_empty() {
        if actions.contains(&ValidationAction::Deny) {
            let is_denied = run.decisions.iter().any(|decision| decision.verdict == Verdict::Denied);
            return if is_denied {
                PolicyOutcome::Denied(violations)
            } else {
                PolicyOutcome::Failed(violations)
            };
        }
        if let Some(error) = failed_annotation {
            return PolicyOutcome::Failed(error.clone());
        }
        let actions: Vec<&str> = actions.iter().map(|action| action.as_str()).collect();
        let reason = format!("its validationActions are [{}]: {violations}", actions.join(", "));
        return PolicyOutcome::NotEnforced(reason);
    }
    if let Some(error) = failed_annotation {
        return PolicyOutcome::Failed(error.clone());
    }
    match &*messages(|verdict| verdict == Verdict::Ignored) {
        "" => PolicyOutcome::Allowed,
        ignored => PolicyOutcome::NotEnforced(format!("its failurePolicy is Ignore: {ignored}")),
    }
}

/// Returns what a mutating policy did.
fn mutating_outcome(run: &PolicyRun, failure_policy: FailurePolicy) -> PolicyOutcome {
    if failure_policy == FailurePolicy::Fail
        && let Some(error) = run.conditions.as_ref().and_then(Evaluation::error)
    {
        return PolicyOutcome::Failed(error.to_owned());
    }
    if let Some(reason) = run.conditions.as_ref().and_then(unmet_condition) {
        return PolicyOutcome::NotApplied(reason);
    }
    if !run.invoked {
        return PolicyOutcome::NotApplied(NOT_REACHED.to_owned());
    }
    let errors = run.mutations.iter().filter_map(|mutation| mutation.outcome.as_ref().err());
    let errors = errors.map(String::as_str).collect::<Vec<_>>().join("; ");
    match failure_policy {
        _ if errors.is_empty() => {
            let effects = || run.mutations.iter().filter_map(|mutation| mutation.outcome.as_ref().ok());
            let failed_test = effects().find_map(|effect| match effect {
                MutationEffect::TestFailed(error) => Some(error),
                MutationEffect::Changed | MutationEffect::Unchanged => None,
            });
            match (effects().any(|effect| *effect == MutationEffect::Changed), failed_test) {
                (false, Some(error)) => PolicyOutcome::TestFailed(error.clone()),
                (changed, _) => PolicyOutcome::Applied(changed),
            }
        }
        FailurePolicy::Fail => PolicyOutcome::Failed(errors),
        FailurePolicy::Ignore => PolicyOutcome::NotEnforced(format!("its failurePolicy is Ignore: {errors}")),
    }
}

/// Describes the result of the mutations of a policy.
pub(crate) fn applied(changed: bool) -> &'static str {
    if changed { "changed the object" } else { "did not change the object" }
}

fn unmet_condition(evaluation: &Evaluation) -> Option<String> {
    (evaluation.outcome != Outcome::True).then(|| condition_reason(evaluation))
}

#[cfg(test)]
mod tests {
    use harness::policy::PolicyRecord;

    use super::*;

    #[test]
    fn binding_without_params_differs_from_one_that_was_not_reached() {
        let binding = |name: &str, lacks_params| BindingRecord {
            binding: name.into(),
            mismatch: None,
            error: None,
            validation_actions: Vec::new(),
            lacks_params,
            runs: Vec::new(),
        };
        let policy = PolicyRecord {
            policy: "owner".into(),
            failure_policy: FailurePolicy::Fail,
            error: None,
            bindings: vec![binding("empty", true), binding("late", false)],
        };
        let checked = PoliciesChecked {
            phase: Phase::Mutating,
            round: Round::First,
            mutated: false,
            changed: false,
            policies: vec![policy],
            skipped: Vec::new(),
            warnings: Vec::new(),
            violations: Vec::new(),
        };
        let outcomes: Vec<PolicyOutcome> =
            results(&checked).into_iter().map(|result| result.outcome).collect();
        let no_params = "its paramRef selects no object, and its parameterNotFoundAction is Allow";
        let expected = [no_params, NOT_REACHED].map(|reason| PolicyOutcome::NotApplied(reason.to_owned()));
        assert_eq!(outcomes, expected);
    }
}
