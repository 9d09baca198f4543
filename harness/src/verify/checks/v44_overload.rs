//! V44: too many calls at a time are shed, not held, and leave nothing behind.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::usual::{self, Usual};
use super::v41_latency::written;
use crate::verify::check::{Audience, Check, Observed, Obstacle, Probe, Severity, Violation};
use crate::verify::laboratory::Connection;
use crate::verify::line::Exchange;
use crate::verify::station::Station;

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
    probe: Probe::Webhook(|station| Box::pin(run(station))),
};

/// How many calls, one after the other, say how quick it is.
const UNHURRIED: usize = 10;
/// How many times its own timeout a webhook may take to recover.
const PATIENCE: u32 = 2;
/// A call that takes longer than before by no more than that, or than twice as long, is as quick as before.
const NOISE: Duration = Duration::from_millis(50);
/// How often a webhook that has not recovered is asked.
const PERIOD: Duration = Duration::from_millis(20);

async fn run(station: &Station<'_>) -> Observed {
    let usual = Usual::of(station, station.subject).await?;
    let call = async || {
        let webhook = &station.subject.called;
        station.laboratory.call(webhook, usual.review.clone(), Connection::Kept).await
    };
    let mut before = Duration::ZERO;
    for _ in 0..UNHURRIED {
        let exchange = call().await;
        usual::answered(&exchange).map_err(Obstacle::NotChecked)?;
        before = before.max(exchange.took);
    }
    let number = station.settings.overload.max(1);
    let wave = join_all((0..number).map(|_| call())).await;
    station.note(figures(&wave));
    let mut violations: Vec<Violation> = hangs(&wave, station.subject.called.timeout).into_iter().collect();

    let (started, patience) = (Instant::now(), station.subject.called.timeout * PATIENCE);
    let after = loop {
        let exchange = call().await;
        let state = match usual::answered(&exchange) {
            Ok(()) if is_as_quick(exchange.took, before) => break None,
            Ok(()) => format!("a single call takes {}", written(exchange.took)),
            Err(reason) => format!("a single call gets no answer: {reason}"),
        };
        if started.elapsed() >= patience {
            break Some(state);
        }
        tokio::time::sleep(PERIOD).await;
    };
    if let Some(state) = after {
        let message = format!(
            "{} after {number} calls at a time {state}, and before it took {} at most",
            written(started.elapsed()),
            written(before)
        );
        violations.push(Violation::new("does not recover", message).with_severity(Severity::Error));
    }
    Ok(violations)
}

fn is_as_quick(took: Duration, before: Duration) -> bool {
    took <= (before * 2).max(before + NOISE)
}

fn hangs(wave: &[Exchange], timeout: Duration) -> Option<Violation> {
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
