//! What is to be looked at, each thing once however often it is added.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    /// A namespace by its name, which may have to be emptied.
    Namespace(String),
    /// A namespace that may need its account `default`.
    Account(String),
    /// A namespace that may need the certificates of the server.
    RootCertificates(String),
    /// An object by its uid, which may have to be collected.
    Object(String),
}

/// What came of looking at something.
#[derive(Debug)]
pub(super) enum Outcome {
    /// There is nothing to do until something changes.
    Done,
    /// The same, but these objects are to be looked at.
    Then(Vec<String>),
    /// A request failed: it is to be looked at again after a while.
    Retry,
    /// An owner is of a kind that is not served: it is to be looked at again when a definition changes.
    Park,
}

/// How long something waits after the first failure, and how long at most; twice as long after each.
///
/// Source: client-go `util/workqueue/default_rate_limiters.go`, `DefaultTypedControllerRateLimiter`, which waits up to 1,000 s.
const FIRST_DELAY: Duration = Duration::from_millis(5);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// Nothing in it is looked at twice at the same time.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<Item>,
    is_ready: HashSet<Item>,
    active: HashSet<Item>,
    /// Added while it was looked at.
    again: HashSet<Item>,
    /// By when each is due; the number tells those of one instant apart.
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

    /// Adds what was parked.
    pub(super) fn add_parked(&mut self) {
        for item in std::mem::take(&mut self.parked) {
            self.add(item);
        }
    }

    /// The next thing to look at.
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

    /// When something is due that waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes note of what came of looking at `item`.
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
                let delay = FIRST_DELAY.saturating_mul(1 << (*failures).min(16)).min(LONGEST_DELAY);
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
    fn what_is_looked_at_is_added_again_and_what_fails_waits_longer_each_time() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let item = || Item::Namespace("a".to_owned());
        queue.add(item());
        queue.add(item());
        assert_eq!((queue.next(now), queue.next(now)), (Some(item()), None));
        queue.add(item());
        assert_eq!(queue.next(now), None, "it is looked at");
        queue.end(item(), Outcome::Done, now);
        assert_eq!((queue.next(now), queue.due()), (Some(item()), None));
        queue.end(item(), Outcome::Retry, now);
        assert_eq!((queue.next(now), queue.due()), (None, Some(now + FIRST_DELAY)));
        assert_eq!(queue.next(now + FIRST_DELAY), Some(item()));
        queue.end(item(), Outcome::Retry, now);
        assert_eq!(queue.due(), Some(now + 2 * FIRST_DELAY));
        assert_eq!(queue.next(now + 2 * FIRST_DELAY), Some(item()));
        queue.end(item(), Outcome::Park, now);
        assert_eq!((queue.next(now), queue.due()), (None, None));
        queue.add_parked();
        assert_eq!(queue.next(now), Some(item()));
    }
}
