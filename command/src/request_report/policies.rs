//! Reports what each admission policy did about a request.

use std::borrow::Cow;
use std::fmt::Write as _;

use harness::event::{Phase, Record, Round};
use harness::policy::{MatchField, PolicyMismatch};
use output::OneLine;
use serde::{Deserialize, Serialize};

use crate::policy_outcome::{PolicyOutcome, applied, policy_results};
use crate::screen::Marks;
use crate::style::{BAD, FAINT, GOOD, NOT_DONE};
use crate::unbound_policies::UnboundPolicy;

/// What a policy did for one binding and one param.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyReport {
    /// The phase: `mutating` or `validating`.
    #[serde(rename = "type")]
    phase: Cow<'static, str>,
    /// The round: 1, or 2 for the reinvocation. Validating policies are evaluated only in round 1.
    #[serde(default = "first_round")]
    round: usize,
    /// The `metadata.name` of the policy.
    pub(super) policy: String,
    /// The `metadata.name` of the binding; omitted if the policy was skipped before its bindings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    binding: String,
    /// The param, as `NAMESPACE/NAME` or `NAME`; omitted without a param.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    param: String,
    /// The outcome of the policy.
    pub(super) outcome: PolicyVerdict,
    /// The message of a denial, whether a mutating policy changed the object, or the reason why the policy had no effect.
    /// Omitted if the validations are true.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

impl PolicyReport {
    /// Returns the policy as `PHASE/NAME`.
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.phase, self.policy)
    }
}

/// The round of the policies in reports of earlier versions.
fn first_round() -> usize {
    Round::First.number() + 1
}

/// The outcomes of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum PolicyVerdict {
    /// All validations are true.
    Allowed,
    /// All mutations were applied.
    Applied,
    /// The policy denied the request.
    Denied,
    /// A validation is false or failed, and the request continued.
    NotEnforced,
    /// The policy or the binding was not evaluated.
    Skipped,
}

/// Returns the reports of all policies with bindings, except for requests to which no policy applies, then of `unbound`.
pub(super) fn reports(record: &Record, unbound: &[UnboundPolicy]) -> Vec<PolicyReport> {
    let results = policy_results(record).into_iter();
    let unbound = unbound.iter().map(|unbound| PolicyReport {
        phase: phase_name(unbound.phase).into(),
        round: first_round(),
        policy: unbound.policy.clone(),
        binding: unbound.binding.clone().unwrap_or_default(),
        param: String::new(),
        outcome: PolicyVerdict::Skipped,
        message: unbound.reason.clone(),
    });
    results
        .filter_map(|result| {
            let (outcome, message) = match &result.outcome {
                PolicyOutcome::Excluded(PolicyMismatch { field: MatchField::Exempt, .. }) => return None,
                PolicyOutcome::Excluded(mismatch) => (PolicyVerdict::Skipped, result.compared(mismatch)),
                PolicyOutcome::NotApplied(reason) => (PolicyVerdict::Skipped, reason.clone()),
                PolicyOutcome::Allowed => (PolicyVerdict::Allowed, String::new()),
                PolicyOutcome::TestFailed(error) => {
                    (PolicyVerdict::Applied, format!("{}: {error}", applied(false)))
                }
                PolicyOutcome::Applied(changed) => (PolicyVerdict::Applied, applied(*changed).to_owned()),
                PolicyOutcome::Denied(message) | PolicyOutcome::Failed(message) => {
                    (PolicyVerdict::Denied, message.clone())
                }
                PolicyOutcome::NotEnforced(reason) => (PolicyVerdict::NotEnforced, reason.clone()),
            };
            Some(PolicyReport {
                phase: phase_name(result.phase).into(),
                round: result.round.number() + 1,
                policy: result.policy,
                binding: result.binding.unwrap_or_default(),
                param: result.param.unwrap_or_default(),
                outcome,
                message,
            })
        })
        .chain(unbound)
        .collect()
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Mutating => "mutating",
        Phase::Validating => "validating",
    }
}

/// Appends the policies to the text of a report.
pub(super) fn lines(text: &mut String, policies: &[PolicyReport], marks: Marks) {
    if policies.is_empty() {
        return;
    }
    let names: Vec<String> = policies.iter().map(name).collect();
    let (pad, width) =
        (marks.width(), names.iter().map(|name| name.chars().count()).max().unwrap_or_default());
    let _ = writeln!(text, "\nPolicies");
    for (phase, round, heading) in ROUNDS {
        let in_round =
            policies.iter().zip(&names).filter(|(policy, _)| policy.phase == phase && policy.round == round);
        let mut lines = String::new();
        for (policy, name) in in_round {
            let (style, mark, what) = match policy.outcome {
                PolicyVerdict::Allowed => (GOOD, marks.passed, "allowed"),
                PolicyVerdict::Applied => (GOOD, marks.passed, "applied"),
                PolicyVerdict::Denied => (BAD, marks.failed, "denied"),
                PolicyVerdict::NotEnforced => (NOT_DONE, "!", "not enforced"),
                PolicyVerdict::Skipped => (FAINT, "-", "not applied"),
            };
            let message =
                if policy.message.is_empty() { String::new() } else { format!(": {}", policy.message) };
            let (name, message) = (OneLine(name), OneLine(format!("{what}{message}")));
            let _ = writeln!(lines, "    {style}{mark:<pad$}{style:#} {name:width$}  {message}");
        }
        if !lines.is_empty() {
            let _ = write!(text, "  {heading}\n{lines}");
        }
    }
}

/// The rounds of webhooks or policies, in order: the phase, the round, and the heading.
pub(super) const ROUNDS: [(&str, usize, &str); 3] = [
    ("mutating", 1, "mutating, first round"),
    ("mutating", 2, "mutating, second round"),
    ("validating", 1, "validating"),
];

fn name(policy: &PolicyReport) -> String {
    full_name(&policy.policy, &policy.binding, &policy.param)
}

/// Returns the name of a policy with its binding and param, such as `entries (binding deny, param shop/limits)`.
pub(super) fn full_name(policy: &str, binding: &str, param: &str) -> String {
    let parts = [("binding", binding), ("param", param)];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, name)| !name.is_empty())
        .map(|(what, name)| format!("{what} {name}"))
        .collect();
    if parts.is_empty() { policy.to_owned() } else { format!("{policy} ({})", parts.join(", ")) }
}
