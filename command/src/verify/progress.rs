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
/// Before that nothing can be said of the time that is left.
const SOON: Duration = Duration::from_secs(1);
/// More is not told.
const LONGEST: Duration = Duration::from_secs(100 * 3600);

/// Tells how far the run has come, unless it shall be quiet.
pub(crate) fn line(is_quiet: bool) -> Box<dyn Fn(Progress) + Send + Sync> {
    if is_quiet {
        return Box::new(|_| {});
    }
    let is_terminal = std::io::stderr().is_terminal();
    let pace = if is_terminal { Pace::new(MOVING, true) } else { Pace::new(KEPT, false) };
    let state = Mutex::new((pace, Estimate::default()));
    Box::new(move |progress| {
        let now = Instant::now();
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let left = state.1.left(progress, now);
        let is_due = state.0.is_due(now);
        drop(state);
        if is_due && is_terminal {
            anstream::eprint!("\r\x1b[K{}", text(progress, left));
        } else if is_due {
            anstream::eprintln!("{}", text(progress, left));
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

/// How long what a run does now will take, judged by how long it has taken so far. What comes after it is not in it:
/// nobody knows how long a webhook takes for something else.
#[derive(Debug, Default)]
struct Estimate {
    /// What the run does, since when, and how much of it was done then.
    current: Option<(Stage, Instant, u64)>,
    done: u64,
}

impl Estimate {
    /// The time that is left; none as long as that is a guess.
    fn left(&mut self, progress: Progress, now: Instant) -> Option<Duration> {
        let Progress { stage, done, total, .. } = progress;
        let (since, before) = match self.current {
            Some((known, since, before)) if known == stage && done >= self.done => (since, before),
            Some(_) | None => {
                self.current = Some((stage, now, done));
                (now, done)
            }
        };
        self.done = done;
        let (elapsed, new) = (now.duration_since(since), done.saturating_sub(before));
        let rest = total?.saturating_sub(done);
        if elapsed < SOON || new == 0 || rest == 0 {
            return None;
        }
        let seconds = elapsed.as_secs_f64() / count(new) * count(rest);
        Some(Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())))
    }
}

/// A number of objects as a factor.
fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// `about 40 s`, `about 3 min`: not more exact than it is.
fn about(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..=9 => format!("about {} s", seconds + 1),
        seconds @ 10..=89 => format!("about {} s", seconds.div_ceil(10) * 10),
        seconds @ 90..=5399 => format!("about {} min", seconds.div_ceil(60)),
        seconds => format!("about {} h", seconds.div_ceil(3600)),
    }
}

fn text(progress: Progress, left: Option<Duration>) -> String {
    let Progress { stage, done, total, objects, calls, findings, .. } = progress;
    let what = match stage {
        Stage::Configurations => "reading the configurations",
        Stage::Objects => "trying objects",
        Stage::Webhooks => "looking at each webhook alone",
        Stage::Shrinking => "making the proofs small",
        Stage::Interventions => {
            "watching the webhooks while their certificates are renewed and they are ended"
        }
    };
    let of = total.map(|total| format!(" ({done} of {total})")).unwrap_or_default();
    let left = left.map(|left| format!(", {} left for this", about(left))).unwrap_or_default();
    let kinds = if findings == 1 { "kind" } else { "kinds" };
    format!("{what}{of}{left}: {objects} objects, {calls} calls, {findings} {kinds} of findings")
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

    fn progress(stage: Stage, done: u64, total: Option<u64>) -> Progress {
        Progress { stage, done, total, objects: 3, calls: 12, findings: 1 }
    }

    #[test]
    fn a_line_says_what_is_done_and_what_is_left() {
        let objects = progress(Stage::Objects, 3, Some(216));
        for (left, expected) in [
            (None, "trying objects (3 of 216): 3 objects, 12 calls, 1 kind of findings"),
            (
                Some(Duration::from_secs(41)),
                "trying objects (3 of 216), about 50 s left for this: 3 objects, 12 calls, 1 kind of findings",
            ),
        ] {
            assert_eq!(text(objects, left), expected);
        }
        let shrinking = text(progress(Stage::Shrinking, 0, None), None);
        assert_eq!(shrinking, "making the proofs small: 3 objects, 12 calls, 1 kind of findings");
        let told = [0, 9, 10, 89, 90, 5399, 5400].map(|seconds| about(Duration::from_secs(seconds)));
        let expected =
            ["1 s", "10 s", "10 s", "90 s", "2 min", "90 min", "2 h"].map(|it| format!("about {it}"));
        assert_eq!(told, expected);
    }

    #[test]
    fn the_time_that_is_left_is_judged_by_what_the_same_has_taken() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut estimate = Estimate::default();
        let mut left = |stage, done, total, seconds| {
            estimate.left(progress(stage, done, total), at(seconds)).map(|left| left.as_secs())
        };
        assert_eq!(left(Stage::Objects, 1, Some(100), 0), None);
        assert_eq!(left(Stage::Objects, 11, Some(100), 10), Some(89));
        assert_eq!(left(Stage::Objects, 100, Some(100), 100), None);
        // How long the objects took says nothing of the rest.
        assert_eq!(left(Stage::Webhooks, 0, Some(10), 100), None);
        assert_eq!(left(Stage::Webhooks, 2, Some(10), 110), Some(40));
        // The same stage once more.
        assert_eq!(left(Stage::Webhooks, 0, Some(10), 120), None);
        assert_eq!(left(Stage::Objects, 5, None, 200), None);
    }
}
