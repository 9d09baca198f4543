//! The work queue of the controllers. It deduplicates its items.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// An item of work for the controllers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    /// A namespace, by name, that may be terminating.
    Namespace(String),
    /// A namespace, by name, that may lack its service account `default`.
    Account(String),
    /// A namespace, by name, that may lack the server's certificates.
    RootCertificates(String),
    /// An object, by UID, that the garbage collector may have to process.
    Object(String),
}

/// The result of processing an item.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The item is complete until another change enqueues it.
    Done,
    /// The item is complete, but the objects with these UIDs have to be processed.
    Then(Vec<String>),
    /// A request failed: retry the item with backoff.
    Retry,
    /// The kind of an owner is not served: retry the item when a definition changes.
    Park,
}

/// The first retry delay. It doubles after each failure, up to `MAX_DELAY`.
///
/// Source: client-go `util/workqueue/default_rate_limiters.go`, `DefaultTypedControllerRateLimiter`, which waits up to 1,000 s.
const BASE_DELAY: Duration = Duration::from_millis(5);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// A queue that does not return an item while the same item is being processed.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<Item>,
    is_ready: HashSet<Item>,
    active: HashSet<Item>,
    /// The items that were added while they were processed.
    again: HashSet<Item>,
    /// The delayed items, by due time. The number distinguishes items with the same due time.
    delayed: BTreeMap<(Instant, u64), Item>,
    count: u64,
    failures: HashMap<Item, u32>,
    parked: HashSet<Item>,
}

impl Queue {
    pub(super) fn add(&mut self, item: Item) {
        if self.active.contains(&item) {
            self.again.insert(item);
        } else if self.is_ready.insert(item.clone()) {
            self.ready.push_back(item);
        }
    }

    /// Enqueues the parked items again.
    pub(super) fn add_parked(&mut self) {
        for item in std::mem::take(&mut self.parked) {
            self.add(item);
        }
    }

    /// Returns the next item to process; `None` if no item is ready.
    pub(super) fn next(&mut self, now: Instant) -> Option<Item> {
        while let Some(due) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let item = due.remove();
            self.add(item);
        }
        let item = self.ready.pop_front()?;
        self.is_ready.remove(&item);
        self.active.insert(item.clone());
        Some(item)
    }

    /// Returns the time at which the next delayed item is due; `None` if no item is delayed.
    pub(super) fn due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    /// Records the result of processing `item`.
    pub(super) fn end(&mut self, item: Item, outcome: Outcome, now: Instant) {
        self.active.remove(&item);
        if self.again.remove(&item) {
            self.add(item.clone());
        }
        if !matches!(outcome, Outcome::Retry) {
            self.failures.remove(&item);
        }
        match outcome {
            Outcome::Done => {}
            Outcome::Then(uids) => uids.into_iter().for_each(|uid| self.add(Item::Object(uid))),
            Outcome::Park => drop(self.parked.insert(item)),
            Outcome::Retry => {
                let failures = self.failures.entry(item.clone()).or_default();
                let delay = BASE_DELAY.saturating_mul(1 << (*failures).min(16)).min(MAX_DELAY);
                *failures += 1;
                self.count += 1;
                self.delayed.insert((now + delay, self.count), item);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_items_are_requeued_and_failures_back_off() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let item = || Item::Namespace("a".to_owned());
        queue.add(item());
        queue.add(item());
        assert_eq!((queue.next(now), queue.next(now)), (Some(item()), None));
        queue.add(item());
        assert_eq!(queue.next(now), None, "the item is active");
        queue.end(item(), Outcome::Done, now);
        assert_eq!((queue.next(now), queue.due()), (Some(item()), None));
        queue.end(item(), Outcome::Retry, now);
        assert_eq!((queue.next(now), queue.due()), (None, Some(now + BASE_DELAY)));
        assert_eq!(queue.next(now + BASE_DELAY), Some(item()));
        queue.end(item(), Outcome::Retry, now);
        assert_eq!(queue.due(), Some(now + 2 * BASE_DELAY));
        assert_eq!(queue.next(now + 2 * BASE_DELAY), Some(item()));
        queue.end(item(), Outcome::Park, now);
        assert_eq!((queue.next(now), queue.due()), (None, None));
        queue.add_parked();
        assert_eq!(queue.next(now), Some(item()));
    }
}
