//! Explains what the admission policies of a scenario did about a request.

use harness::event::{Phase, Round};
use harness::policy::MatchField;
use serde_json::Value;

use super::policies::{binding_kind, text};
use super::world::World;
use crate::narrator::NoteKind;
use crate::policy_outcome::{PolicyOutcome, PolicyResult, applied};
use crate::unbound_policies::{Source, UnboundPolicy, unbound};

impl World {
    /// Keeps the results of the policies of the scenario, with the names in the feature file.
    ///
    /// A param in the scenario's own namespace is shown without the namespace.
    pub(super) fn read_policies(&mut self, results: Vec<PolicyResult>) {
        let prefix = format!("{}.", self.names.id());
        let shorten = |name: String| name.strip_prefix(&prefix).map(str::to_owned).unwrap_or(name);
        let namespace = format!("{}/", self.names.namespace());
        let own = results.into_iter().filter(|result| result.policy.starts_with(&prefix));
        self.policy_results = own
            .map(|result| PolicyResult {
                policy: shorten(result.policy),
                binding: result.binding.map(shorten),
                param: result
                    .param
                    .map(|name| name.strip_prefix(&namespace).map(str::to_owned).unwrap_or(name)),
                ..result
            })
            .collect();
    }

    /// Keeps the policies that rejected the last request because they failed, for a warning at the end of the run.
    ///
    /// A step expects the rejection, but the policies would also reject other objects.
    pub(super) fn suspect_failed_policies(&mut self) {
        let failed = self.failed_policies();
        self.suspect_failures.extend(failed);
    }

    /// Removes the failures of the last request from the warning, because a step checks the message and expects them.
    pub(super) fn accept_failed_policies(&mut self) {
        let failed = self.failed_policies();
        self.suspect_failures.retain(|failure| !failed.contains(failure));
    }

    /// Adds the failures of a scenario that passed to the warning at the end of the run.
    pub(crate) fn count_failed_policies(&mut self) {
        let failures = std::mem::take(&mut self.suspect_failures);
        let Ok(target) = self.target() else { return };
        for (policy, message) in &failures {
            target.failed_policies.count(policy, message);
        }
    }

    /// Returns the names and messages of the policies that rejected the last request because they failed.
    fn failed_policies(&self) -> Vec<(String, String)> {
        let failed = |result: &PolicyResult| match &result.outcome {
            // The binding says that the request is rejected without a param.
            PolicyOutcome::Failed(message) if message.contains("parameterNotFoundAction") => None,
            PolicyOutcome::Failed(message) => Some((result.policy.clone(), message.clone())),
            PolicyOutcome::Excluded(_)
            | PolicyOutcome::NotApplied(_)
            | PolicyOutcome::Allowed
            | PolicyOutcome::Applied(_)
            | PolicyOutcome::TestFailed(_)
            | PolicyOutcome::Denied(_)
            | PolicyOutcome::NotEnforced(_) => None,
        };
        self.policy_results.iter().filter_map(failed).collect()
    }

    /// Returns `matchConstraints` of the policy or `matchResources` of the binding, as the scenario wrote it.
    pub(super) fn match_resources(&self, result: &PolicyResult) -> Option<&Value> {
        let name = result.binding.as_ref().unwrap_or(&result.policy);
        let is_it = |object: &&Value| {
            let is_binding = binding_kind(text(object, "/kind")).is_none();
            text(object, "/metadata/name") == name && is_binding == result.binding.is_some()
        };
        self.policies.iter().find(is_it)?.get("spec")?.get(result.match_field())
    }

    /// Returns whether the scenario creates a policy with this name.
    pub(super) fn has_policy(&self, name: &str) -> bool {
        let mut policies =
            self.policies.iter().filter(|object| binding_kind(text(object, "/kind")).is_some());
        policies.any(|object| text(object, "/metadata/name") == name)
    }

    /// Returns a note for each policy of the scenario: what it did about the last request, or why it has no effect.
    ///
    /// The note of a denial does not repeat a message that `decision` contains.
    pub(super) fn policy_notes(&self, decision: &str) -> Vec<(NoteKind, String)> {
        let mut notes = self.unbound();
        notes.extend(self.policy_results.iter().map(|result| note(result, decision)));
        notes
    }

    /// Returns a note for each policy without a binding, and for each binding without a policy.
    fn unbound(&self) -> Vec<(NoteKind, String)> {
        let objects: Vec<&Value> = self.policies.iter().collect();
        let unbound = unbound(&objects, Source::Scenario).into_iter();
        let note = |UnboundPolicy { policy, binding, reason, .. }| {
            let with = binding.map(|name| format!(" with binding \"{name}\"")).unwrap_or_default();
            (NoteKind::Cause, format!("policy \"{policy}\"{with}: not applied: {reason}"))
        };
        unbound.map(note).collect()
    }
}

fn note(result: &PolicyResult, decision: &str) -> (NoteKind, String) {
    let PolicyResult { policy, binding, param, outcome, phase, round } = result;
    let with = binding.as_ref().map(|name| format!(" with binding \"{name}\"")).unwrap_or_default();
    let param = param.as_ref().map(|name| format!(" and param \"{name}\"")).unwrap_or_default();
    let with_message = |what: &str, message: &str| {
        if decision.contains(message) { what.to_owned() } else { format!("{what}: {message}") }
    };
    let (kind, text) = match outcome {
        PolicyOutcome::Excluded(mismatch) if mismatch.field == MatchField::Exempt => {
            (NoteKind::Cause, "not applied: policies do not apply to this kind".to_owned())
        }
        PolicyOutcome::Excluded(mismatch) => {
            (NoteKind::Cause, format!("not applied: {}", result.compared(mismatch)))
        }
        PolicyOutcome::NotApplied(reason) => (NoteKind::Cause, format!("not applied: {reason}")),
        PolicyOutcome::Allowed => (NoteKind::Cause, "allowed: all validations are true".to_owned()),
        PolicyOutcome::TestFailed(error) => {
            (NoteKind::Cause, format!("applied: {}: {error}", applied(false)))
        }
        PolicyOutcome::Applied(changed) => (NoteKind::Cause, format!("applied: {}", applied(*changed))),
        PolicyOutcome::Denied(message) => (NoteKind::Event, with_message("denied", message)),
        PolicyOutcome::Failed(message) => {
            // The code and the reason look contradictory, but they are those of kube-apiserver.
            let is_invalid = *phase == Phase::Mutating && decision.starts_with("403 Invalid");
            let status = if is_invalid { " (403 Invalid is kube-apiserver's status for this)" } else { "" };
            (
                NoteKind::Event,
                with_message(&format!("failed, and its failurePolicy is Fail{status}"), message),
            )
        }
        PolicyOutcome::NotEnforced(reason) => (NoteKind::Cause, format!("not enforced: {reason}")),
    };
    let round = if *round == Round::Second { ", second round" } else { "" };
    (kind, format!("policy \"{policy}\"{with}{param}{round}: {text}"))
}
