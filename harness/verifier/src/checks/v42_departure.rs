//! V42: nobody works for a caller that has gone.

use std::time::Duration;

use admission_webhook_client::DirectRequest;
use futures::future::join_all;
use http::Method;
use tokio::time::{Instant, sleep, timeout};

use super::recorded;
use super::usual::{self, Usual};
use super::v41_latency::written;
use super::windows::{Seen, Watched, Windows};
use crate::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::environment::Connection;
use crate::line::Exchange;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V42",
    title: "it stops when the caller has gone: abandoned calls do not slow the next, write nothing, and end with ?timeout=",
    severity: Severity::Warning,
    why: "The API server says in `?timeout=` how long it waits, and then closes the connection. By then it has refused the \
          request, or gone on without the webhook: what the webhook writes after that is for an object that may not \
          exist, and the time that it still takes is missing for those who wait. Under load this is how a slow minute \
          becomes an outage. It can be seen only of a webhook that takes a tenth of a second or more.",
    source: "apiserver pkg/util/webhook/client.go and client-go rest/request.go, the parameter timeout; Go net/http, \
             Request.Context",
    audience: Audience::All,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// A webhook that is quicker has answered before anybody can go away.
const VISIBLE: Duration = Duration::from_millis(100);
/// The shortest timeout that an API server sends.
const SHORTEST: Duration = Duration::from_secs(1);
/// How many calls say how quick it is.
const UNHURRIED: usize = 3;
/// How many callers go away.
const ABANDONED: usize = 16;
/// How many times as long the next call may take.
const TOLERANCE: u32 = 4;
/// How many times that must be so, with the usual time in between: a busy machine is slow now and then.
const ROUNDS: usize = 3;
/// How many calls may pass until it is as quick as usual again.
const RECOVERY: usize = 10;

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let usual = Usual::of(webhook_probe, webhook_probe.subject).await?;
    let took = quickest(webhook_probe, &usual).await?;
    if took < VISIBLE {
        // Without the figure, which V41 tells: the reasons of many shards are one.
        return Err(Obstacle::unequipped(
            "it answers before anybody can go away: try it with what makes it slow",
        ));
    }
    let mut violations: Vec<Violation> = Vec::new();
    violations.extend(outlasts_timeout(webhook_probe, &usual, took).await);
    // Connections are there afterward, so that it is the webhook whom the callers leave, and not a handshake.
    let _ = join_all((0..ABANDONED).map(|_| call(webhook_probe, &usual))).await;
    match slows_the_next(webhook_probe, &usual, took).await {
        Ok(violation) => violations.extend(violation),
        Err(_) if !violations.is_empty() => return Ok(violations),
        Err(obstacle) => return Err(obstacle),
    }
    let Some(recorder) = &webhook_probe.settings.recorder else {
        let reason = "abandoned calls do not slow the next, but nobody watches what it writes for them: give it the \
                      kubeconfig of --api-server-out";
        return if violations.is_empty() { Err(Obstacle::unequipped(reason)) } else { Ok(violations) };
    };
    // What it wrote for those who waited is over.
    sleep(took).await;
    recorded::settle().await;
    let requests = std::iter::repeat_n(usual.request, recorded::SAMPLES);
    let mut windows = Windows::of(recorder, Watched::Writes, requests).await;
    let seen = loop {
        abandon(webhook_probe, &usual, took, recorded::SAMPLES).await;
        windows.begin();
        sleep(took).await;
        match windows.end().await {
            Seen::Again => {}
            seen @ (Seen::Caused { .. } | Seen::Nothing { .. }) => break seen,
        }
    };
    match seen {
        Seen::Again | Seen::Nothing { note: None } => {}
        Seen::Nothing { note: Some(note) } => webhook_probe.note(note),
        Seen::Caused { first, .. } => {
            let message = format!(
                "it answers within {}; {} and later, when its callers had gone, it still wrote: {first}",
                written(took),
                written(took / 2)
            );
            violations.push(Violation::new("writes for nobody", message));
        }
    }
    if violations.is_empty() { recorded::nothing_seen(recorder) } else { Ok(violations) }
}

/// How long it takes at least.
async fn quickest(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>) -> Result<Duration, Obstacle> {
    let mut quickest = Duration::MAX;
    for _ in 0..UNHURRIED {
        let exchange = call(webhook_probe, usual).await;
        usual::answered(&exchange).map_err(Obstacle::NotChecked)?;
        quickest = quickest.min(exchange.took);
    }
    Ok(quickest)
}

