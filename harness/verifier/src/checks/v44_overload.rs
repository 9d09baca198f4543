//! V44: excess concurrent calls are rejected quickly, and the webhook recovers.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use kubernetes_admission::config::Webhook;
use tokio::time::Instant;

use super::typical_request::{self, TypicalRequest};
use super::v41_latency::written;
use crate::call_recorder::Exchange;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::Connection;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V44",
    title: "overload: many concurrent calls are answered or fail within timeoutSeconds, and the webhook \
            recovers",
    severity: Severity::Warning,
    why: "When a namespace is restored or a node is drained, an API server has hundreds of writes in \
          flight, and each of them calls the webhook. A webhook that queues more calls than it can handle \
          makes all of them wait for their timeout and works on responses that no caller waits for. One \
          that returns 429 or 503 at once fails some calls and serves the others. It is worse if the \
          webhook stays slow or unavailable after the wave. `--overload` sets the number of concurrent \
          calls.",
    help: "Limit the number of concurrent requests, and return 429 or 503 for the rest.",
    source: "Admission Webhook Good Practices, Use a small timeout, load balancing; kube-apiserver, \
             --max-mutating-requests-inflight",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// The number of sequential calls that measure the normal response time.
const IDLE_CALLS: usize = 10;
/// The time limit for recovery, as a multiple of the webhook's timeout.
const RECOVERY_TIMEOUTS: u32 = 2;
/// The tolerance in comparisons. A call counts as fast if it takes at most this much longer, or twice as long.
const NOISE: Duration = Duration::from_millis(50);
/// The interval between calls to a webhook that has not recovered.
const PERIOD: Duration = Duration::from_millis(20);

/// The number of waves that must contain unanswered calls, because other work may slow the machine during a wave.
const WAVES: usize = 3;
/// The number of waves with unanswered calls during which the control webhook must be fast.
const CLEAR_WAVES: usize = 2;

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let typical = TypicalRequest::new(webhook_probe, webhook_probe.subject).await?;
    let timeout = webhook_probe.subject.called.timeout;
    let baseline = IdleBaseline::new(webhook_probe, &typical).await?;
    let number = webhook_probe.settings.overload.max(1);
    let mut hangs = None;
    let mut clear = 0;
    let mut slowest_control = Duration::ZERO;
    let mut quick_control = None;
    for wave_number in 0..WAVES {
        let wave = join_all((0..number).map(|_| call(webhook_probe, &typical))).await;
        if wave_number == 0 {
            webhook_probe.note(figures(&wave));
        }
        let hang = late(&wave, timeout);
        if let Some(violation) = baseline.is_not_back(webhook_probe, &typical, number).await? {
            return Ok(hang.into_iter().chain([violation]).collect());
        }
        let Some(hang) = hang else { return Ok(Vec::new()) };
        hangs.get_or_insert(hang);
        match control_wave(webhook_probe, &typical, number).await {
            Some(took) if took >= timeout / 2 => slowest_control = slowest_control.max(took),
            took => {
                clear += 1;
                quick_control = quick_control.max(took);
            }
        }
    }
    if clear < CLEAR_WAVES {
        let reason = format!(
            "this machine is too busy: of {number} concurrent calls to a webhook that responds immediately, \
             the last one took {}",
            written(slowest_control)
        );
        return Err(Skipped::not_checked(reason));
    }
    Ok(hangs.into_iter().map(|hang| with_control(hang, quick_control, number)).collect())
}

async fn call(webhook_probe: &WebhookProbe<'_>, typical: &TypicalRequest<'_>) -> Exchange {
    webhook_probe
        .environment
        .call(&webhook_probe.subject.called, typical.review.clone(), Connection::Kept)
        .await
}

/// Calls the control webhook and returns the duration, or `None` if there is no control webhook.
async fn call_control(webhook_probe: &WebhookProbe<'_>, typical: &TypicalRequest<'_>) -> Option<Duration> {
    let control = webhook_probe.settings.control.as_ref()?;
    let webhook = Webhook { timeout: webhook_probe.subject.called.timeout, ..(**control).clone() };
    Some(
        webhook_probe.environment.call_control(&webhook, typical.review.clone(), Connection::Kept).await.took,
    )
}

/// Returns the duration of the slowest of `number` concurrent calls to the control webhook, if there is one.
async fn control_wave(
    webhook_probe: &WebhookProbe<'_>,
    typical: &TypicalRequest<'_>,
    number: usize,
) -> Option<Duration> {
    join_all((0..number).map(|_| call_control(webhook_probe, typical))).await.into_iter().flatten().max()
}

/// The durations of single calls before the first wave: the slowest of [`IDLE_CALLS`] calls.
struct IdleBaseline {
    webhook: Duration,
    /// The duration of calls to the control webhook; `None` if there is no control webhook.
    control: Option<Duration>,
}

