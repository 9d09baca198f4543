//! Applies one policy to a request, without other policies and webhooks.

use std::sync::Arc;

use super::{mutating, validate};
use crate::admission_run::AdmissionRun;
use crate::event::Round;
use crate::policy::{
    Binding, Definition, Hook, MutatingPolicy, ParamRef, PolicyRecord, ValidatingBinding, ValidatingPolicy,
    ValidationAction,
};

/// Evaluates a validating policy with a binding that matches everything and denies violations.
///
/// Returns `None` if the policy does not match the request or must call a webhook for a conversion.
pub fn validate_by(
    policy: &Arc<ValidatingPolicy>,
    param_ref: Option<ParamRef>,
    run: &mut AdmissionRun<'_>,
) -> Option<PolicyRecord> {
    let binding = ValidatingBinding {
        binding: binding(&policy.definition, param_ref),
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
    let binding = Arc::new(binding(&policy.definition, param_ref));
    let hooks = [Hook { policy: Arc::clone(policy), bindings: vec![binding] }];
    let mut mutating = mutating::select(&hooks, run, Round::First).ok()?;
    while let Some(kind) = mutating.next_kind() {
        run.convert(&kind).ok()?;
        mutating.apply_next(run, None);
    }
    run.convert_to_request_version().ok()?;
    mutating.finish(run.attributes()).record.policies.into_iter().next()
}

fn binding(definition: &Definition, param_ref: Option<ParamRef>) -> Binding {
    Binding {
        name: Arc::clone(&definition.name),
        policy_name: definition.name.to_string(),
        param_ref,
        match_resources: None,
    }
}
