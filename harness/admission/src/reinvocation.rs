//! Decides from the [`Record`] which mutating webhooks run a second time.

use crate::config::{ReinvocationPolicy, Webhook};
use crate::event::{CallResult, Event, Phase, Record, Round};
use crate::policy::PoliciesChecked;

/// Returns whether the mutating chain runs a second time: a webhook changed the object in the first round, or a policy
/// applied a mutation.
///
/// Changes by in-tree plugins do not count.
///
/// Source: apiserver pkg/admission/reinvocation.go; pkg/admission/plugin/webhook/mutating/dispatcher.go.
/// Rule: RIV-01, RIV-02.
pub fn is_second_round_due(record: &Record) -> bool {
    record.events.iter().any(|event| {
        changed_by_webhook(event, |round| round == Round::First)
            || mutating_policies(event, Round::First).is_some_and(|checked| checked.mutated)
    })
}

/// Returns whether `webhook` is called again. The webhook must match in the second round.
///
/// This requires the policy `IfNeeded`, a call in the first round, and a change to the object after that call.
///
/// A call that failed open counts as called. A webhook's own change does not make that webhook due.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/reinvocationcontext.go.
/// Rule: MAP-63, RIV-04, RIV-05, RIV-06, RIV-07, RIV-08, RIV-09, RIV-11.
pub fn is_due(webhook: &Webhook, record: &Record) -> bool {
    webhook.reinvocation_policy == ReinvocationPolicy::IfNeeded && {
        let mut events = record.events.iter();
        events.any(|event| is_call_of(event, webhook))
            && events.any(|later| {
                changed_by_webhook(later, |_| true)
                    || matches!(later, Event::PluginChanged { round: Round::Second, .. })
                    || mutating_policies(later, Round::Second).is_some_and(|checked| checked.changed)
            })
    }
}

/// A mutating policy with one of its bindings and one of the params of the binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyInvocation<'a> {
    pub(crate) policy: &'a str,
    pub(crate) binding: &'a str,
    /// The param, as in [`PolicyRun::param`](crate::policy::PolicyRun::param).
    pub(crate) param: Option<&'a str>,
}

/// Returns whether a policy with the reinvocation policy `IfNeeded`, which matches in the second round, is applied again.
///
/// This requires that the policy was applied in the first round, and that a policy applied a mutation in that round, or
/// that a webhook or an in-tree plugin changed the object afterwards. The policy itself counts, too.
///
/// Source: apiserver pkg/admission/plugin/policy/mutating/reinvocationcontext.go.
/// Rule: MAP-60, MAP-61, MAP-62.
pub(crate) fn is_policy_due(invocation: PolicyInvocation<'_>, record: &Record) -> bool {
    let mut events = record.events.iter();
    let first = events.find_map(|event| mutating_policies(event, Round::First));
    first.is_some_and(|first| {
        was_invoked(invocation, first)
            && (first.mutated
                || events.any(|later| {
                    changed_by_webhook(later, |_| true) || matches!(later, Event::PluginChanged { .. })
                }))
    })
}

fn was_invoked(invocation: PolicyInvocation<'_>, checked: &PoliciesChecked) -> bool {
    let policies = checked.policies.iter().filter(|policy| *policy.policy == *invocation.policy);
    let bindings = policies.flat_map(|policy| &policy.bindings);
    let runs = bindings.filter(|binding| *binding.binding == *invocation.binding);
    let mut runs = runs.flat_map(|binding| &binding.runs);
    runs.any(|run| run.invoked && run.param.as_deref() == invocation.param)
}

fn mutating_policies(event: &Event, in_round: Round) -> Option<&PoliciesChecked> {
    let Event::Policies(checked) = event else { return None };
    (checked.phase == Phase::Mutating && checked.round == in_round).then_some(checked)
}

fn is_call_of(event: &Event, webhook: &Webhook) -> bool {
    matches!(event, Event::Called(called) if called.phase == Phase::Mutating && called.webhook == webhook.id)
}

fn changed_by_webhook(event: &Event, in_round: impl Fn(Round) -> bool) -> bool {
    matches!(
        event,
        Event::Called(called)
            if matches!(called.result, CallResult::Allowed { changed: true, .. }) && in_round(called.round)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::{called, webhook};

    /// The behavior of a webhook in the two rounds.
    #[derive(Clone, Debug)]
    struct Behavior {
        policy: ReinvocationPolicy,
        matches: [bool; 2],
        changes: [bool; 2],
    }

    fn behavior() -> impl Strategy<Value = Behavior> {
        (any::<bool>(), any::<[bool; 2]>(), any::<[bool; 2]>()).prop_map(|(if_needed, matches, changes)| {
            let policy = if if_needed { ReinvocationPolicy::IfNeeded } else { ReinvocationPolicy::Never };
            Behavior { policy, matches, changes }
        })
    }

    /// Computes the calls with upstream's two sets: webhooks that may be reinvoked, and webhooks that are scheduled.
    fn calls_by_sets(webhooks: &[Behavior], plugin_changes: bool) -> Vec<(usize, usize)> {
        let (mut candidates, mut scheduled) = (BTreeSet::new(), BTreeSet::new());
        let (mut calls, mut again) = (Vec::new(), false);
        for round in 0..2 {
            if round == 1 && !again {
                break;
            }
            if round == 1 && plugin_changes {
                scheduled.append(&mut candidates);
            }
            for (index, webhook) in webhooks.iter().enumerate() {
                if !webhook.matches[round] || (round == 1 && !scheduled.contains(&index)) {
                    continue;
                }
                calls.push((round, index));
                if webhook.changes[round] {
                    scheduled.append(&mut candidates);
                    again = true;
                }
                if webhook.policy == ReinvocationPolicy::IfNeeded {
                    candidates.insert(index);
                }
            }
        }
        calls
    }

    fn calls_by_record(webhooks: &[Behavior], plugin_changes: bool) -> Vec<(usize, usize)> {
        let mut record = Record::default();
        let mut calls = Vec::new();
        for round in [Round::First, Round::Second] {
            if round == Round::Second {
                if !is_second_round_due(&record) {
                    break;
                }
                if plugin_changes {
                    record.events.push(Event::PluginChanged { plugin: "LimitRanger", round });
                }
            }
            for (index, behavior) in webhooks.iter().enumerate() {
                let mut webhook = webhook(&format!("w{index}.example.com"));
                webhook.reinvocation_policy = behavior.policy;
                let matches = behavior.matches[round.number()];
                if !matches || (round == Round::Second && !is_due(&webhook, &record)) {
                    continue;
                }
                calls.push((round.number(), index));
                let changed = behavior.changes[round.number()];
                let mut called = called(&webhook.id.name, CallResult::Allowed { patch: None, changed });
                called.round = round;
                record.events.push(Event::Called(Box::new(called)));
            }
        }
        calls
    }

    proptest! {
        #[test]
        fn the_record_yields_the_same_calls_as_upstream(
            webhooks in prop::collection::vec(behavior(), 0..6),
            plugin_changes: bool,
        ) {
            prop_assert_eq!(
                calls_by_record(&webhooks, plugin_changes),
                calls_by_sets(&webhooks, plugin_changes)
            );
        }
    }
}
