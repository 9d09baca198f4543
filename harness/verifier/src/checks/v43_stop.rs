//! V43: a webhook that is ended answers the calls that still come.

use std::collections::BTreeMap;
use std::time::Duration;

use admission_webhook_client::RedirectOrRetry;
use futures::future::{join, join_all};
use tokio::time::{Instant, sleep};

use super::usual::{self, Usual};
use super::v41_latency::written;
use crate::check::{Audience, Check, Observed, Obstacle, Occasion, Probe, Severity, Violation};
use crate::environment::Connection;
use crate::line::Exchange;
use crate::subject::Subject;
use crate::webhook_probe::{Stop, WebhookProbe};

pub(super) const CHECK: Check = Check {
    id: "V43",
    title: "SIGTERM: calls in flight are answered, and so are those that come until the endpoints are updated",
    severity: Severity::Warning,
    why: "A pod gets its SIGTERM at the same moment at which everybody is told that it is no endpoint any more, and some \
          hear it a second or more later. A server that stops to listen at once, which is what most do on SIGTERM, meets \
          those calls with `connection refused`, and one that ends at once cuts off those under way with `EOF`. The API \
          server sends no review again after either: each rollout of the webhook fails other people's requests. A preStop \
          hook that sleeps, or a server that goes on for some seconds, is all it takes. `--stop-command` ends the \
          webhook, `--drain` says for how long calls still come.",
    source: "Kubernetes documentation, Pod Lifecycle, Termination of Pods; client-go rest/request.go, which retries no \
             POST after a connection error; knative/pkg#1509; openchoreo/openchoreo#3743",
    audience: Audience::All,
    probe: Probe::Intervention(Occasion::Stop, |stations| Box::pin(run(stations))),
};

/// How long nothing is asked after a failure.
const PERIOD: Duration = Duration::from_millis(20);

async fn run(stations: &[WebhookProbe<'_>]) -> Vec<Observed> {
    let Some(stop) = stations.first().and_then(|webhook_probe| webhook_probe.settings.stop.as_ref()) else {
        let reason = "no command is given that stops it: see --stop-command";
        return stations.iter().map(|_| Err(Obstacle::unequipped(reason))).collect();
    };
    let callers = join_all(stations.iter().map(Caller::of)).await;
    if callers.iter().all(Result::is_err) {
        return callers.into_iter().map(|caller| caller.map(|_| Vec::new())).collect();
    }
    let begun = Instant::now();
    let watching = join_all(callers.iter().map(async |caller| match caller {
        Ok(caller) => Ok(caller.watch(stop, begun).await),
        Err(obstacle) => Err(obstacle.clone()),
    }));
    // The calls first, so that some are under way when the command begins.
    let (seen, done) = join(watching, stop.command.within(stop.drain + stop.patience)).await;
    let report = |seen: Result<Seen, Obstacle>| {
        done.as_ref().map_err(|reason| Obstacle::not_checked(format!("--stop-command: {reason}")))?;
        judge(&seen?, stop)
    };
    seen.into_iter().map(report).collect()
}

/// Calls one webhook.
struct Caller<'a> {
    webhook_probe: &'a WebhookProbe<'a>,
    subject: Subject,
    usual: Usual<'a>,
}

/// What was seen of a webhook that was ended.
#[derive(Debug, Default)]
struct Seen {
    calls: u64,
    /// By their kinds: how many, and what the first one was told.
    failures: BTreeMap<&'static str, (u64, String)>,
    /// When it was no longer there, after the beginning of the command.
    gone: Option<Duration>,
}

impl<'a> Caller<'a> {
    /// One who has as many connections as there are callers at a time.
    async fn of(webhook_probe: &'a WebhookProbe<'a>) -> Result<Self, Obstacle> {
        let subject = webhook_probe.renewed()?;
        let usual = Usual::of(webhook_probe, &subject).await?;
        let caller = Self { webhook_probe, subject, usual };
        for exchange in join_all((0..caller.concurrency()).map(|_| caller.call(Connection::Kept))).await {
            usual::answered(&exchange).map_err(Obstacle::NotChecked)?;
        }
        Ok(caller)
    }

    fn concurrency(&self) -> usize {
        self.webhook_probe.settings.concurrency.max(1)
    }

    async fn call(&self, connection: Connection) -> Exchange {
        let review = self.usual.review.clone();
        self.webhook_probe.environment.call(&self.subject.called, review, connection).await
    }

    /// Calls it until the endpoints are updated, and then waits until it is gone.
    async fn watch(&self, stop: &Stop, begun: Instant) -> Seen {
        let mut seen = Seen::default();
        for callers in join_all((0..self.concurrency()).map(|_| self.call_for(stop.drain, begun))).await {
            seen.calls += callers.calls;
            for (kind, (count, first)) in callers.failures {
                seen.failures.entry(kind).or_insert((0, first)).0 += count;
            }
        }
        while begun.elapsed() < stop.drain + stop.patience {
            let exchange = self.call(Connection::New).await;
            if exchange.reply.is_err() {
                seen.gone = Some(begun.elapsed());
                break;
            }
            sleep(PERIOD).await;
        }
        self.webhook_probe.note(format!(
            "{} calls within {} of the beginning of the command; {}",
            seen.calls,
            written(stop.drain),
            match seen.gone {
                Some(after) => format!("gone after {} at the latest", written(after)),
                None => "never gone".to_owned(),
            }
        ));
        seen
    }

    /// One call after the other, the last of which begins within `time`.
    async fn call_for(&self, time: Duration, begun: Instant) -> Seen {
        let mut seen = Seen::default();
        loop {
            let exchange = self.call(Connection::Kept).await;
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

/// What a call came to: a kind, and the reason. One that is asked to come again is answered then, by another pod.
fn failure(exchange: &Exchange) -> Option<(&'static str, String)> {
    if exchange.redirects_and_retries.iter().any(|it| matches!(it, RedirectOrRetry::AskedToWait { .. })) {
        return None;
    }
    let reason = usual::answered(exchange).err()?;
    let kind = match &exchange.reply {
        Ok(_) => "answers with errors while calls still come",
        Err(_) if exchange.reply.as_ref().is_err_and(usual::is_late) => "leaves calls without an answer",
        Err(_) if reason.contains("connection refused") => "refuses calls that still come",
        Err(_) => "cuts calls off",
    };
    Some((kind, reason))
}

fn judge(seen: &Seen, stop: &Stop) -> Observed {
    let violations: Vec<Violation> = seen
        .failures
        .iter()
        .map(|(kind, (count, first))| {
            let message = format!(
                "of {} calls that began within {} of --stop-command {count} failed so: {first}",
                seen.calls,
                written(stop.drain)
            );
            Violation::new(*kind, message)
        })
        .collect();
    if violations.is_empty() && seen.gone.is_none() {
        let time = written(stop.drain + stop.patience);
        let reason = format!("it still answers {time} after --stop-command: was it ended at all?");
        return Err(Obstacle::not_checked(reason));
    }
    Ok(violations)
}