impl IdleBaseline {
    /// Measures the duration of single calls to the webhook and to the control webhook.
    ///
    /// # Errors
    /// Returns [`Skipped`] if the webhook does not respond.
    async fn new(webhook_probe: &WebhookProbe<'_>, typical: &TypicalRequest<'_>) -> Result<Self, Skipped> {
        let (mut webhook, mut control) = (Duration::ZERO, None);
        for _ in 0..IDLE_CALLS {
            let exchange = call(webhook_probe, typical).await;
            typical_request::answered(&exchange).map_err(Skipped::NotChecked)?;
            webhook = webhook.max(exchange.took);
            control = control.max(call_control(webhook_probe, typical).await);
        }
        Ok(Self { webhook, control })
    }

    /// Returns a violation if the webhook remains slower than before after a wave of `number` calls.
    ///
    /// # Errors
    /// Returns [`Skipped`] if both the webhook and the control webhook are slower than before.
    async fn is_not_back(
        &self,
        webhook_probe: &WebhookProbe<'_>,
        typical: &TypicalRequest<'_>,
        number: usize,
    ) -> Result<Option<Violation>, Skipped> {
        let (started, patience) = (Instant::now(), webhook_probe.subject.called.timeout * RECOVERY_TIMEOUTS);
        let state = loop {
            let exchange = call(webhook_probe, typical).await;
            let is_late = exchange.reply.as_ref().is_err_and(typical_request::is_late);
            let (state, is_slow) = match typical_request::answered(&exchange) {
                Ok(()) if is_as_quick(exchange.took, self.webhook) => return Ok(None),
                Ok(()) => (format!("a single call takes {}", written(exchange.took)), true),
                Err(reason) => (format!("a single call gets no response: {reason}"), is_late),
            };
            if started.elapsed() < patience {
                tokio::time::sleep(PERIOD).await;
                continue;
            }
            if let (true, Some(before)) = (is_slow, self.control)
                && let Some(took) = call_control(webhook_probe, typical).await
                && !is_as_quick(took, before)
            {
                let reason = format!(
                    "this machine is too busy: after {number} concurrent calls, {state}, and a call to a \
                     webhook that responds immediately takes {}",
                    written(took)
                );
                return Err(Skipped::not_checked(reason));
            }
            break state;
        };
        let message = format!(
            "{} after {number} concurrent calls, {state}; before, it took {} at most",
            written(started.elapsed()),
            written(self.webhook)
        );
        Ok(Some(Violation::new("does not recover", message).with_severity(Severity::Error)))
    }
}

fn is_as_quick(took: Duration, before: Duration) -> bool {
    took <= (before * 2).max(before + NOISE)
}

fn late(wave: &[Exchange], timeout: Duration) -> Option<Violation> {
    let late =
        wave.iter().filter(|exchange| exchange.reply.as_ref().is_err_and(typical_request::is_late)).count();
    let message = format!(
        "of {} concurrent calls, {late} got no response within the timeout of {} s",
        wave.len(),
        timeout.as_secs()
    );
    (late > 0).then(|| Violation::new("hangs under load", message))
}

/// Adds the duration of the same calls to the control webhook, so that the machine can be excluded as the cause.
fn with_control(mut hang: Violation, control: Option<Duration>, number: usize) -> Violation {
    if let Some(took) = control {
        hang.message = format!(
            "{}; a control webhook in admit, which responds immediately, answered {number} calls in {}",
            hang.message,
            written(took)
        );
    }
    hang.with_help(
        "Limit the number of concurrent requests, and return 429 or 503 for the rest. \
         Set the expected number of concurrent calls with --overload.",
    )
}

/// Formats the number and the durations of the calls in a wave.
fn figures(wave: &[Exchange]) -> String {
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for exchange in wave {
        match typical_request::answered(exchange) {
            Ok(()) => slowest = slowest.max(exchange.took),
            Err(reason) => *failures.entry(reason).or_default() += 1,
        }
    }
    let failed: usize = failures.values().sum();
    let shed = match failures.iter().max_by_key(|(_, count)| **count) {
        Some((reason, _)) => format!("; {failed} failed, most with: {reason}"),
        None => String::new(),
    };
    format!(
        "of {} concurrent calls, {} were answered, the last one after {}{shed}",
        wave.len(),
        wave.len() - failed,
        written(slowest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_latency_and_noise_are_tolerated() {
        let millis = Duration::from_millis;
        for (took, before, expected) in
            [(50, 1, true), (52, 1, false), (200, 100, true), (201, 100, false), (130, 80, true)]
        {
            assert_eq!(is_as_quick(millis(took), millis(before)), expected, "{took} {before}");
        }
    }
}
