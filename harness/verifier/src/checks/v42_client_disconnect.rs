//! V42: a webhook stops working when the caller disconnects.

use std::time::Duration;

use admission_webhook_client::DirectRequest;
use futures::future::join_all;
use http::Method;
use tokio::time::{Instant, sleep, timeout};

use super::recorded_writes;
use super::typical_request::{self, TypicalRequest};
use super::v41_latency::written;
use super::write_attribution::{Attribution, Watched, WriteAttribution};
use crate::call_recorder::Exchange;
use crate::check::{Audience, Check, Observed, Probe, Repeatability, Severity, Skipped, Violation};
use crate::environment::Connection;
use crate::webhook_probe::WebhookProbe;

pub(super) const CHECK: Check = Check {
    id: "V42",
    title: "client disconnects: abandoned calls do not slow the next call, write nothing, and end after \
            ?timeout=",
    severity: Severity::Warning,
    why: "The API server sends in `?timeout=` how long it waits, and then closes the connection. By then it \
          has rejected the request or continued without the webhook. A later write of the webhook is for an \
          object that may not exist, and the work on abandoned calls delays callers that still wait. Under \
          load, this turns a slow minute into an outage. The check needs a webhook that takes a tenth of a \
          second or more.",
    help: "Stop the work when the request's context is canceled.",
    source: "apiserver pkg/util/webhook/client.go and client-go rest/request.go, the parameter timeout; Go \
             net/http, \
             Request.Context",
    audience: Audience::All,
    repeatability: Repeatability::Varies,
    probe: Probe::Webhook(|webhook_probe| Box::pin(run(webhook_probe))),
};

/// The minimum response time for the check, because a faster webhook responds before a caller can disconnect.
const MIN_RESPONSE_TIME: Duration = Duration::from_millis(100);
/// The minimum timeout that an API server sends.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of calls that measure the normal response time.
const IDLE_CALLS: usize = 3;
/// The number of callers that disconnect.
const ABANDONED: usize = 16;
/// The factor by which calls may take longer than usual.
const TOLERANCE: u32 = 4;
/// The number of rounds that must be slow, because other work may slow the machine during some rounds.
const ROUNDS: usize = 3;
/// The number of calls within which the webhook must recover.
const RECOVERY: usize = 10;

async fn run(webhook_probe: &WebhookProbe<'_>) -> Observed {
    let typical = TypicalRequest::new(webhook_probe, webhook_probe.subject).await?;
    let took = quickest(webhook_probe, &typical).await?;
    if took < MIN_RESPONSE_TIME {
        // Omits the measured time, which V41 reports, so that all shards report the same reason.
        return Err(Skipped::unequipped(
            "the webhook responds before a caller can disconnect: verify it with requests that take longer",
        ));
    }
    let mut violations: Vec<Violation> = Vec::new();
    violations.extend(outlasts_timeout(webhook_probe, &typical, took).await);
    // Opens the connections, so that callers disconnect from the webhook and not during a handshake.
    let _ = join_all((0..ABANDONED).map(|_| call(webhook_probe, &typical))).await;
    match slows_the_next(webhook_probe, &typical, took).await {
        Ok(violation) => violations.extend(violation),
        Err(_) if !violations.is_empty() => return Ok(violations),
        Err(skip) => return Err(skip),
    }
    let Some(recorder) = &webhook_probe.settings.recorder else {
        let reason = "abandoned calls do not slow the next call, but the webhook's writes are not recorded: \
                      run it with the kubeconfig from --api-server-out";
        return if violations.is_empty() { Err(Skipped::unequipped(reason)) } else { Ok(violations) };
    };
    // Waits until the writes of answered calls are over.
    sleep(took).await;
    recorded_writes::settle().await;
    let requests = std::iter::repeat_n(typical.request, recorded_writes::SAMPLES);
    let mut attribution = WriteAttribution::new(recorder, Watched::Writes, requests).await;
    let seen = loop {
        abandon(webhook_probe, &typical, took, recorded_writes::SAMPLES).await;
        attribution.begin();
        sleep(took).await;
        match attribution.end().await {
            Attribution::Again => {}
            seen @ (Attribution::Caused { .. } | Attribution::Nothing { .. }) => break seen,
        }
    };
    match seen {
        Attribution::Again | Attribution::Nothing { note: None } => {}
        Attribution::Nothing { note: Some(note) } => webhook_probe.note(note),
        Attribution::Caused { first, .. } => {
            let message = format!(
                "the webhook responds within {}; its callers disconnected after {}, and it still wrote: \
                 {first}",
                written(took),
                written(took / 2)
            );
            violations.push(Violation::new("writes after the caller disconnected", message));
        }
    }
    if violations.is_empty() { recorded_writes::nothing_seen(recorder) } else { Ok(violations) }
}

