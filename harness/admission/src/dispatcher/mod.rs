//! Runs admission: mutating plugins and webhooks, reinvocation, then validating plugins and webhooks.

mod call;
mod policies;

use std::fmt;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use kubernetes_types::status::{Status, Unsupported};
use tokio::time::Instant;
use tracing::info;

use self::policies::{MUTATING_POLICY, VALIDATING_POLICY};
use crate::admission_run::AdmissionRun;
use crate::attributes::Operation;
use crate::caller::Caller;
use crate::cluster_state::ConversionError;
use crate::config::Webhook;
use crate::converter::Converter;
use crate::event::{CallResult, Conditions, Event, Mismatch, Part, Phase, Record, Round, Timing};
use crate::failure;
use crate::matching::{self, Decided, Decision, Invocation, WebhookIndex};
use crate::metrics::Metrics;
use crate::mutation::{self, PatchError, Patched};
use crate::plugin::{self, Plugin};
use crate::policy::{MutatingHook, ValidatingHook};
use crate::reinvocation;
use crate::trace_context::TraceContext;

/// Runs admission for requests and calls webhooks through a [`Caller`].
pub struct Dispatcher<C> {
    caller: Arc<C>,
    /// The converter that calls conversion webhooks; if `None`, conversion webhooks are not supported.
    converter: Option<Arc<Converter<C>>>,
    new_uid: fn() -> String,
}

/// The webhooks, plugins, and limits for admitting a request.
#[derive(Clone, Copy)]
pub struct DispatchContext<'a> {
    /// All mutating webhooks of the cluster; `None` if `MutatingAdmissionWebhook` is disabled.
    pub mutating: Option<Webhooks<'a>>,
    /// All validating webhooks of the cluster; `None` if `ValidatingAdmissionWebhook` is disabled.
    pub validating: Option<Webhooks<'a>>,
    /// The mutating policies in evaluation order; `None` if `MutatingAdmissionPolicy` is disabled.
    pub mutating_policies: Option<&'a [MutatingHook]>,
    /// The validating policies in evaluation order; `None` if `ValidatingAdmissionPolicy` is disabled.
    pub validating_policies: Option<&'a [ValidatingHook]>,
    /// The in-tree plugins that run before the webhooks, in the server's order.
    pub plugins: &'a [&'a dyn Plugin],
    /// The in-tree plugins that run after the webhooks, in the server's order.
    pub last: &'a [&'a dyn Plugin],
    /// The time at which the request started.
    pub started: Instant,
    /// The request's deadline; `None` if the request does not have one.
    pub deadline: Option<Instant>,
    /// The trace context of the request, if it has one.
    pub trace: Option<&'a TraceContext>,
    /// The metrics that count calls in progress if the client disconnects; the record is dropped in this case.
    pub metrics: Option<&'a Metrics>,
}

/// The webhooks of one phase, in call order.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "they are all looked at, or an index says which")]
pub enum Webhooks<'a> {
    /// All webhooks. Every decision is recorded, with the reason if a webhook is skipped.
    Listed(&'a [Arc<Webhook>]),
    /// Only webhooks whose rules may match.
    ///
    /// A skipped webhook is recorded only if its conditions exclude it.
    Indexed(&'a WebhookIndex),
}

impl<'a> Webhooks<'a> {
    /// Returns the webhooks to examine for the request of `run`, each with its position among all webhooks.
    fn candidates(
        self,
        run: &mut AdmissionRun<'_>,
    ) -> impl Iterator<Item = (usize, &'a Webhook)> + Send + use<'a> {
        let (webhooks, positions) = match self {
            Self::Listed(webhooks) => (webhooks, (0..webhooks.len()).collect()),
            Self::Indexed(index) => (index.webhooks(), index.candidates(run)),
        };
        positions.into_iter().filter_map(|position| Some((position, &**webhooks.get(position)?)))
    }

    fn skips(self) -> SkipRecording {
        match self {
            Self::Listed(_) => SkipRecording::Recorded,
            Self::Indexed(_) => SkipRecording::Omitted,
        }
    }
}

/// Whether to record skipped webhooks. Webhooks that their conditions exclude are always recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkipRecording {
    Recorded,
    Omitted,
}

impl fmt::Debug for DispatchContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatchContext").field("started", &self.started).finish_non_exhaustive()
    }
}

impl DispatchContext<'_> {
    fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// The reason why a request is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "the server answers, or admit cannot")]
