//! Admits a request: in-tree plugins and mutating webhooks, a second round, then the validating ones.

mod call;

use std::fmt;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use kubernetes_types::status::{Status, Unsupported};
use tokio::time::Instant;
use tracing::info;

use crate::admission_run::AdmissionRun;
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
use crate::reinvocation;
use crate::trace_context::TraceContext;

/// Admits requests by calling webhooks with a [`Caller`].
pub struct Dispatcher<C> {
    caller: Arc<C>,
    /// Without one nothing is converted by a webhook.
    converter: Option<Arc<Converter<C>>>,
    new_uid: fn() -> String,
}

/// What a request is admitted with.
#[derive(Clone, Copy)]
pub struct DispatchContext<'a> {
    /// All mutating webhooks of the cluster; none if `MutatingAdmissionWebhook` is off.
    pub mutating: Option<Webhooks<'a>>,
    /// All validating webhooks of the cluster; none if `ValidatingAdmissionWebhook` is off.
    pub validating: Option<Webhooks<'a>>,
    /// The in-tree plugins that run before the webhooks, in the server's order.
    pub plugins: &'a [&'a dyn Plugin],
    /// The in-tree plugins that run after the webhooks, in the server's order.
    pub last: &'a [&'a dyn Plugin],
    /// When the request began.
    pub started: Instant,
    /// When the request's own time is up.
    pub deadline: Option<Instant>,
    /// The trace to which the request belongs, if it came with one.
    pub trace: Option<&'a TraceContext>,
    /// What counts the calls that are under way when the client goes away: the record goes with it.
    pub metrics: Option<&'a Metrics>,
}