/// Returns the shortest response time of several calls, without other load.
async fn quickest(
    webhook_probe: &WebhookProbe<'_>,
    typical: &TypicalRequest<'_>,
) -> Result<Duration, Skipped> {
    let mut quickest = Duration::MAX;
    for _ in 0..IDLE_CALLS {
        let exchange = call(webhook_probe, typical).await;
        typical_request::answered(&exchange).map_err(Skipped::NotChecked)?;
        quickest = quickest.min(exchange.took);
    }
    Ok(quickest)
}

/// Reports a webhook that ignores `?timeout=1s`, so that a call takes as long as usual if the caller keeps waiting.
async fn outlasts_timeout(
    webhook_probe: &WebhookProbe<'_>,
    typical: &TypicalRequest<'_>,
    took: Duration,
) -> Option<Violation> {
    if took < MIN_TIMEOUT + 2 * MIN_RESPONSE_TIME {
        webhook_probe.note(format!(
            "the webhook responds within {}: ?timeout= cannot be checked, because it is never less than 1s",
            written(took)
        ));
        return None;
    }
    let started = Instant::now();
    // The call may end in any way.
    let _ = webhook_probe
        .environment
        .send(DirectRequest {
            client_config: &webhook_probe.subject.called.client_config,
            phase: webhook_probe.subject.called.phase,
            method: Method::POST,
            content_type: "application/json",
            body: Some(typical.review.clone()),
            timeout: MIN_TIMEOUT,
            patience: took * 2,
        })
        .await;
    let ended = started.elapsed();
    let message = format!("called with ?timeout=1s, the webhook keeps working for {}", written(ended));
    outlasts(ended, took).then(|| Violation::new("ignores ?timeout=", message).with_severity(Severity::Note))
}

/// Returns whether a call ignored [`MIN_TIMEOUT`]: it took `ended`, and usual calls take `took`.
fn outlasts(ended: Duration, took: Duration) -> bool {
    ended > MIN_TIMEOUT + took.saturating_sub(MIN_TIMEOUT) / 2
}

async fn slows_the_next(
    webhook_probe: &WebhookProbe<'_>,
    typical: &TypicalRequest<'_>,
    took: Duration,
) -> Result<Option<Violation>, Skipped> {
    let mut state = String::new();
    for _ in 0..ROUNDS {
        abandon(webhook_probe, typical, took, ABANDONED).await;
        let next = call(webhook_probe, typical).await;
        state = match typical_request::answered(&next) {
            Ok(()) if next.took <= took * TOLERANCE => return Ok(None),
            Ok(()) => format!("takes {}", written(next.took)),
            Err(reason) => format!("gets no response: {reason}"),
        };
        match recovers(webhook_probe, typical, took).await {
            Recovery::Quick => {}
            // Further rounds would give the same result.
            Recovery::Unresponsive => break,
            Recovery::Slow(later) => {
                return Err(Skipped::not_checked(format!(
                    "the webhook responds within {}, but takes {} without disconnected callers: this \
                     machine or the webhook is busy",
                    written(took),
                    written(later)
                )));
            }
        }
    }
    let message = format!(
        "the webhook responds within {}; when {ABANDONED} callers disconnect after {}, the next call {state}",
        written(took),
        written(took / 2)
    );
    Ok(Some(Violation::new("keeps working after the caller disconnected", message)))
}

/// The state of a webhook after callers have disconnected.
enum Recovery {
    /// The webhook is as fast as usual.
    Quick,
    /// The webhook is still slow; contains the duration of the last call.
    Slow(Duration),
    /// The webhook does not respond.
    Unresponsive,
}

async fn recovers(
    webhook_probe: &WebhookProbe<'_>,
    typical: &TypicalRequest<'_>,
    took: Duration,
) -> Recovery {
    let mut state = Recovery::Unresponsive;
    for _ in 0..RECOVERY {
        let control = call(webhook_probe, typical).await;
        state = match typical_request::answered(&control) {
            Ok(()) if control.took <= took * 2 => return Recovery::Quick,
            Ok(()) => Recovery::Slow(control.took),
            Err(_) => Recovery::Unresponsive,
        };
    }
    state
}

/// Makes `calls` concurrent calls and disconnects halfway through the usual response time.
async fn abandon(
    webhook_probe: &WebhookProbe<'_>,
    typical: &TypicalRequest<'_>,
    took: Duration,
    calls: usize,
) {
    // They end without a response.
    let _ = join_all((0..calls).map(|_| timeout(took / 2, call(webhook_probe, typical)))).await;
}

async fn call(webhook_probe: &WebhookProbe<'_>, typical: &TypicalRequest<'_>) -> Exchange {
    webhook_probe
        .environment
        .call(&webhook_probe.subject.called, typical.review.clone(), Connection::Kept)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_that_ends_near_its_timeout_respects_it() {
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