pub enum Rejection {
    /// The request is rejected with this response for the client.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// The request needs a feature that kube-apiserver supports and admit does not.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

impl From<Box<Status>> for Rejection {
    fn from(status: Box<Status>) -> Self {
        Self::Status(status)
    }
}

/// The position of a webhook call in a request.
#[derive(Clone, Copy)]
struct CallPosition {
    phase: Phase,
    round: Round,
    index: usize,
    skips: SkipRecording,
}

impl<C: Caller> Dispatcher<C> {
    /// Creates a dispatcher that assigns random UIDs to reviews. Conversion webhooks are not supported.
    ///
    /// Rule: REQ-02.
    pub fn new(caller: C) -> Self {
        Self { caller: Arc::new(caller), converter: None, new_uid: || uuid::Uuid::new_v4().to_string() }
    }

    /// Creates a dispatcher that calls conversion webhooks through `converter`.
    ///
    /// Admission webhooks are called through the converter's caller.
    pub fn with_converter(converter: Arc<Converter<C>>) -> Self {
        let caller = Arc::clone(converter.caller());
        Self { caller, converter: Some(converter), new_uid: || uuid::Uuid::new_v4().to_string() }
    }

    /// Runs `step` on `run`, and repeats it after calling each conversion webhook that it needs.
    ///
    /// A failed conversion is not repeated within a step: several policies may need it.
    async fn converting<'r, T>(
        &self,
        run: &mut AdmissionRun<'r>,
        mut step: impl FnMut(&mut AdmissionRun<'r>) -> Result<T, ConversionError>,
    ) -> Result<T, ConversionError> {
        let Some(converter) = &self.converter else { return step(run) };
        loop {
            match step(run) {
                Err(ConversionError::ByWebhook(asked)) => {
                    let answer = converter.convert(&asked).await;
                    run.answer(*asked, answer);
                }
                done => {
                    run.forget_failed_conversions();
                    return done;
                }
            }
        }
    }

