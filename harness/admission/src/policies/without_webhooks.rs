//! Applies policies to a request without calling webhooks.

use std::sync::Arc;

use kubernetes_types::status::Status;

use super::{Checked, Refusal, mutating, validate};
use crate::admission_run::AdmissionRun;
use crate::event::{Event, Round};
use crate::policy::{
    Binding, Definition, Hook, MutatingHook, MutatingPolicy, ParamRef, PolicyRecord, ValidatingBinding,
    ValidatingPolicy, ValidationAction,
};
use crate::reinvocation::is_second_round_due;

/// Evaluates a validating policy with a binding that matches everything and denies violations.
///
/// Returns `None` if the policy does not match the request or must call a webhook for a conversion.
pub fn validate_by(
    policy: &Arc<ValidatingPolicy>,
    param_ref: Option<ParamRef>,
    run: &mut AdmissionRun<'_>,
) -> Option<PolicyRecord> {
    let binding = ValidatingBinding {
        binding: matching_everything(&policy.definition, param_ref),
        validation_actions: vec![ValidationAction::Deny],
    };
    let hook = Hook { policy: Arc::clone(policy), bindings: vec![Arc::new(binding)] };
    validate(&[hook], run, None).ok()?.record.policies.into_iter().next()
}

/// Applies a mutating policy with a binding that matches everything.
///
/// The request of `run` has the changed object afterward. Returns `None` if the policy does not match the request or
/// must call a webhook for a conversion.
pub fn mutate_by(
    policy: &Arc<MutatingPolicy>,
    param_ref: Option<ParamRef>,
    run: &mut AdmissionRun<'_>,
) -> Option<PolicyRecord> {
    let hook = Hook {
        policy: Arc::clone(policy),
        bindings: vec![Arc::new(matching_everything(&policy.definition, param_ref))],
    };
    mutate(&[hook], run, Round::First)?.record.policies.into_iter().next()
}

/// Applies mutating policies in the order of `hooks`, in both rounds, as for a request that matches no webhook.
///
/// The request of `run` has the changed object afterward, and its record has an event for each round. Returns `None` if
/// a webhook must be called for a conversion, or if a policy is not supported.
///
/// # Errors
/// Returns the response that rejects the request.
pub fn mutate_in_order(
    hooks: &[MutatingHook],
    run: &mut AdmissionRun<'_>,
) -> Option<Result<(), Box<Status>>> {
    for round in [Round::First, Round::Second] {
        if round == Round::Second && !is_second_round_due(&run.record) {
            break;
        }
        let Checked { record, refusal } = mutate(hooks, run, round)?;
        run.record.events.push(Event::Policies(Box::new(record)));
        match refusal {
            None => {}
            Some(Refusal::Status(status)) => return Some(Err(status)),
            Some(Refusal::Unsupported(_)) => return None,
        }
    }
    Some(Ok(()))
}

fn mutate(hooks: &[MutatingHook], run: &mut AdmissionRun<'_>, round: Round) -> Option<Checked> {
    let mut mutating = mutating::select(hooks, run, round).ok()?;
    while let Some(kind) = mutating.next_kind() {
        run.convert(&kind).ok()?;
        mutating.apply_next(run, None);
    }
    run.convert_to_request_version().ok()?;
    Some(mutating.finish(run.attributes()))
}

/// Returns a binding that matches everything.
pub fn matching_everything(definition: &Definition, param_ref: Option<ParamRef>) -> Binding {
    Binding {
        name: Arc::clone(&definition.name),
        policy_name: definition.name.to_string(),
        param_ref,
        match_resources: None,
    }
}
