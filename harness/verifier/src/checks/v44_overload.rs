//! V44: too many calls at a time are shed, not held, and leave nothing behind.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use kubernetes_admission::config::Webhook;
use tokio::time::Instant;

use super::usual::{self, Usual};
use super::v41_latency::written;
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::Connection;
use crate::line::Exchange;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V44",
    title: "overload: many calls at a time are answered, or fail within timeoutSeconds, and it recovers",
    severity: Severity::Warning,
    why: "When a namespace is restored or a node is drained, an API server has hundreds of writes under way, and each of \
          them calls. A webhook that holds more calls than it can do makes all of them wait for their timeout, and works on \
          answers that nobody waits for any more; one that says 429 or 503 at once fails some and serves the others. \
          Worse is one that stays slow, or away, when the wave is over. `--overload` says how many calls come at a time.",
    source: "Admission Webhook Good Practices, Use a small timeout, load balancing; kube-apiserver, \
             --max-mutating-requests-inflight",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// How many calls, one after the other, say how quick it is.
const UNHURRIED: usize = 10;
/// How many times its own timeout a webhook may take to recover.
const PATIENCE: u32 = 2;
/// A call that takes longer than before by no more than that, or than twice as long, is as quick as before.
const NOISE: Duration = Duration::from_millis(50);
/// How often a webhook that has not recovered is asked.
const PERIOD: Duration = Duration::from_millis(20);

/// How many waves must leave calls without an answer: the machine may be busy with something else during one.
const WAVES: usize = 3;
/// How many of them must come when the machine is not too busy for the control.
const CLEAR_WAVES: usize = 2;

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let usual = Usual::of(webhook_probe, webhook_probe.subject).await?;
    let timeout = webhook_probe.subject.called.timeout;
    let calm = Calm::of(webhook_probe, &usual).await?;
    let number = webhook_probe.settings.overload.max(1);
    let mut hangs = None;
    let mut clear = 0;
    let mut slowest_control = Duration::ZERO;
    for wave_number in 0..WAVES {
        let wave = join_all((0..number).map(|_| call(webhook_probe, &usual))).await;
        if wave_number == 0 {
            webhook_probe.note(figures(&wave));
        }
        let hang = late(&wave, timeout);
        if let Some(violation) = calm.is_not_back(webhook_probe, &usual, number).await? {
            return Ok(hang.into_iter().chain([violation]).collect());
        }
        let Some(hang) = hang else { return Ok(Vec::new()) };
        hangs.get_or_insert(hang);
        match control_wave(webhook_probe, &usual, number).await {
            Some(took) if took >= timeout / 2 => slowest_control = slowest_control.max(took),
            Some(_) | None => clear += 1,
        }
    }
    if clear < CLEAR_WAVES {
        let reason = format!(
            "this machine is too busy: of {number} calls at a time to a webhook that answers at once, the last one took {}",
            written(slowest_control)
        );
        return Err(Obstacle::not_checked(reason));
    }
    Ok(hangs.into_iter().collect())
}

async fn call(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>) -> Exchange {
    webhook_probe
        .environment
        .call(&webhook_probe.subject.called, usual.review.clone(), Connection::Kept)
        .await
}

/// Calls the control; none if there is none.
async fn call_control(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>) -> Option<Duration> {
    let control = webhook_probe.settings.control.as_ref()?;
    let webhook = Webhook { timeout: webhook_probe.subject.called.timeout, ..(**control).clone() };
    Some(webhook_probe.environment.call_control(&webhook, usual.review.clone(), Connection::Kept).await.took)
}

/// How long the slowest of as many calls of the control took; none if there is none.
async fn control_wave(
    webhook_probe: &WebhookProbe<'_>,
    usual: &Usual<'_>,
    number: usize,
) -> Option<Duration> {
    join_all((0..number).map(|_| call_control(webhook_probe, usual))).await.into_iter().flatten().max()
}

/// How long single calls took before the first wave: the slowest of [`UNHURRIED`].
struct Calm {
    webhook: Duration,
    /// None without a control.
    control: Option<Duration>,
}

impl Calm {
    /// # Errors
    /// It does not answer.
    async fn of(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>) -> Result<Self, Obstacle> {
        let (mut webhook, mut control) = (Duration::ZERO, None);
        for _ in 0..UNHURRIED {
            let exchange = call(webhook_probe, usual).await;
            usual::answered(&exchange).map_err(Obstacle::NotChecked)?;
            webhook = webhook.max(exchange.took);
            control = control.max(call_control(webhook_probe, usual).await);
        }
        Ok(Self { webhook, control })
    }

    /// What is wrong if the webhook is not as quick as before once a wave of `number` calls is over.
    ///
    /// # Errors
    /// It is not, and neither is the control.
    async fn is_not_back(
        &self,
        webhook_probe: &WebhookProbe<'_>,
        usual: &Usual<'_>,
        number: usize,
    ) -> Result<Option<Violation>, Obstacle> {
        let (started, patience) = (Instant::now(), webhook_probe.subject.called.timeout * PATIENCE);
        let state = loop {
            let exchange = call(webhook_probe, usual).await;
            let is_late = exchange.reply.as_ref().is_err_and(usual::is_late);
            let (state, is_slow) = match usual::answered(&exchange) {
                Ok(()) if is_as_quick(exchange.took, self.webhook) => return Ok(None),
                Ok(()) => (format!("a single call takes {}", written(exchange.took)), true),
                Err(reason) => (format!("a single call gets no answer: {reason}"), is_late),
            };
            if started.elapsed() < patience {
                tokio::time::sleep(PERIOD).await;
                continue;
            }
            if let (true, Some(before)) = (is_slow, self.control)
                && let Some(took) = call_control(webhook_probe, usual).await
                && !is_as_quick(took, before)
            {
                let reason = format!(
                    "this machine is too busy: after {number} calls at a time {state}, and one to a webhook that answers \
                     at once takes {}",
                    written(took)
                );
                return Err(Obstacle::not_checked(reason));
            }
            break state;
        };
        let message = format!(
            "{} after {number} calls at a time {state}, and before it took {} at most",
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
    let late = wave.iter().filter(|exchange| exchange.reply.as_ref().is_err_and(usual::is_late)).count();
    let message = format!(
        "of {} calls at a time {late} got no answer within the timeout of {} s; shed what is too much at once",
        wave.len(),
        timeout.as_secs()
    );
    (late > 0).then(|| Violation::new("hangs under load", message))
}

/// What came of the calls.
fn figures(wave: &[Exchange]) -> String {
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for exchange in wave {
        match usual::answered(exchange) {
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
        "of {} calls at a time {} were answered, the last one after {}{shed}",
        wave.len(),
        wave.len() - failed,
        written(slowest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_quick_may_be_twice_as_slow_and_some_noise() {
        let millis = Duration::from_millis;
        for (took, before, expected) in
            [(50, 1, true), (52, 1, false), (200, 100, true), (201, 100, false), (130, 80, true)]
        {
            assert_eq!(is_as_quick(millis(took), millis(before)), expected, "{took} {before}");
        }
    }
}
