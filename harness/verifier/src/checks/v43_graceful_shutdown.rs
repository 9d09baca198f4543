//! V43: a webhook that is being stopped answers all calls that still arrive.

use std::collections::BTreeMap;
use std::time::Duration;

use admission_webhook_client::RedirectOrRetry;
use futures::future::{join, join_all};
use tokio::time::{Instant, sleep};

use super::typical_request::{self, TypicalRequest};
use super::v41_latency::written;
use crate::call_recorder::Exchange;
use crate::check::{
    Audience, Check, Disruption, Observed, Probe, Repeatability, Severity, Skipped, Violation,
};
use crate::environment::Connection;
use crate::subject::Subject;
use crate::webhook_probe::{Stop, WebhookProbe};

pub(super) const CHECK: Check = Check {
    id: "V43",
    title: "graceful shutdown: after SIGTERM, the webhook answers calls in flight and calls that arrive \
            until the endpoints are updated",
    severity: Severity::Warning,
    why: "A Pod receives SIGTERM at the same moment at which its removal from the endpoints is announced, \
          and some clients learn of it after a second or more. A server that stops listening at once, as \
          most do on SIGTERM, fails those calls with `connection refused`, and one that exits at once cuts \
          off the calls in flight with `EOF`. The API server does not retry after either error: each \
          rollout of the webhook fails other users' requests. A preStop hook that sleeps, or a server that \
          keeps serving for some seconds, is enough. `--stop-command` stops the webhook; `--drain` sets how \
          long calls still arrive.",
    help: "Add a preStop hook that sleeps for some seconds, or keep serving for some seconds after SIGTERM.",
    source: "Kubernetes documentation, Pod Lifecycle, Termination of Pods; client-go rest/request.go, which \
             retries no \
             POST after a connection error; knative/pkg#1509; openchoreo/openchoreo#3743",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Intervention(Disruption::Stop, |webhook_probes| Box::pin(run(webhook_probes))),
};

/// The pause after a failed call.
const PERIOD: Duration = Duration::from_millis(20);

async fn run(webhook_probes: &[WebhookProbe<'_>]) -> Vec<Observed> {
    let Some(stop) = webhook_probes.first().and_then(|webhook_probe| webhook_probe.settings.stop.as_ref())
    else {
        let reason = "no command to stop the webhook: see --stop-command";
        return webhook_probes.iter().map(|_| Err(Skipped::unequipped(reason))).collect();
    };
    let callers = join_all(webhook_probes.iter().map(Caller::new)).await;
    if callers.iter().all(Result::is_err) {
        return callers.into_iter().map(|caller| caller.map(|_| Vec::new())).collect();
    }
    let begun = Instant::now();
    let watching = join_all(callers.iter().map(async |caller| match caller {
        Ok(caller) => Ok(caller.watch(stop, begun).await),
        Err(skip) => Err(skip.clone()),
    }));
    // Starts the calls first, so that some are in flight when the command starts.
    let (seen, done) = join(watching, stop.command.within(stop.drain + stop.patience)).await;
    let report = |seen: Result<ShutdownObservations, Skipped>| {
        done.as_ref().map_err(|reason| Skipped::not_checked(format!("--stop-command: {reason}")))?;
        judge(&seen?, stop)
    };
    seen.into_iter().map(report).collect()
}

/// Calls a webhook while it is being stopped.
struct Caller<'a> {
    webhook_probe: &'a WebhookProbe<'a>,
    subject: Subject,
    typical: TypicalRequest<'a>,
}

/// The observations of a webhook that is being stopped.
#[derive(Debug, Default)]
struct ShutdownObservations {
    calls: u64,
    /// The number of failures and the first reason, for each kind of failure.
    failures: BTreeMap<&'static str, (u64, String)>,
    /// The time from the start of the command until the webhook stopped responding.
    stopped_after: Option<Duration>,
}

