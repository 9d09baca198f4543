//! Limits the memory for large responses. One object at a time, in corpus order, may exceed its share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// The maximum number of bytes of reviews and responses that objects may keep before their turn.
const SHARED: usize = 64 << 20;

/// The turns of the objects in a corpus. Dropping this value releases all objects that wait.
#[derive(Debug)]
pub(super) struct Turns {
    share: usize,
    concluded: watch::Sender<u64>,
}

/// The turn of an object. It begins when all earlier objects are finished.
#[derive(Debug)]
pub(super) struct Turn {
    position: u64,
    share: usize,
    kept: AtomicUsize,
    concluded: watch::Receiver<u64>,
}

impl Turns {
    /// Creates the turns for `jobs` concurrent objects.
    pub(super) fn new(jobs: usize) -> Self {
        Self { share: SHARED / jobs.max(1), concluded: watch::Sender::new(0) }
    }

    /// Returns the turn of the object at `position` in the corpus, counted from 0.
    pub(super) fn at(&self, position: u64) -> Arc<Turn> {
        let concluded = self.concluded.subscribe();
        Arc::new(Turn { position, share: self.share, kept: AtomicUsize::new(0), concluded })
    }

    /// Records that the first `objects` objects are finished. Only their findings are kept.
    pub(super) fn conclude(&self, objects: u64) {
        self.concluded.send_replace(objects);
    }
}

impl Turn {
    /// Reserves memory until the object is finished. If the object's share is exceeded, first waits for its turn.
    pub(super) async fn keep(&self, bytes: usize) {
        let kept = self.kept.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if kept > self.share {
            // Fails if the counter was dropped.
            let _ = self.concluded.clone().wait_for(|concluded| *concluded >= self.position).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn object_above_its_share_waits_for_earlier_ones() {
        let turns = Turns::new(4);
        let [first, second, third] = [0, 1, 2].map(|position| turns.at(position));
        let keeps = |turn: &Turn, bytes: usize| turn.keep(bytes).now_or_never().is_some();
        let share = SHARED / 4;
        // The object whose turn it is may keep any number of bytes; the others keep only their share.
        assert!(keeps(&first, 10 * SHARED));
        assert!(keeps(&second, share) && keeps(&third, share));
        assert!(!keeps(&second, 1) && !keeps(&third, 1));
        turns.conclude(1);
        assert!(keeps(&second, SHARED) && !keeps(&third, 1));
        turns.conclude(2);
        assert!(keeps(&third, SHARED));
    }

    #[test]
    fn waiting_ends_with_the_run() {
        let turns = Turns::new(1);
        let last = turns.at(7);
        drop(turns);
        assert!(last.keep(2 * SHARED).now_or_never().is_some());
    }
}
