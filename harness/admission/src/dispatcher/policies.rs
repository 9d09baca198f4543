//! Applies the admission policies of a phase.

use kubernetes_types::status::Status;
use tokio::time::Instant;

use super::{DispatchContext, Dispatcher, Rejection, refusal_for_other_error};
use crate::admission_run::AdmissionRun;
use crate::caller::Caller;
use crate::cluster_state::ConversionError;
use crate::event::{Event, Round};
use crate::policies::{self, Checked, Refusal};
use crate::policy::{MutatingHook, ValidatingHook};

/// The name of the plugin that applies mutating policies.
pub(super) const MUTATING_POLICY: &str = "MutatingAdmissionPolicy";
/// The name of the plugin that applies validating policies.
pub(super) const VALIDATING_POLICY: &str = "ValidatingAdmissionPolicy";

impl<C: Caller> Dispatcher<C> {
    /// Applies all validating policies before any validating webhook is called.
    ///
    /// Rule: POL-01, POL-02.
    pub(super) async fn validate_by_policies(
        &self,
        run: &mut AdmissionRun<'_>,
        hooks: &[ValidatingHook],
        deadline: Option<Instant>,
    ) -> Result<(), Rejection> {
        if hooks.is_empty() {
            return Ok(());
        }
        let checked = self.converting(run, |run| policies::validate(hooks, run, deadline)).await;
        conclude(run, checked.map_err(refusal_for_other_error)?, VALIDATING_POLICY)
    }

    /// Applies all mutating policies before any mutating webhook of the round is called.
    ///
    /// Source: apiserver pkg/admission/plugin/policy/mutating/{dispatcher,plugin}.go.
    /// Rule: MAP-01, MAP-02, MAP-03, MAP-41, NEW-02, NEW-03.
    pub(super) async fn mutate_by_policies(
        &self,
        run: &mut AdmissionRun<'_>,
        hooks: &[MutatingHook],
        chain: &DispatchContext<'_>,
        round: Round,
    ) -> Result<(), Rejection> {
        if hooks.is_empty() {
            return Ok(());
        }
        let selected = self.converting(run, |run| policies::select(hooks, run, round)).await;
        let mut mutating = selected.map_err(refusal_for_other_error)?;
        let mut converted = Ok(());
        while let Some(kind) = mutating.next_kind() {
            converted = self.converting(run, |run| run.convert(&kind)).await;
            if converted.is_err() {
                break;
            }
            mutating.apply_next(run, chain.deadline);
        }
        if converted.is_ok() && !mutating.is_refused() {
            converted = self.converting(run, AdmissionRun::convert_to_request_version).await;
        }
        let checked = mutating.finish(run.attributes());
        conclude(run, checked, MUTATING_POLICY)?;
        converted.map_err(unconvertible)
    }
}

/// Rejects the request because the object that a policy changed cannot be converted.
fn unconvertible(error: ConversionError) -> Rejection {
    match error {
        ConversionError::Refused(text) => {
            let message = format!("failed to convert object: {text}");
            Rejection::Status(Box::new(Status::internal_error(&message)))
        }
        other @ (ConversionError::Unsupported(_)
        | ConversionError::ByWebhook(_)
        | ConversionError::TooManyRequests) => refusal_for_other_error(other),
    }
}

/// Records the results of policies, and rejects the request if one of them does.
fn conclude(run: &mut AdmissionRun<'_>, checked: Checked, plugin: &'static str) -> Result<(), Rejection> {
    let Checked { record, refusal } = checked;
    let phase = record.phase;
    if !(record.policies.is_empty() && record.skipped.is_empty()) {
        run.record.events.push(Event::Policies(Box::new(record)));
    }
    match refusal {
        None => Ok(()),
        Some(Refusal::Unsupported(unsupported)) => Err(Rejection::Unsupported(unsupported)),
        Some(Refusal::Status(status)) => {
            run.record.events.push(Event::PluginRefused { plugin, phase, status: status.clone() });
            Err(Rejection::Status(status))
        }
    }
}
