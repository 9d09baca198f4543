//! Keeps the most recent requests for the page.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use tokio::sync::watch;

/// The maximum number of requests.
const MAX_REQUESTS: usize = 1_000;
/// The maximum size of all requests, in bytes of JSON.
const MAX_BYTES: usize = 32 << 20;
/// The maximum size of one request, in bytes of JSON.
pub(super) const MAX_REQUEST_BYTES: usize = 8 << 20;

/// The last requests, at most 1,000 and at most 32 MiB of JSON.
#[derive(Debug)]
pub(super) struct Recent {
    kept: Mutex<Kept>,
    /// The number of the last request.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The requests with their numbers, in ascending order.
    requests: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The number of the last request, counted from 1.
    last: u64,
    /// The number of the last request that was removed because of the limits.
    removed: u64,
}

/// The request that follows a position.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// The number of a request, and its line.
    Request(u64, Bytes),
    /// No later request has arrived.
    None,
    /// A request after the position has been removed.
    Removed,
}

impl Recent {
    pub(super) fn new() -> Self {
        Self { kept: Mutex::default(), last: watch::Sender::new(0) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a report as JSON. A report that is too large only takes a number.
    pub(super) fn add(&self, report: &str) {
        let mut kept = self.kept();
        kept.last += 1;
        let number = kept.last;
        if report.len() <= MAX_REQUEST_BYTES {
            let line = Bytes::from(format!("{{\"number\":{number},\"report\":{report}}}\n"));
            kept.bytes += line.len();
            kept.requests.push_back((number, line));
            while kept.bytes > MAX_BYTES || kept.requests.len() > MAX_REQUESTS {
                let Some((number, line)) = kept.requests.pop_front() else { break };
                kept.bytes -= line.len();
                kept.removed = number;
            }
        }
        drop(kept);
        self.last.send_replace(number);
    }

    /// Returns the position before the oldest kept request that follows `position`.
    pub(super) fn start(&self, position: u64) -> u64 {
        position.max(self.kept().removed)
    }

    /// Returns the request that follows `position`.
    pub(super) fn next(&self, position: u64) -> Next {
        let kept = self.kept();
        if kept.removed > position {
            return Next::Removed;
        }
        let index = kept.requests.partition_point(|(number, _)| *number <= position);
        match kept.requests.get(index) {
            Some((number, line)) => Next::Request(*number, line.clone()),
            None => Next::None,
        }
    }

    /// Returns a receiver that changes with each request.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(recent: &Recent) -> Vec<u64> {
        recent.kept().requests.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn at_most_1000_requests_are_kept() {
        let recent = Recent::new();
        (0..2_500).for_each(|_| recent.add("{}"));
        assert_eq!(numbers(&recent), (1_501..=2_500).collect::<Vec<_>>());
        assert_eq!(recent.next(1_499), Next::Removed);
        assert_eq!(recent.start(0), 1_500);
        let line = Bytes::from_static(b"{\"number\":1501,\"report\":{}}\n");
        assert_eq!(recent.next(1_500), Next::Request(1_501, line));
        assert_eq!(recent.next(2_500), Next::None);
    }

    #[test]
    fn large_requests_stay_below_32_mib() {
        let recent = Recent::new();
        let large = "x".repeat(MAX_REQUEST_BYTES);
        for _ in 0..20 {
            recent.add(&large);
            let kept = recent.kept();
            assert_eq!(kept.bytes, kept.requests.iter().map(|(_, line)| line.len()).sum::<usize>());
            assert!(kept.bytes <= MAX_BYTES);
        }
        assert_eq!(numbers(&recent), [18, 19, 20]);
        // A request that is too large does not displace others.
        recent.add(&"x".repeat(MAX_REQUEST_BYTES + 1));
        recent.add("{}");
        assert_eq!(numbers(&recent), [18, 19, 20, 22]);
        assert!(matches!(recent.next(20), Next::Request(22, _)));
    }
}