impl<'a> Caller<'a> {
    /// Creates a caller with one open connection for each concurrent call.
    async fn new(webhook_probe: &'a WebhookProbe<'a>) -> Result<Self, Skipped> {
        let subject = webhook_probe.renewed()?;
        let typical = TypicalRequest::new(webhook_probe, &subject).await?;
        let caller = Self { webhook_probe, subject, typical };
        for exchange in join_all((0..caller.concurrency()).map(|_| caller.call(Connection::Kept))).await {
            typical_request::answered(&exchange).map_err(Skipped::NotChecked)?;
        }
        Ok(caller)
    }

    fn concurrency(&self) -> usize {
        self.webhook_probe.settings.concurrency.max(1)
    }

    async fn call(&self, connection: Connection) -> Exchange {
        let review = self.typical.review.clone();
        self.webhook_probe.environment.call(&self.subject.called, review, connection).await
    }

    /// Calls the webhook until the endpoints are updated, and then waits until the webhook has stopped.
    async fn watch(&self, stop: &Stop, begun: Instant) -> ShutdownObservations {
        let mut seen = ShutdownObservations::default();
        for callers in join_all((0..self.concurrency()).map(|_| self.call_for(stop.drain, begun))).await {
            seen.calls += callers.calls;
            for (kind, (count, first)) in callers.failures {
                seen.failures.entry(kind).or_insert((0, first)).0 += count;
            }
        }
        while begun.elapsed() < stop.drain + stop.patience {
            let exchange = self.call(Connection::New).await;
            if exchange.reply.is_err() {
                seen.stopped_after = Some(begun.elapsed());
                break;
            }
            sleep(PERIOD).await;
        }
        self.webhook_probe.note(format!(
            "{} calls within {} after the start of the command; {}",
            seen.calls,
            written(stop.drain),
            match seen.stopped_after {
                Some(after) => format!("stopped after {} at the latest", written(after)),
                None => "never stopped".to_owned(),
            }
        ));
        seen
    }

    /// Makes sequential calls until `time` has passed.
    async fn call_for(&self, time: Duration, begun: Instant) -> ShutdownObservations {
        let mut seen = ShutdownObservations::default();
        loop {
            let exchange = self.call(Connection::KeptWithoutRepeat).await;
            seen.calls += 1;
            let failure = failure(&exchange);
            let has_failed = failure.is_some();
            if let Some((kind, reason)) = failure {
                seen.failures.entry(kind).or_insert((0, reason)).0 += 1;
            }
            if begun.elapsed() >= time {
                return seen;
            }
            if has_failed {
                sleep(PERIOD).await;
            }
        }
    }
}

/// Returns the kind and the reason of a failed call.
///
/// A response with Retry-After counts as success, because the retry reaches another Pod.
fn failure(exchange: &Exchange) -> Option<(&'static str, String)> {
    if exchange.redirects_and_retries.iter().any(|it| matches!(it, RedirectOrRetry::AskedToWait { .. })) {
        return None;
    }
    let reason = typical_request::answered(exchange).err()?;
    let kind = match &exchange.reply {
        Ok(_) => "returns errors while calls still arrive",
        Err(_) if exchange.reply.as_ref().is_err_and(typical_request::is_late) => "leaves calls unanswered",
        Err(_) if reason.contains("connection refused") => "refuses calls that still arrive",
        Err(_) => "cuts off calls",
    };
    Some((kind, reason))
}

fn judge(seen: &ShutdownObservations, stop: &Stop) -> Observed {
    let violations: Vec<Violation> = seen
        .failures
        .iter()
        .map(|(kind, (count, first))| {
            let message = format!(
                "of {} calls that started within {} of --stop-command, {count} failed: {first}",
                seen.calls,
                written(stop.drain)
            );
            Violation::new(*kind, message)
        })
        .collect();
    if violations.is_empty() && seen.stopped_after.is_none() {
        let time = written(stop.drain + stop.patience);
        let reason = format!(
            "the webhook still responds {time} after --stop-command: check that the \
                              command stops it"
        );
        return Err(Skipped::not_checked(reason));
    }
    Ok(violations)
}
