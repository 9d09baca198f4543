//! Applies mutating policies to a request.

mod application;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kubernetes_cel::value::Origin;
use kubernetes_types::equality::semantically_equal;
use kubernetes_types::status::{Status, StatusCause, Unsupported};
use kubernetes_types::weight::weight;
use serde_json::Value;
use tokio::time::Instant;

use self::application::Mutated;
use super::matching::{self, GroupVersionKind, Match};
use super::params::{self, ParamsError};
use super::{
    Checked, Failure, Refusal, as_struct, is_exempt, namespace, param_name, record_failure, skipped,
    unconvertible,
};
use crate::admission_run::{AdmissionRun, Objects};
use crate::attributes::Attributes;
use crate::cluster_state::ConversionError;
use crate::conditions::Subject;
use crate::config::{FailurePolicy, Phase, ReinvocationPolicy};
use crate::event::Round;
use crate::failure::{self, out_of_time};
use crate::policy::{
    self, Binding, BindingRecord, Input, MutatingHook, MutatingPolicy, MutationEffect, MutationError,
    MutationRecord, ParamInput, PoliciesChecked, PolicyChange, PolicyMismatch, PolicyRecord, PolicyRun,
};
use crate::reinvocation::{self, PolicyInvocation};

/// The maximum memory, in bytes, of an object that policies have changed.
///
/// Each mutation can add to the object, and kube-apiserver stores only objects of up to 1.5 MiB of JSON.
const MAX_OBJECT_BYTES: usize = 64 << 20;

/// The mutating policies that match a request, and the results of those that were applied.
pub(crate) struct Mutating<'h> {
    /// The remaining invocations in reverse order.
    invocations: Vec<Invocation<'h>>,
    record: PoliciesChecked,
    errors: Vec<PolicyError>,
    refusal: Option<Refusal>,
    namespace: Option<Arc<Value>>,
    /// The kinds whose objects match conditions have used.
    ///
    /// Expressions see an object with its Go type if its kind is built in and in this list. Otherwise, they see an
    /// unstructured object.
    typed: Vec<Arc<GroupVersionKind>>,
}

/// A policy that matches a request, with a binding and a param.
struct Invocation<'h> {
    policy: &'h MutatingPolicy,
    binding: &'h Binding,
    found: Match,
    param: Option<Arc<Value>>,
    /// The indices of the policy and the binding in the record.
    position: (usize, usize),
}

/// An error for which the failure policy is `Fail`.
struct PolicyError {
    message: String,
    /// Whether the policy was evaluated.
    is_evaluation: bool,
}

/// Finds the policies that match a request, with their bindings and params.
///
/// All policies match the object as it is before the first policy changes it. Policies and their bindings are in the
/// order of their names; kube-apiserver's order is random.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `Dispatch`.
/// Rule: MAP-01, MAP-03, MAP-06, MAP-08, MAP-51.
///
/// # Errors
/// Returns [`ConversionError`] if a conversion webhook must be called first, or if there is not enough memory for a
/// conversion.
pub(crate) fn select<'h>(
    hooks: &'h [MutatingHook],
    run: &mut AdmissionRun<'_>,
    round: Round,
) -> Result<Mutating<'h>, ConversionError> {
    let mut mutating = Mutating {
        invocations: Vec::new(),
        record: PoliciesChecked::new(Phase::Mutating, round),
        errors: Vec::new(),
        refusal: None,
        namespace: None,
        typed: Vec::new(),
    };
    for hook in hooks {
        if is_exempt(run.attributes()) {
            mutating.record.skipped.extend(skipped(
                &hook.policy.definition.name,
                PolicyMismatch::exempt(),
                run,
            ));
            continue;
        }
        match mutating.select(hook, run) {
            Ok(()) => {}
            Err(Failure::ByWebhook(error)) => return Err(error),
            Err(Failure::Refusal(refusal)) => {
                mutating.refusal = Some(refusal);
                return Ok(mutating);
            }
            Err(Failure::Configuration(message)) => {
                record_failure(&mut mutating.record.policies, &hook.policy.definition, false, &message);
                mutating.fail(&hook.policy, None, &message);
            }
        }
    }
    mutating.invocations.reverse();
    if !mutating.invocations.is_empty() {
        match namespace(run) {
            Ok(found) => mutating.namespace = found.as_ref().map(as_struct),
            Err(status) => mutating.refusal = Some(Refusal::Status(status)),
        }
    }
    Ok(mutating)
}