/// Whether a call that says `?timeout=1s` takes as long as always, with a caller that waits all the same.
async fn outlasts_timeout(
    webhook_probe: &WebhookProbe<'_>,
    usual: &Usual<'_>,
    took: Duration,
) -> Option<Violation> {
    if took < SHORTEST + 2 * VISIBLE {
        webhook_probe.note(format!(
            "it answers within {}: whether it heeds ?timeout= cannot be seen, which is never less than 1s",
            written(took)
        ));
        return None;
    }
    let started = Instant::now();
    // Whatever ends the call is right.
    let _ = webhook_probe
        .environment
        .send(DirectRequest {
            client_config: &webhook_probe.subject.called.client_config,
            phase: webhook_probe.subject.called.phase,
            method: Method::POST,
            content_type: "application/json",
            body: Some(usual.review.clone()),
            timeout: SHORTEST,
            patience: took * 2,
        })
        .await;
    let ended = started.elapsed();
    let message =
        format!("told by ?timeout=1s that nobody waits any longer, it works on for {}", written(ended));
    outlasts(ended, took).then(|| Violation::new("ignores ?timeout=", message).with_severity(Severity::Note))
}

/// Whether a call that ended after `ended` ignored [`SHORTEST`] and took the usual time: it came more than half of the way
/// to that, since neither is exact.
fn outlasts(ended: Duration, took: Duration) -> bool {
    ended > SHORTEST + took.saturating_sub(SHORTEST) / 2
}

async fn slows_the_next(
    webhook_probe: &WebhookProbe<'_>,
    usual: &Usual<'_>,
    took: Duration,
) -> Result<Option<Violation>, Obstacle> {
    let mut state = String::new();
    for _ in 0..ROUNDS {
        abandon(webhook_probe, usual, took, ABANDONED).await;
        let next = call(webhook_probe, usual).await;
        state = match usual::answered(&next) {
            Ok(()) if next.took <= took * TOLERANCE => return Ok(None),
            Ok(()) => format!("takes {}", written(next.took)),
            Err(reason) => format!("gets no answer: {reason}"),
        };
        match recovers(webhook_probe, usual, took).await {
            Recovery::Quick => {}
            // The next rounds would show the same.
            Recovery::Mute => break,
            Recovery::Slow(later) => {
                return Err(Obstacle::not_checked(format!(
                    "it answers within {}, and takes {} when nobody has gone: the machine is busy, or it is",
                    written(took),
                    written(later)
                )));
            }
        }
    }
    let message = format!(
        "it answers within {}; when {ABANDONED} callers have gone after {}, the next call {state}",
        written(took),
        written(took / 2)
    );
    Ok(Some(Violation::new("works for nobody", message)))
}

/// How a webhook is once its work for those who have gone is over.
enum Recovery {
    /// As quick as usual.
    Quick,
    /// Slow all the same: the last call took this long.
    Slow(Duration),
    /// It does not answer.
    Mute,
}

async fn recovers(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>, took: Duration) -> Recovery {
    let mut state = Recovery::Mute;
    for _ in 0..RECOVERY {
        let control = call(webhook_probe, usual).await;
        state = match usual::answered(&control) {
            Ok(()) if control.took <= took * 2 => return Recovery::Quick,
            Ok(()) => Recovery::Slow(control.took),
            Err(_) => Recovery::Mute,
        };
    }
    state
}

/// Makes calls and goes away when they are half done.
async fn abandon(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>, took: Duration, calls: usize) {
    // They end without an answer.
    let _ = join_all((0..calls).map(|_| timeout(took / 2, call(webhook_probe, usual)))).await;
}

async fn call(webhook_probe: &WebhookProbe<'_>, usual: &Usual<'_>) -> Exchange {
    webhook_probe
        .environment
        .call(&webhook_probe.subject.called, usual.review.clone(), Connection::Kept)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_ends_near_its_timeout_heeds_it() {
        let millis = Duration::from_millis;
        for (ended, took, expected) in [
            (900, 3000, false),
            (1020, 3000, false),
            (2100, 3000, true),
            (3000, 3000, true),
            (1010, 1200, false),
        ] {
            assert_eq!(outlasts(millis(ended), millis(took)), expected, "{ended} {took}");
        }
    }
}
