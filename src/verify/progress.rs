//! Says on standard error how far the run has come: a line that moves on a terminal, else a line every few seconds.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use harness::verify::{Progress, Stage};
use tokio::time::Instant;

/// How often the line of a terminal is drawn.
const MOVING: Duration = Duration::from_millis(100);
/// How often a line is written to what keeps all of them, such as the log of a workflow.
const KEPT: Duration = Duration::from_secs(10);

/// Tells how far the run has come, unless it shall be quiet.
pub(crate) fn line(is_quiet: bool) -> Box<dyn Fn(Progress) + Send + Sync> {
    if is_quiet {
        return Box::new(|_| {});
    }
    let is_terminal = std::io::stderr().is_terminal();
    let pace = Mutex::new(if is_terminal { Pace::new(MOVING, true) } else { Pace::new(KEPT, false) });
    Box::new(move |progress| {
        let is_due = pace.lock().unwrap_or_else(PoisonError::into_inner).is_due(Instant::now());
        if is_due && is_terminal {
            anstream::eprint!("\r\x1b[K{}", text(progress));
        } else if is_due {
            anstream::eprintln!("{}", text(progress));
        }
    })
}

/// Takes the moving line away.
pub(crate) fn clear() {
    if std::io::stderr().is_terminal() {
        anstream::eprint!("\r\x1b[K");
    }
}

/// When the next line is due.
#[derive(Debug)]
struct Pace {
    period: Duration,
    next: Instant,
}

impl Pace {
    /// The first line comes at once, or after a period: a short run says nothing then.
    fn new(period: Duration, at_once: bool) -> Self {
        let now = Instant::now();
        Self { period, next: if at_once { now } else { now + period } }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.period;
        }
        is_due
    }
}

fn text(Progress { stage, objects, calls, findings, .. }: Progress) -> String {
    let stage = match stage {
        Stage::Configurations => "reading the configurations",
        Stage::Objects => "trying objects",
        Stage::Webhooks => "looking at each webhook alone",
        Stage::Shrinking => "making the proofs small",
        Stage::Interventions => {
            "watching the webhooks while their certificates are renewed and they are ended"
        }
    };
    format!("{stage}: {objects} objects, {calls} calls, {findings} kinds of findings")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_kept_comes_after_every_period() {
        let mut pace = Pace::new(KEPT, false);
        let start = pace.next - KEPT;
        let due: Vec<bool> =
            [0, 9, 10, 11, 19, 20].map(|seconds| pace.is_due(start + Duration::from_secs(seconds))).to_vec();
        assert_eq!(due, [false, false, true, false, false, true]);
        assert!(Pace::new(MOVING, true).is_due(Instant::now()));
    }

    #[test]
    fn a_line_says_what_is_done() {
        let progress = Progress { stage: Stage::Objects, objects: 3, calls: 12, findings: 1 };
        assert_eq!(text(progress), "trying objects: 3 objects, 12 calls, 1 kinds of findings");
    }
}
