//! V41: the latency is well below the timeout.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::time::Instant;

use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::{Outcome, WebhookSet};
use crate::reasons::is_invalid_response;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V41",
    title: "latency: the first response and 99 of 100 responses at the expected concurrency take less than \
            half of timeoutSeconds",
    severity: Severity::Warning,
    why: "Every matching request waits for the webhook, and mutating webhooks run one after the other. A \
          webhook that needs most of its timeout on a quiet day exceeds it on a busy day. Requests then \
          fail, or the webhook is skipped, depending on failurePolicy. The first call also needs a \
          connection, a TLS handshake, and one-time initialization, and so does each call after a pause or \
          a restart.",
    help: "Answer from a cache, without network calls in the handler.",
    source: "Admission Webhook Good Practices, Set a small timeout value; Dynamic Admission Control, \
             Availability",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// The number of measured requests.
const REQUESTS: usize = 100;
/// The time limit for a measurement, as a multiple of the webhook's timeout.
const MAX_TIMEOUTS: u32 = 2;
/// The number of measurements that must be slow, because other work may slow the machine during one measurement.
const MEASUREMENTS: usize = 3;

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let Some(sample) = webhook_probe.samples.first() else {
        return Err(Skipped::not_applicable(
            "no object in the corpus matches the webhook's rules and \
                                             selectors",
        ));
    };
    let webhook = &webhook_probe.subject.webhook;
    let timeout = webhook.timeout;
    let alone = webhook_probe.alone();
    // Makes the first call, unless another check has made it.
    if webhook_probe.environment.first_call(&webhook_probe.subject.webhook).is_none() {
        webhook_probe.environment.admit(&alone, sample).await;
    }
    let mut measured = Measured::new(webhook_probe, &alone).await?;
    if webhook_probe.environment.asked(webhook.phase, &webhook.id).answered == 0 {
        // Timeouts are not latencies.
        let figures = format!("no response to any of {} calls", measured.calls);
        webhook_probe.note(figures.clone());
        let message = format!("with a timeout of {} s: {figures}", timeout.as_secs());
        return Ok(vec![Violation::new("slow", message).with_steps(measured.slowest)]);
    }
    for _ in 1..MEASUREMENTS {
        if measured.p99 < timeout / 2 {
            break;
        }
        let again = Measured::new(webhook_probe, &alone).await?;
        // The time limit cuts off a measurement of a webhook that does not respond, so such a measurement
        // looks fast.
        if again.all_came && again.p99 < measured.p99 {
            measured = again;
        }
    }
    let Measured { p99, figures, slowest, .. } = measured;
    webhook_probe.note(figures.clone());
    let mut violations = Vec::new();
    if p99 >= timeout / 2 {
        let message = format!("with a timeout of {} s: {figures}", timeout.as_secs());
        violations.push(Violation::new("slow", message).with_steps(slowest));
    }
    if let Some(first) = webhook_probe.environment.first_call(&webhook_probe.subject.webhook) {
        let figure =
            format!("first call of this run: {}, including connection and TLS handshake", written(first));
        webhook_probe.note(figure.clone());
        // A webhook that is always slow is not reported again for its first call.
        if first >= timeout / 2 && violations.is_empty() {
            let message = format!("with a timeout of {} s: {figure}", timeout.as_secs());
            violations.push(
                Violation::new("slow at first", message).with_help(
                    "Fill caches and open connections before the webhook reports that it is ready.",
                ),
            );
        }
    }
    Ok(violations)
}

/// The measured latencies of [`REQUESTS`] calls.
struct Measured {
    /// The 99th percentile of the latencies.
    p99: Duration,
    /// The number of calls.
    calls: usize,
    /// Whether the webhook answered all calls before the timeout.
    all_came: bool,
    /// The measured values, formatted for the report.
    figures: String,
    /// The slowest call.
    slowest: Option<Arc<Outcome>>,
}

impl Measured {
    /// Measures calls with the concurrency that `--concurrency` specifies.
    ///
    /// # Errors
    /// Returns [`Skipped`] if the webhook was not called, or failed for a reason other than a timeout.
    async fn new(webhook_probe: &WebhookProbe<'_>, alone: &WebhookSet) -> Result<Self, Skipped> {
        let until = Instant::now() + webhook_probe.subject.webhook.timeout * MAX_TIMEOUTS;
        let concurrency = webhook_probe.settings.concurrency.max(1);
        let calls = webhook_probe.samples.iter().cloned().cycle().take(REQUESTS).map(|sample| async move {
            if Instant::now() >= until {
                return None;
            }
            Some(Arc::new(webhook_probe.environment.admit(alone, &sample).await))
        });
        let outcomes: Vec<_> =
            stream::iter(calls).buffer_unordered(concurrency).filter_map(std::future::ready).collect().await;
        let took = |outcome: &Arc<Outcome>| outcome.exchanges.iter().map(|exchange| exchange.took).max();
        let mut times: Vec<Duration> = outcomes
            .iter()
            .flat_map(|outcome| outcome.exchanges.iter().map(|exchange| exchange.took))
            .collect();
        times.sort_unstable();
        let failures: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome.failure()).collect();
        // The time that a webhook takes does not depend on whether its response is valid.
        let all_came = failures.iter().all(|reason| is_invalid_response(reason));
        if let Some(reason) = failures.first()
            && !failures.iter().any(|reason| reason.contains("deadline exceeded"))
            && (!all_came || failures.len() == outcomes.len())
        {
            return Err(Skipped::not_checked(*reason));
        }
        let Some(p99) = percentile(&times, 99) else {
            return Err(Skipped::not_checked("the webhook was not called"));
        };
        let figures = format!(
            "p50 {}, p90 {}, p99 {} of {} responses, {concurrency} at a time",
            written(percentile(&times, 50).unwrap_or_default()),
            written(percentile(&times, 90).unwrap_or_default()),
            written(p99),
            times.len(),
        );
        Ok(Self {
            p99,
            calls: times.len(),
            all_came,
            figures,
            slowest: outcomes.iter().max_by_key(|outcome| took(outcome)).cloned(),
        })
    }
}

/// Returns a percentile of the sorted `times` by the nearest-rank method.
fn percentile(times: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (times.len() * percent).div_ceil(100);
    times.get(rank.saturating_sub(1)).copied()
}

/// Formats a duration for reports, such as `3.2 ms` or `1.5 s`.
pub(super) fn written(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_uses_the_nearest_rank() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        for (percent, expected) in [(50, 100), (90, 180), (99, 198), (100, 200)] {
            assert_eq!(percentile(&times, percent), Some(Duration::from_millis(expected)), "{percent}");
        }
        assert_eq!(percentile(&times[..1], 99), Some(Duration::from_millis(1)));
        assert_eq!(percentile(&[], 99), None);
    }
}
