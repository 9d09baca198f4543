//! A line on standard error that says how far the run has come.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use harness::verify::{Progress, Stage};
use tokio::time::Instant;

/// How often the line is drawn.
const PERIOD: Duration = Duration::from_millis(100);

/// Draws the line, if standard error is a terminal.
pub(crate) fn line() -> Box<dyn Fn(Progress) + Send + Sync> {
    if !std::io::stderr().is_terminal() {
        return Box::new(|_| {});
    }
    let drawn: Mutex<Option<Instant>> = Mutex::default();
    Box::new(move |progress| {
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.is_none_or(|drawn| drawn.elapsed() >= PERIOD) {
            *drawn = Some(Instant::now());
            anstream::eprint!("\r\x1b[K{}", text(progress));
        }
    })
}

/// Takes the line away.
pub(crate) fn clear() {
    if std::io::stderr().is_terminal() {
        anstream::eprint!("\r\x1b[K");
    }
}

fn text(Progress { stage, objects, calls, findings, .. }: Progress) -> String {
    let stage = match stage {
        Stage::Configurations => "reading the configurations",
        Stage::Objects => "trying objects",
        Stage::Webhooks => "looking at each webhook alone",
        Stage::Shrinking => "making the proofs small",
    };
    format!("{stage}: {objects} objects, {calls} calls, {findings} kinds of findings")
}