/// The webhooks of one phase, in the order in which they are called.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "they are all looked at, or an index says which")]
pub enum Webhooks<'a> {
    /// Each is decided about, and the record has the reason for each that is not called.
    Listed(&'a [Arc<Webhook>]),
    /// Only those whose rules may match are decided about, and of those that are not called the record has only the ones whose
    /// conditions are not true.
    Indexed(&'a WebhookIndex),
}

impl<'a> Webhooks<'a> {
    /// Those that are decided about for the request of `run`, each with its position among all.
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

    fn skips(self) -> Skips {
        match self {
            Self::Listed(_) => Skips::Recorded,
            Self::Indexed(_) => Skips::Omitted,
        }
    }
}

/// What the record has of webhooks that are not called, beside those whose conditions are not true.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skips {
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

/// Why a request is not admitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "the server answers, or admit cannot")]
pub enum Refusal {
    /// What the client gets.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// kube-apiserver would have gone on; admit cannot.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

impl From<Box<Status>> for Refusal {
    fn from(status: Box<Status>) -> Self {
        Self::Status(status)
    }
}

/// Which call of a request.
#[derive(Clone, Copy)]
struct Place {
    phase: Phase,
    round: Round,
    index: usize,
    skips: Skips,
}

impl<C: Caller> Dispatcher<C> {
    /// A dispatcher whose reviews get random uids. It calls no conversion webhook: what needs one is unsupported.
    ///
    /// Rule: REQ-02.
    pub fn new(caller: C) -> Self {
        Self { caller: Arc::new(caller), converter: None, new_uid: || uuid::Uuid::new_v4().to_string() }
    }

    /// The same, which calls webhooks with what `converter` calls conversion webhooks with, and those by it.
    pub fn with_converter(converter: Arc<Converter<C>>) -> Self {
        let caller = Arc::clone(converter.caller());
        Self { caller, converter: Some(converter), new_uid: || uuid::Uuid::new_v4().to_string() }
    }

    /// Takes a step of `run`, calling the conversion webhooks that it needs: what the core asks for is answered here.
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
                done => return done,
            }
        }
    }

    /// The invocation if the webhook is called; what else there is to say goes into the record.
    async fn decide<'r>(
        &self,
        webhook: &Webhook,
        place: Place,
        run: &mut AdmissionRun<'r>,
    ) -> Result<Option<Invocation>, Refusal> {
        let step = |run: &mut AdmissionRun<'r>| match matching::decide(webhook, run) {
            Decided { decision: Decision::Unconvertible(error @ ConversionError::ByWebhook(_)), .. } => {
                Err(error)
            }
            decided => Ok(decided),
        };
        let decided = self.converting(run, step).await;
        let decided = decided.unwrap_or_else(|error| Decision::Unconvertible(error).into());
        take_down(decided, webhook, place, run)
    }

    /// The mutating phase: changes the object of `run` and writes into its record what happened.
    ///
    /// # Errors
    /// [`Refusal`] when the request is not admitted; the record then says how it came to that.
    ///
    /// Source: apiserver pkg/admission/reinvocation.go; pkg/admission/plugin/webhook/mutating/dispatcher.go.
    pub async fn mutate(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Refusal> {
        let started = Instant::now();
        let outcome = self.mutate_in_rounds(run, chain).await;
        timed(&mut run.record, Part::Phase, Phase::Mutating, started, outcome)
    }

    /// The validating phase: all webhooks that match are called at the same time.
    ///
    /// # Errors
    /// [`Refusal`] when the request is not admitted: the one that came first, as upstream; the record has them all.
    ///
    /// Source: apiserver pkg/admission/plugin/webhook/validating/dispatcher.go.
    pub async fn validate(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Refusal> {
        let started = Instant::now();
        let outcome = self.validate_in_order(run, chain).await;
        timed(&mut run.record, Part::Phase, Phase::Validating, started, outcome)
    }

    async fn validate_in_order(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Refusal> {
        plugin::validate(chain.plugins, run)?;
        if let Some(webhooks) = chain.validating {
            let started = Instant::now();
            let outcome = self.validate_by_webhooks(run, chain, webhooks).await;
            let part = Part::Plugin("ValidatingAdmissionWebhook");
            timed(&mut run.record, part, Phase::Validating, started, outcome)?;
        }
        plugin::validate(chain.last, run)?;
        Ok(())
    }

    /// In each round all plugins come before all webhooks.
    ///
    /// Rule: RIV-01, RIV-03.
    async fn mutate_in_rounds(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
    ) -> Result<(), Refusal> {
        for round in [Round::First, Round::Second] {
            if round == Round::Second && !reinvocation::is_second_round_due(&run.record) {
                break;
            }
            plugin::admit(chain.plugins, run, round)?;
            if let Some(webhooks) = chain.mutating {
                let started = Instant::now();
                let outcome = self.mutate_by_webhooks(run, chain, webhooks, round).await;
                let part = Part::Plugin("MutatingAdmissionWebhook");
                timed(&mut run.record, part, Phase::Mutating, started, outcome)?;
            }
            plugin::admit(chain.last, run, round)?;
        }
        Ok(())
    }

    /// One webhook after another; each sees what those before it did.
    ///
    /// Rule: AUD-07, MUT-01, MUT-02, MUT-17, RIV-10, SEL-25, SEL-32.
    async fn mutate_by_webhooks(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
        webhooks: Webhooks<'_>,
        round: Round,
    ) -> Result<(), Refusal> {
        let phase = Phase::Mutating;
        for (index, webhook) in webhooks.candidates(run) {
            let place = Place { phase, round, index, skips: webhooks.skips() };
            let Some(invocation) = self.decide(webhook, place, run).await? else { continue };
            // The decision comes first: in the second round, too, it may refuse the request.
            if round == Round::Second && !reinvocation::is_due(webhook, &run.record) {
                skip(webhook, place, Mismatch::NotReinvoked, run);
                continue;
            }
            let kind = invocation.kind();
            let converted = self.converting(run, |run| run.convert(kind)).await;
            converted.map_err(|error| unconvertible(error, webhook, place, run))?;
            let mut answered = self.call(webhook, run, &invocation, chain, place).await;
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
                return Err(Refusal::Status(failure::out_of_time()));
            }
        }
        run.forget_texts();
        self.converting(run, AdmissionRun::fold_back).await.map_err(not_refused)
    }

    /// Decides about all webhooks, then calls all that match at the same time and waits for all of them.
    ///
    /// Rule: AUD-08, SEL-33, VAL-01, VAL-02, VAL-03, VAL-04, VAL-05.
    async fn validate_by_webhooks(
        &self,
        run: &mut AdmissionRun<'_>,
        chain: &DispatchContext<'_>,
        webhooks: Webhooks<'_>,
    ) -> Result<(), Refusal> {
        let (phase, round) = (Phase::Validating, Round::First);
        let mut due = Vec::new();
        for (_, webhook) in webhooks.candidates(run) {
            let place = Place { phase, round, index: due.len(), skips: webhooks.skips() };
            let Some(invocation) = self.decide(webhook, place, run).await? else { continue };
            let converted = self.converting(run, |run| run.convert(invocation.kind())).await;
            converted.map_err(|error| unconvertible(error, webhook, place, run))?;
            due.push((webhook, invocation, place));
        }
        if due.is_empty() {
            return Ok(());
        }
        if chain.is_out_of_time() {
            return Err(Refusal::Status(failure::out_of_time()));
        }
        let mut events = Vec::new();
        let mut first = None;
        {
            let run = &*run;
            let mut calls: FuturesUnordered<_> = due
                .iter()
                .map(|(webhook, invocation, place)| self.call(webhook, run, invocation, chain, *place))
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

/// Why a request is not admitted whose conversion failed in another way than kube-apiserver's would.
fn not_refused(error: ConversionError) -> Refusal {
    match error {
        ConversionError::Refused(text) => Refusal::Status(failure::bare(text)),
        ConversionError::Unsupported(unsupported) => Refusal::Unsupported(unsupported),
        ConversionError::ByWebhook(asked) => Refusal::Unsupported(Unsupported::from(&*asked)),
        ConversionError::TooManyRequests => {
            Refusal::Status(Box::new(Status::too_many_requests(call::RETRY_AFTER)))
        }
    }
}

/// What a decision comes to.
fn take_down(
    decided: Decided,
    webhook: &Webhook,
    place: Place,
    run: &mut AdmissionRun<'_>,
) -> Result<Option<Invocation>, Refusal> {
    let Decided { decision, conditions } = decided;
    if let Some(evaluation) = conditions {
        let Place { phase, round, .. } = place;
        let (webhook, failure_policy) = (webhook.id.clone(), webhook.failure_policy);
        let evaluated = Conditions { webhook, phase, round, failure_policy, evaluation };
        run.record.events.push(Event::Conditions(Box::new(evaluated)));
    }
    match decision {
        Decision::Call(invocation) => Ok(Some(invocation)),
        Decision::Skip(mismatch) => {
            skip(webhook, place, mismatch, run);
            Ok(None)
        }
        Decision::Refuse(status) => Err(refused(webhook, place, status, run)),
        Decision::Unconvertible(error) => Err(unconvertible(error, webhook, place, run)),
    }
}

/// Records that a webhook is not called, if that is to be recorded.
fn skip(webhook: &Webhook, place: Place, mismatch: Mismatch, run: &mut AdmissionRun<'_>) {
    let Place { phase, round, skips, .. } = place;
    // Metrics count those that their conditions exclude.
    if skips == Skips::Recorded || mismatch == Mismatch::Conditions {
        run.record.events.push(Event::Skipped { webhook: webhook.id.clone(), phase, round, mismatch });
    }
}

fn refused(webhook: &Webhook, place: Place, status: Box<Status>, run: &mut AdmissionRun<'_>) -> Refusal {
    let Place { phase, round, .. } = place;
    let event = Event::MatchFailed { webhook: webhook.id.clone(), phase, round, status: status.clone() };
    run.record.events.push(event);
    Refusal::Status(status)
}

/// Upstream wraps the error of a mutating webhook's conversion twice.
///
/// Rule: REQ-19.
fn unconvertible(
    error: ConversionError,
    webhook: &Webhook,
    place: Place,
    run: &mut AdmissionRun<'_>,
) -> Refusal {
    let ConversionError::Refused(text) = error else { return not_refused(error) };
    let status = match place.phase {
        Phase::Mutating => Status::internal_error(&Status::internal_error(&text).message),
        Phase::Validating => Status::internal_error(&text),
    };
    refused(webhook, place, Box::new(status), run)
}

fn timed(
    record: &mut Record,
    part: Part,
    phase: Phase,
    started: Instant,
    outcome: Result<(), Refusal>,
) -> Result<(), Refusal> {
    record.timings.push(Timing { part, phase, took: started.elapsed(), refused: outcome.is_err() });
    outcome
}

#[cfg(test)]
mod tests;
