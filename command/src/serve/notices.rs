//! Logs kube-apiserver's messages about calls that fail open, and advice about namespaces and Services.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use harness::server::{Notice, NoticeSink};
use tokio::time::Instant;

use super::log::Log;
use crate::connection_advice::set_address;
use crate::diagnostic::several;

/// The reason why a deleted namespace remains, and what to do.
const NO_CONTROLLER: &str =
    "no namespace controller runs: --with-controllers empties and removes deleted namespaces";

/// Whether the log contains advice about differences to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// The log explains why the first deleted namespace remains, and how to set the address of each unknown Service.
    Given,
    /// The log contains no advice, as in kube-apiserver.
    Omitted,
}

/// The maximum number of Services about which the log contains advice.
const MAX_SERVICES: usize = 20;

/// Returns a sink that writes notices to `log`.
pub(crate) fn sink(log: Log, advice: Advice) -> NoticeSink {
    let limiter = Mutex::new(Limiter::default());
    let is_explained = AtomicBool::new(advice == Advice::Omitted);
    let services = Mutex::new(BTreeSet::new());
    Arc::new(move |notice| match notice {
        Notice::FailedOpen { webhook, reason } => {
            let passed = limiter.lock().unwrap_or_else(PoisonError::into_inner).pass(Instant::now());
            let Some(omitted) = passed else { return };
            if omitted > 0 {
                let more = several(omitted, "more failure");
                log.warning(&format!("Failed calling webhooks, failing open: {more} not logged"));
            }
            log.warning(&failing_open(&webhook, &reason));
        }
        Notice::UnknownService { webhook, service } => {
            let mut services = services.lock().unwrap_or_else(PoisonError::into_inner);
            let is_full = services.len() >= MAX_SERVICES;
            if advice == Advice::Given && !is_full && services.insert(service.clone()) {
                let help = set_address(&service);
                log.info(&format!(
                    "the Service of the webhook \"{webhook}\" does not exist: {help}, or create the Service"
                ));
            }
        }
        Notice::NamespaceStays { name } => {
            if !is_explained.swap(true, Ordering::Relaxed) {
                log.info(&format!("the namespace \"{name}\" stays Terminating, because {NO_CONTROLLER}"));
            }
        }
    })
}

/// Returns kube-apiserver's message about a call that failed open.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `Dispatch`.
fn failing_open(webhook: &str, reason: &str) -> String {
    format!("Failed calling webhook, failing open {webhook}: failed calling webhook \"{webhook}\": {reason}")
}

/// A limit on the number of lines per second.
#[derive(Debug, Default)]
struct Limiter {
    /// The start of the current second.
    started: Option<Instant>,
    /// The number of lines in the current second.
    lines: usize,
    /// The number of lines that were omitted since the last line.
    omitted: usize,
}

impl Limiter {
    const MAX_LINES: usize = 10;

    /// Returns the number of lines that were omitted before this one, or `None` if this one must be omitted.
    fn pass(&mut self, now: Instant) -> Option<usize> {
        if self.started.is_none_or(|started| now.duration_since(started) >= Duration::from_secs(1)) {
            self.started = Some(now);
            self.lines = 0;
        }
        if self.lines == Self::MAX_LINES {
            self.omitted += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.omitted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_failures_is_counted_after_a_second() {
        let mut limiter = Limiter::default();
        let start = Instant::now();
        let passed = (0..25).filter(|_| limiter.pass(start) == Some(0)).count();
        assert_eq!(passed, Limiter::MAX_LINES);
        assert_eq!(limiter.pass(start + Duration::from_secs(1)), Some(15));
        assert_eq!(limiter.pass(start + Duration::from_secs(1)), Some(0));
    }
}
