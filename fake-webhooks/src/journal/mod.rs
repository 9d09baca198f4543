//! Keeps a journal of received calls.

mod document;
mod entry;
mod filter;
mod log_line;
mod observer;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

pub use self::document::UnreadableEntry;
pub(crate) use self::document::{Credentials, document};
pub use self::entry::{CallOutcome, Entry, Subject};
pub use self::filter::Filter;
pub(crate) use self::log_line::log_line;
pub use self::observer::Observer;
use crate::limits::Limits;

/// The newest calls within limits, shared by all fakes of a fleet.
pub(crate) struct Journal {
    kept: Mutex<Calls>,
    most_entries: usize,
    most_bytes: usize,
    /// The number of the newest call. Waiting callers watch this value.
    newest: watch::Sender<u64>,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Default)]
struct Calls {
    entries: VecDeque<Arc<Entry>>,
    received: u64,
    bytes: usize,
    /// The number of dropped calls since the journal was cleared.
    dropped: u64,
    dropped_ever: u64,
}

/// The current size of a journal, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalSize {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
    /// The number of calls that have been dropped since the start.
    pub(crate) dropped_ever: u64,
}

impl Journal {
    /// Creates an empty journal; `tell` receives a message when a call is first dropped.
    pub(crate) fn new(limits: &Limits, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            kept: Mutex::default(),
            most_entries: limits.journal_entries,
            most_bytes: limits.journal_bytes,
            newest: watch::Sender::new(0),
            tell: Box::new(tell),
        }
    }

    /// Adds a call with the next number and drops the oldest calls if a limit is exceeded.
    pub(crate) fn add(&self, mut entry: Entry) -> Arc<Entry> {
        let mut kept = self.lock();
        kept.received += 1;
        entry.number = kept.received;
        let entry = Arc::new(entry);
        kept.bytes += entry.size();
        kept.entries.push_back(Arc::clone(&entry));
        let before = kept.dropped;
        while kept.entries.len() > self.most_entries || kept.bytes > self.most_bytes {
            let Some(oldest) = kept.entries.pop_front() else { break };
            kept.bytes -= oldest.size();
            kept.dropped += 1;
            kept.dropped_ever += 1;
        }
        let is_first = before == 0 && kept.dropped > 0;
        drop(kept);
        self.newest.send_replace(entry.number);
        if is_first {
            let Self { most_entries, most_bytes, .. } = self;
            (self.tell)(&format!(
                "the journal is full ({most_entries} calls or {most_bytes} bytes): the oldest calls are dropped from now on"
            ));
        }
        entry
    }

    /// Records the outcome of a pending call; returns `None` if the journal has dropped the call.
    pub(crate) fn end(&self, number: u64, outcome: CallOutcome, took: Duration) -> Option<Arc<Entry>> {
        let mut kept = self.lock();
        let index = kept.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
        let entry = kept.entries.get_mut(index)?;
        // Copied only if a reader holds the entry.
        let ended = Arc::make_mut(entry);
        ended.outcome = outcome;
        ended.took = Some(took);
        Some(Arc::clone(entry))
    }

    /// Returns the calls that match the filter, oldest first.
    pub(crate) fn select(&self, filter: &Filter) -> Vec<Arc<Entry>> {
        self.lock().newer_than(filter.after).filter(|entry| filter.matches(entry)).cloned().collect()
    }

    /// Waits until at least `count` calls match the filter; returns `false` on a timeout.
    ///
    /// Calls that are dropped before they are counted are missed.
    pub(crate) async fn wait(&self, filter: &Filter, count: usize, within: Duration) -> bool {
        // Subscribes before the first check, so that no call is missed.
        let mut newest = self.newest.subscribe();
        let (mut seen, mut found) = (filter.after, 0);
        let enough = async {
            loop {
                for entry in self.lock().newer_than(seen) {
                    seen = entry.number;
                    found += usize::from(filter.matches(entry));
                }
                if found >= count {
                    return true;
                }
                if newest.changed().await.is_err() {
                    return false;
                }
            }
        };
        tokio::time::timeout(within, enough).await.unwrap_or(false)
    }

    /// Removes the calls of one fake from the journal.
    pub(crate) fn forget(&self, fake: &str) {
        let mut kept = self.lock();
        kept.entries.retain(|entry| *entry.fake != *fake);
        kept.bytes = kept.entries.iter().map(|entry| entry.size()).sum();
    }

    /// Removes all calls; numbering continues.
    pub(crate) fn clear(&self) {
        let mut kept = self.lock();
        kept.entries = VecDeque::new();
        kept.bytes = 0;
        kept.dropped = 0;
    }

    /// Returns the number of dropped calls since the journal was cleared.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    pub(crate) fn fill(&self) -> JournalSize {
        let kept = self.lock();
        JournalSize { entries: kept.entries.len(), bytes: kept.bytes, dropped_ever: kept.dropped_ever }
    }

    /// Locks the state. Ignores poisoning, because updates are atomic.
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn newer_than(&self, number: u64) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.range(self.entries.partition_point(|entry| entry.number <= number)..)
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("fill", &self.fill()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;

    use super::*;

    pub(super) fn entry(size: usize) -> Entry {
        Entry {
            number: 0,
            time: jiff::Timestamp::UNIX_EPOCH,
            fake: "a.b.c".into(),
            method: http::Method::POST,
            path: String::new(),
            query: String::new(),
            version: http::Version::HTTP_11,
            headers: Vec::new(),
            certificate: None,
            body: Bytes::from(vec![b'x'; size]),
            subject: None,
            outcome: CallOutcome::Pending,
            took: None,
        }
    }

    fn journal(journal_entries: usize, journal_bytes: usize) -> Journal {
        Journal::new(&Limits { journal_entries, journal_bytes, ..Limits::default() }, |_| {})
    }

    fn numbers(journal: &Journal) -> Vec<u64> {
        journal.select(&Filter::default()).iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn oldest_calls_are_dropped_and_counted() {
        let journal = journal(2, 10_000);
        for _ in 0..3 {
            journal.add(entry(1));
        }
        assert_eq!(numbers(&journal), [2, 3]);
        assert_eq!(journal.dropped(), 1);
    }

    #[test]
    fn large_bodies_count_toward_the_size_limit() {
        let journal = journal(10, 10_000);
        journal.add(entry(6_000));
        journal.add(entry(6_000));
        assert_eq!(numbers(&journal), [2]);
        assert!(journal.fill().bytes > 6_000);
        journal.add(entry(20_000));
        assert_eq!(numbers(&journal), [0_u64; 0]);
        assert_eq!((journal.dropped(), journal.fill().bytes), (3, 0));
    }

    #[test]
    fn dropped_calls_are_reported_once() {
        let told = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&told);
        let limits = Limits { journal_entries: 1, ..Limits::default() };
        let journal = Journal::new(&limits, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        for (cleared, expected) in [(false, 0), (false, 1), (false, 1), (true, 1), (false, 2)] {
            if cleared {
                journal.clear();
            }
            journal.add(entry(1));
            assert_eq!(told.load(Ordering::Relaxed), expected);
        }
    }

    #[test]
    fn outcome_is_recorded_for_the_right_call() {
        let journal = journal(2, 10_000);
        for _ in 0..3 {
            journal.add(entry(1));
        }
        assert_eq!(journal.end(1, CallOutcome::Abandoned, Duration::ZERO), None);
        assert!(journal.end(3, CallOutcome::Abandoned, Duration::ZERO).is_some());
        let entries = journal.select(&Filter::default());
        let answers: Vec<_> = entries.iter().map(|entry| &entry.outcome).collect();
        assert_eq!(answers, [&CallOutcome::Pending, &CallOutcome::Abandoned]);
    }

    #[test]
    fn forgetting_the_calls_of_a_fake_continues_numbering() {
        let journal = journal(10, 10_000);
        for fake in ["one", "two", "one", "two"] {
            journal.add(Entry { fake: fake.into(), ..entry(1) });
        }
        journal.forget("one");
        assert_eq!(numbers(&journal), [2, 4]);
        assert_eq!(journal.dropped(), 0);
        journal.clear();
        assert_eq!(journal.add(entry(1)).number, 5);
    }

    #[tokio::test]
    async fn waiting_returns_existing_and_new_calls() {
        let journal = Arc::new(journal(10, 10_000));
        journal.add(entry(1));
        let filter = Filter::default();
        assert!(journal.wait(&filter, 1, Duration::ZERO).await);
        assert!(!journal.wait(&filter, 2, Duration::ZERO).await);
        let waiting = Arc::clone(&journal);
        let waiter =
            tokio::spawn(async move { waiting.wait(&Filter::default(), 3, Duration::from_secs(60)).await });
        while journal.newest.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
        journal.add(entry(1));
        journal.add(entry(1));
        assert!(waiter.await.unwrap());
    }
}
