//! V41: quick enough for its own timeout.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::time::Instant;

use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::{Outcome, Verdict, WebhookSet};
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V41",
    title: "quick: the first answer, and 99 of 100 at the expected concurrency, come within half of timeoutSeconds",
    severity: Severity::Warning,
    why: "Every request that matches waits for the webhook, and all mutating webhooks wait for each other. One that \
          needs most of its timeout on a quiet day exceeds it on a busy one: then requests fail, or the webhook is \
          passed over, and which of the two depends on the failurePolicy. The first call needs a connection, a TLS \
          handshake and whatever the webhook does only once: so does each after a pause, and after a new start.",
    source: "Admission Webhook Good Practices, Set a small timeout value; Dynamic Admission Control, Availability",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// How many requests are measured.
const REQUESTS: usize = 100;
/// No more is asked after so many timeouts of the webhook.
const PATIENCE: u32 = 2;
/// How many measurements must say that it is slow: the machine may be busy with something else during one.
const MEASUREMENTS: usize = 3;

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let Some(sample) = webhook_probe.samples.first() else {
        return Err(Obstacle::not_applicable("its rules and selectors pick no object of the corpus"));
    };
    let timeout = webhook_probe.subject.webhook.timeout;
    let alone = webhook_probe.alone();
    // Other checks have made the first call, if there are any.
    if webhook_probe.environment.first_call(&webhook_probe.subject.webhook).is_none() {
        webhook_probe.environment.admit(&alone, sample).await;
    }
    let mut measured = Measured::of(webhook_probe, &alone).await?;
    for _ in 1..MEASUREMENTS {
        if measured.p99 < timeout / 2 {
            break;
        }
        let again = Measured::of(webhook_probe, &alone).await?;
        // Who does not answer is not asked for ever, and what is not asked is over at once.
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
            format!("the first call of this run: {}, with connection and TLS handshake", written(first));
        webhook_probe.note(figure.clone());
        // One that is always slow is no slower at first.
        if first >= timeout / 2 && violations.is_empty() {
            let message = format!("with a timeout of {} s: {figure}", timeout.as_secs());
            violations.push(Violation::new("slow at first", message));
        }
    }
    Ok(violations)
}

/// How long [`REQUESTS`] calls took.
struct Measured {
    /// 99 of 100 took no longer.
    p99: Duration,
    /// Whether all were answered in time.
    all_came: bool,
    /// For people.
    figures: String,
    /// The one that took longest.
    slowest: Option<Arc<Outcome>>,
}

impl Measured {
    /// Makes the calls, as many at a time as `--concurrency` says.
    ///
    /// # Errors
    /// The webhook was not called, or fails otherwise than by taking too long.
    async fn of(webhook_probe: &WebhookProbe<'_>, alone: &WebhookSet) -> Result<Self, Obstacle> {
        let until = Instant::now() + webhook_probe.subject.webhook.timeout * PATIENCE;
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
        let failure = |verdict| if let Verdict::Failed(reason) = verdict { Some(reason) } else { None };
        let failures: Vec<_> = outcomes.iter().filter_map(|outcome| failure(outcome.verdict())).collect();
        if let Some(reason) = failures.first()
            && !failures.iter().any(|reason| reason.contains("deadline exceeded"))
        {
            return Err(Obstacle::not_checked(reason.to_string()));
        }
        let Some(p99) = percentile(&times, 99) else {
            return Err(Obstacle::not_checked("it was not called"));
        };
        let figures = format!(
            "p50 {}, p90 {}, p99 {} of {} answers, {concurrency} at a time",
            written(percentile(&times, 50).unwrap_or_default()),
            written(percentile(&times, 90).unwrap_or_default()),
            written(p99),
            times.len(),
        );
        let all_came = failures.is_empty();
        Ok(Self {
            p99,
            all_came,
            figures,
            slowest: outcomes.iter().max_by_key(|outcome| took(outcome)).cloned(),
        })
    }
}

/// The time within which so many of a hundred answers came: the nearest rank of sorted `times`.
fn percentile(times: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (times.len() * percent).div_ceil(100);
    times.get(rank.saturating_sub(1)).copied()
}

/// For people: `3.2 ms`, `1.5 s`.
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
    fn a_percentile_is_the_nearest_rank() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        for (percent, expected) in [(50, 100), (90, 180), (99, 198), (100, 200)] {
            assert_eq!(percentile(&times, percent), Some(Duration::from_millis(expected)), "{percent}");
        }
        assert_eq!(percentile(&times[..1], 99), Some(Duration::from_millis(1)));
        assert_eq!(percentile(&[], 99), None);
    }
}