    /// Decides whether to call `webhook`, records the decision, and returns the invocation if the webhook is called.
    async fn decide<'r>(
        &self,
        webhook: &Webhook,
        position: CallPosition,
        run: &mut AdmissionRun<'r>,
    ) -> Result<Option<Invocation>, Rejection> {
        let step = |run: &mut AdmissionRun<'r>| match matching::decide(webhook, run) {
            Decided { decision: Decision::Unconvertible(error @ ConversionError::ByWebhook(_)), .. } => {
                Err(error)
            }
            decided => Ok(decided),
        };
        let decided = self.converting(run, step).await;
        let decided = decided.unwrap_or_else(|error| Decision::Unconvertible(error).into());
        record_decision(decided, webhook, position, run)
    }

    /// Runs the mutating phase: changes the object of `run` and records what happens.
    ///
    /// # Errors
    /// Returns [`Rejection`] if the request is rejected; the record explains why.
    ///
    /// Source: apiserver pkg/admission/reinvocation.go; pkg/admission/plugin/webhook/mutating/dispatcher.go.
    pub async fn mutate(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Rejection> {
        let started = Instant::now();
        let outcome = self.mutate_in_rounds(run, chain).await;
        record_timing(&mut run.record, Part::Phase, Phase::Mutating, started, outcome)
    }

    /// Runs the validating phase. All matching webhooks are called in parallel.
    ///
    /// # Errors
    /// Returns [`Rejection`] if the request is rejected. As in upstream, this is the first rejection to arrive; the
    /// record contains all rejections.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/validating/dispatcher.go.
    pub async fn validate(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Rejection> {
        let started = Instant::now();
        let outcome = self.validate_in_order(run, chain).await;
        record_timing(&mut run.record, Part::Phase, Phase::Validating, started, outcome)
    }

    async fn validate_in_order(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Rejection> {
        plugin::validate(chain.plugins, run).await?;
        if let Some(hooks) = chain.validating_policies {
            let started = Instant::now();
            let outcome = self.validate_by_policies(run, hooks, chain.deadline).await;
            let part = Part::Plugin(VALIDATING_POLICY);
            record_timing(&mut run.record, part, Phase::Validating, started, outcome)?;
        }
        if let Some(webhooks) = chain.validating {
            let started = Instant::now();
            let outcome = self.validate_by_webhooks(run, chain, webhooks).await;
            let part = Part::Plugin(Phase::Validating.webhook_plugin());
            record_timing(&mut run.record, part, Phase::Validating, started, outcome)?;
        }
        plugin::validate(chain.last, run).await?;
        Ok(())
    }

    /// Runs both rounds. In each round, `chain.plugins` run before the webhooks, and `chain.last` after them.
    ///
    /// Rule: RIV-01, RIV-03.
    async fn mutate_in_rounds(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Rejection> {
        for round in [Round::First, Round::Second] {
            if round == Round::Second && !reinvocation::is_second_round_due(&run.record) {
                break;
            }
            plugin::admit(chain.plugins, run, round)?;
            // kube-apiserver's plugin does not handle deletions.
            if let Some(hooks) = chain.mutating_policies
                && run.attributes().operation != Operation::Delete
            {
                let started = Instant::now();
                let outcome = self.mutate_by_policies(run, hooks, chain, round).await;
                record_timing(
                    &mut run.record,
                    Part::Plugin(MUTATING_POLICY),
                    Phase::Mutating,
                    started,
                    outcome,
                )?;
            }
            if let Some(webhooks) = chain.mutating {
                let started = Instant::now();
                let outcome = self.mutate_by_webhooks(run, chain, webhooks, round).await;
                let part = Part::Plugin(Phase::Mutating.webhook_plugin());
                record_timing(&mut run.record, part, Phase::Mutating, started, outcome)?;
            }
            plugin::admit(chain.last, run, round)?;
        }
        Ok(())
    }

    /// Calls mutating webhooks in sequence. Each webhook sees the changes of the webhooks before it.
    ///
    /// Rule: AUD-07, MUT-01, MUT-02, MUT-17, RIV-10, SEL-25, SEL-32.
    async fn mutate_by_webhooks(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
        webhooks: Webhooks<'_>,
        round: Round,
    ) -> Result<(), Rejection> {
        let phase = Phase::Mutating;
        for (index, webhook) in webhooks.candidates(run) {
            let position = CallPosition { phase, round, index, skips: webhooks.skips() };
            let Some(invocation) = self.decide(webhook, position, run).await? else { continue };
            // Decide before checking for reinvocation: the decision can reject the request in the second round, too.
            if round == Round::Second && !reinvocation::is_due(webhook, &run.record) {
                skip(webhook, position, Mismatch::NotReinvoked, run);
                continue;
            }
            let kind = invocation.kind();
            let converted = self.converting(run, |run| run.convert(kind)).await;
            converted.map_err(|error| reject_unconvertible(error, webhook, position, run))?;
            let mut answered = self.call(webhook, run, &invocation, chain, position).await;
            if let Some(response) = answered.allowed.take() {
                match mutation::apply(&webhook.id.name, &response, kind, run) {
                    Ok(None) => {}
                    Ok(Some(Patched { operations, changed })) => {
                        info!(parent: &answered.span, "Patch applied");
                        answered.called.result = CallResult::Allowed { patch: Some(operations), changed };
                    }
                    Err(PatchError::Failure(failure)) => {
                        answered.called.result = failure::result(webhook.failure_policy, failure);
                    }
                    Err(PatchError::Server(status)) => {
                        answered.called.result = CallResult::ServerError { status, patch: None };
                    }
                    Err(PatchError::Unsupported(unsupported)) => answered.set_unsupported(unsupported),
                }
                let called = &mut answered.called;
                called.took = chain.started.elapsed().saturating_sub(called.started);
            }
            let refusal = answered.refusal();
            let called = answered.called;
            let failed_open = matches!(called.result, CallResult::Failed { failed_open: true, .. });
            run.record.events.push(Event::Called(Box::new(called)));
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
            if failed_open && chain.is_out_of_time() {
                return Err(Rejection::Status(failure::out_of_time()));
            }
        }
        run.forget_texts();
        self.converting(run, AdmissionRun::convert_to_request_version).await.map_err(refusal_for_other_error)
    }

    /// Decides which webhooks match, calls them in parallel, and waits for all calls.
    ///
    /// Rule: AUD-08, SEL-33, VAL-01, VAL-02, VAL-03, VAL-04, VAL-05.
    async fn validate_by_webhooks(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
        webhooks: Webhooks<'_>,
    ) -> Result<(), Rejection> {
        let (phase, round) = (Phase::Validating, Round::First);
        let mut due = Vec::new();
        for (_, webhook) in webhooks.candidates(run) {
            let position = CallPosition { phase, round, index: due.len(), skips: webhooks.skips() };
            let Some(invocation) = self.decide(webhook, position, run).await? else { continue };
            let converted = self.converting(run, |run| run.convert(invocation.kind())).await;
            converted.map_err(|error| reject_unconvertible(error, webhook, position, run))?;
            due.push((webhook, invocation, position));
        }
        if due.is_empty() {
            return Ok(());
        }
        if chain.is_out_of_time() {
            return Err(Rejection::Status(failure::out_of_time()));
        }
        let mut events = Vec::new();
        let mut first = None;
        {
            let run = &*run;
            let mut calls: FuturesUnordered<_> = due
                .iter()
                .map(|(webhook, invocation, position)| self.call(webhook, run, invocation, chain, *position))
                .collect();
            while let Some(answered) = calls.next().await {
                first = first.or_else(|| answered.refusal());
                events.push(Event::Called(Box::new(answered.called)));
            }
        }
        run.forget_texts();
        run.record.events.extend(events);
        first.map_or(Ok(()), Err)
    }
}

impl<C> fmt::Debug for Dispatcher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}

/// Returns the rejection for a conversion error, except for a refused conversion during matching.
fn refusal_for_other_error(error: ConversionError) -> Rejection {
    match error {
        ConversionError::Refused(text) => Rejection::Status(failure::without_reason(text)),
        ConversionError::Unsupported(unsupported) => Rejection::Unsupported(unsupported),
        ConversionError::ByWebhook(asked) => Rejection::Unsupported(Unsupported::from(&*asked)),
        ConversionError::TooManyRequests => {
            Rejection::Status(Box::new(Status::too_many_requests(call::RETRY_AFTER)))
        }
    }
}

/// Records a decision and returns the invocation if the webhook is called.
fn record_decision(
    decided: Decided,
    webhook: &Webhook,
    position: CallPosition,
    run: &mut AdmissionRun<'_>,
) -> Result<Option<Invocation>, Rejection> {
    let Decided { decision, conditions } = decided;
    if let Some(evaluation) = conditions {
        let CallPosition { phase, round, .. } = position;
        let (webhook, failure_policy) = (webhook.id.clone(), webhook.failure_policy);
        let evaluated = Conditions { webhook, phase, round, failure_policy, evaluation };
        run.record.events.push(Event::Conditions(Box::new(evaluated)));
    }
    match decision {
        Decision::Call(invocation) => Ok(Some(invocation)),
        Decision::Skip(mismatch) => {
            skip(webhook, position, mismatch, run);
            Ok(None)
        }
        Decision::Refuse(status) => Err(record_match_failure(webhook, position, status, run)),
        Decision::Unconvertible(error) => Err(reject_unconvertible(error, webhook, position, run)),
    }
}

/// Records that a webhook is skipped if `position.skips` requires it or if its conditions exclude it.
fn skip(webhook: &Webhook, position: CallPosition, mismatch: Mismatch, run: &mut AdmissionRun<'_>) {
    let CallPosition { phase, round, skips, .. } = position;
    // Exclusions by conditions are always recorded, because metrics count them.
    if skips == SkipRecording::Recorded || mismatch == Mismatch::Conditions {
        run.record.events.push(Event::Skipped { webhook: webhook.id.clone(), phase, round, mismatch });
    }
}

fn record_match_failure(
    webhook: &Webhook,
    position: CallPosition,
    status: Box<Status>,
    run: &mut AdmissionRun<'_>,
) -> Rejection {
    let CallPosition { phase, round, .. } = position;
    let event = Event::MatchFailed { webhook: webhook.id.clone(), phase, round, status: status.clone() };
    run.record.events.push(event);
    Rejection::Status(status)
}

/// Rejects the request because its object cannot be converted. Upstream wraps the error twice for a mutating webhook.
///
/// Rule: REQ-19.
fn reject_unconvertible(
    error: ConversionError,
    webhook: &Webhook,
    position: CallPosition,
    run: &mut AdmissionRun<'_>,
) -> Rejection {
    let ConversionError::Refused(text) = error else { return refusal_for_other_error(error) };
    let status = match position.phase {
        Phase::Mutating => Status::internal_error(&Status::internal_error(&text).message),
        Phase::Validating => Status::internal_error(&text),
    };
    record_match_failure(webhook, position, Box::new(status), run)
}

fn record_timing(
    record: &mut Record,
    part: Part,
    phase: Phase,
    started: Instant,
    outcome: Result<(), Rejection>,
) -> Result<(), Rejection> {
    record.timings.push(Timing { part, phase, took: started.elapsed(), refused: outcome.is_err() });
    outcome
}

#[cfg(test)]
mod tests;