impl<'h> Mutating<'h> {
    fn select(&mut self, hook: &'h MutatingHook, run: &mut AdmissionRun<'_>) -> Result<(), Failure> {
        let definition = &hook.policy.definition;
        let matching = matching::matches(&definition.match_constraints, run);
        let found = match matching.map_err(Failure::Configuration)? {
            Ok(found) => found,
            Err(mismatch) => {
                self.record.skipped.extend(skipped(&definition.name, mismatch, run));
                return Ok(());
            }
        };
        if let Some(kind) = &definition.param_kind {
            params::is_namespaced(kind, run.state()).map_err(Failure::Configuration)?;
        }
        self.record.policies.push(PolicyRecord::new(definition));
        for binding in &hook.bindings {
            match self.select_binding(&hook.policy, binding, &found, run) {
                Ok(()) => {}
                Err((Failure::Configuration(message), of)) => {
                    record_failure(&mut self.record.policies, definition, true, &message);
                    self.fail(&hook.policy, of, &message);
                }
                Err((failure, _)) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Adds the invocations of a policy with a binding. An error concerns the binding, or the policy as a whole.
    fn select_binding(
        &mut self,
        policy: &'h MutatingPolicy,
        binding: &'h Binding,
        found: &Match,
        run: &mut AdmissionRun<'_>,
    ) -> Result<(), (Failure, Option<&'h Binding>)> {
        let index = self.record.policies.len().saturating_sub(1);
        let Some(policy_record) = self.record.policies.last_mut() else { return Ok(()) };
        let position = (index, policy_record.bindings.len());
        let matching = match &binding.match_resources {
            Some(resources) => matching::matches(resources, run).map(Result::err),
            None => Ok(None),
        };
        let mismatch = matching.as_ref().ok().cloned().flatten();
        policy_record.bindings.push(BindingRecord { mismatch, ..BindingRecord::new(binding, Vec::new()) });
        if matching.map_err(|message| (Failure::Configuration(message), Some(binding)))?.is_some() {
            return Ok(());
        }
        run.convert(&found.kind).map_err(|error| (unconvertible(error, ""), None))?;
        let params = params::collect(policy.definition.param_kind.as_ref(), binding, as_struct, run);
        let params = params.map_err(|error| match error {
            ParamsError::Configuration(message) => (Failure::Configuration(message), Some(binding)),
            ParamsError::Conversion(error) => (unconvertible(error, ""), Some(binding)),
        })?;
        if let Some(record) = self.record.policies.last_mut().and_then(|policy| policy.bindings.last_mut()) {
            record.lacks_params = params.is_empty();
        }
        self.invocations.extend(params.into_iter().map(|param| {
            let found = found.clone();
            Invocation { policy, binding, found, param, position }
        }));
        Ok(())
    }

    /// Reports the reason why a policy or a binding cannot be applied.
    fn fail(&mut self, policy: &MutatingPolicy, binding: Option<&Binding>, message: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.report(policy, binding, &format!("failed to configure {what}: {message}"), false);
    }

    /// Adds an error to the response if the failure policy is `Fail`.
    ///
    /// Source: apiserver `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `PolicyError`.
    /// Rule: MAP-30.
    fn report(
        &mut self,
        policy: &MutatingPolicy,
        binding: Option<&Binding>,
        message: &str,
        is_evaluation: bool,
    ) {
        if policy.definition.failure_policy == FailurePolicy::Ignore {
            return;
        }
        let name = &policy.definition.name;
        let message = match binding {
            Some(binding) => {
                format!("policy '{name}' with binding '{}' denied request: {message}", binding.name)
            }
            None => format!("policy {} denied request: {message}", kubernetes_types::quoting::quote(name)),
        };
        self.errors.push(PolicyError { message, is_evaluation });
    }

    /// Returns the kind of the object that the next invocation changes; `None` after the last invocation.
    pub(crate) fn next_kind(&self) -> Option<Arc<GroupVersionKind>> {
        let next = self.invocations.last().filter(|_| self.refusal.is_none());
        next.map(|invocation| Arc::clone(&invocation.found.kind))
    }

    /// Returns whether the request is rejected regardless of the failure policies.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Applies the next invocation. [`AdmissionRun::convert`] must have been called for its kind.
    ///
    /// Source: apiserver pkg/admission/plugin/policy/mutating/dispatcher.go, `dispatchInvocations`.
    /// Rule: MAP-31, MAP-52, MAP-53, MAP-60, MAP-61, MAP-62.
    pub(crate) fn apply_next(&mut self, run: &mut AdmissionRun<'_>, deadline: Option<Instant>) {
        let Some(invocation) = self.invocations.pop() else { return };
        let mut record =
            PolicyRun { param: invocation.param.as_deref().map(param_name), ..PolicyRun::default() };
        let kind = &invocation.found.kind;
        let object = |run: &AdmissionRun<'_>| run.objects(kind).object.cloned();
        let before = run.explains_policies().then(|| object(run)).flatten();
        let applied = self.apply(&invocation, run, deadline, &mut record);
        if let Some(before) = before
            && record.mutations.iter().any(|mutation| mutation.outcome == Ok(MutationEffect::Changed))
            && let Some(after) = object(run)
        {
            record.change = Some(Box::new(PolicyChange { before, after }));
        }
        let (policy, binding) = invocation.position;
        let policy = self.record.policies.get_mut(policy);
        if let Some(binding) = policy.and_then(|policy| policy.bindings.get_mut(binding)) {
            binding.runs.push(record);
        }
        self.refusal = applied.err();
    }

    fn apply(
        &mut self,
        invocation: &Invocation<'h>,
        run: &mut AdmissionRun<'_>,
        deadline: Option<Instant>,
        record: &mut PolicyRun,
    ) -> Result<(), Refusal> {
        let Invocation { policy, binding, param, .. } = invocation;
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late() {
            return Err(Refusal::Status(out_of_time()));
        }
        let composition = &policy.definition.composition;
        let param_kind = policy.definition.param_kind.as_ref();
        let is_typed = param_kind.is_some_and(|kind| params::is_typed(kind, run.state()));
        let origin = if is_typed { Origin::Typed } else { Origin::Unstructured };
        let param = ParamInput { object: param.as_deref(), origin };
        if !composition.match_conditions.is_empty() {
            self.typed.push(Arc::clone(&invocation.found.kind));
            let input = self.input(invocation, run);
            let evaluation = policy::match_conditions(composition, &input, param, &mut record.expressions);
            let evaluation = evaluation.map_err(|unsupported| not_supported(policy, unsupported))?;
            let error = evaluation.error().map(str::to_owned);
            let matches = evaluation.is_true();
            record.conditions = Some(evaluation);
            if let Some(error) = error {
                self.report(policy, Some(binding), &error, true);
            }
            if !matches {
                return Ok(());
            }
        }
        if self.record.round == Round::Second {
            let key = PolicyInvocation {
                policy: &policy.definition.name,
                binding: &binding.name,
                param: record.param.as_deref(),
            };
            let is_due = policy.reinvocation_policy == ReinvocationPolicy::IfNeeded
                && reinvocation::is_policy_due(key, &run.record);
            if !is_due {
                return Ok(());
            }
        }
        record.invoked = true;
        for mutation in policy.mutations.iter().enumerate() {
            if run.attributes().object.is_none() {
                break;
            }
            if is_late() {
                return Err(Refusal::Status(out_of_time()));
            }
            let started = Instant::now();
            let input = self.input(invocation, run);
            let expressions = &mut record.expressions;
            let result = application::mutate(composition, mutation, &input, param, run.state(), expressions);
            let took = started.elapsed();
            let error = match result {
                Ok(mutated) if weight(&mutated.object) > MAX_OBJECT_BYTES => {
                    let what =
                        format!("objects that take more than {} MiB of memory", MAX_OBJECT_BYTES >> 20);
                    record.mutations.push(MutationRecord { outcome: Err(what.clone()), took });
                    return Err(not_supported(policy, Unsupported { what }));
                }
                Ok(mut mutated) => {
                    let failed_test = mutated.failed_test.take();
                    let changed = self.replace(&invocation.found.kind, mutated, run);
                    let effect = match failed_test {
                        Some(error) => MutationEffect::TestFailed(error),
                        None if changed => MutationEffect::Changed,
                        None => MutationEffect::Unchanged,
                    };
                    record.mutations.push(MutationRecord { outcome: Ok(effect), took });
                    continue;
                }
                Err(MutationError::Failure(error)) => {
                    self.report(policy, Some(binding), &error, true);
                    error
                }
                Err(MutationError::Server(status)) => {
                    let outcome = Err(status.message.clone());
                    record.mutations.push(MutationRecord { outcome, took });
                    return Err(Refusal::Status(status));
                }
                Err(MutationError::Unsupported(unsupported)) => {
                    let outcome = Err(unsupported.to_string());
                    record.mutations.push(MutationRecord { outcome, took });
                    return Err(not_supported(policy, unsupported));
                }
            };
            record.mutations.push(MutationRecord { outcome: Err(error), took });
        }
        Ok(())
    }

    /// Returns the request as the expressions of an invocation see it.
    ///
    /// Rule: MAP-54.
    fn input<'i>(&'i self, invocation: &'i Invocation<'h>, run: &'i AdmissionRun<'_>) -> Input<'i> {
        let kind = &invocation.found.kind;
        let Objects { object, old_object } = run.objects(kind);
        Input {
            subject: Subject {
                attributes: run.attributes(),
                kind,
                object,
                old_object,
                built_in: self.typed.contains(kind) && run.state().is_built_in(kind),
                authorizer: run.authorizer(),
            },
            resource: &invocation.found.resource,
            namespace: self.namespace.as_deref(),
            visible_namespace: None,
        }
    }

    /// Replaces the object of the request, and returns whether it changed.
    ///
    /// The object loses the fractions of seconds in its managed fields, as in [`crate::mutation::apply`].
    fn replace(&mut self, kind: &GroupVersionKind, mutated: Mutated, run: &mut AdmissionRun<'_>) -> bool {
        let Mutated { object, had_labels, failed_test: _ } = mutated;
        let before = run.objects(kind).object;
        let changed = before.is_none_or(|before| !semantically_equal(before, &object, kind));
        self.record.mutated = true;
        self.record.changed |= changed;
        run.round_times();
        run.patch(kind, object, had_labels);
        changed
    }

    /// Returns the record, and the reason why the request is rejected.
    ///
    /// Source: apiserver `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `Dispatch`.
    /// Rule: MAP-30.
    pub(crate) fn finish(self, attributes: &Attributes) -> Checked {
        let denied = status(attributes, self.errors).map(Refusal::Status);
        Checked { record: self.record, refusal: self.refusal.or(denied) }
    }
}

fn not_supported(policy: &MutatingPolicy, Unsupported { what }: Unsupported) -> Refusal {
    let what = format!("the MutatingAdmissionPolicy \"{}\": {what}", policy.definition.name);
    Refusal::Unsupported(Unsupported { what })
}

/// Returns the response for the client: the message of the first error, and all messages as causes.
fn status(attributes: &Attributes, errors: Vec<PolicyError>) -> Option<Box<Status>> {
    let first = errors.first()?;
    let mut status = failure::forbidden(attributes, &first.message);
    status.message.clone_from(&first.message);
    if first.is_evaluation {
        "Invalid".clone_into(&mut status.reason);
    }
    if let Some(details) = &mut status.details {
        let causes = errors.into_iter().map(|PolicyError { message, .. }| message);
        details.causes.extend(causes.map(|message| StatusCause { message, ..StatusCause::default() }));
    }
    Some(status)
}
