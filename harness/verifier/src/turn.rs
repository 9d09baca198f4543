//! Who may keep large responses: one object at a time, in the order of the corpus.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// What the objects that are tried at a time may keep together of reviews and responses, in bytes, beside the one whose
/// turn it is.
const SHARED: usize = 64 << 20;

/// The turns of a corpus. Whoever drops it lets everyone go on.
#[derive(Debug)]
pub(super) struct Turns {
    share: usize,
    concluded: watch::Sender<u64>,
}

/// The turn of one object: it comes when all objects before it are concluded, so that it always comes.
#[derive(Debug)]
pub(super) struct Turn {
    position: u64,
    share: usize,
    kept: AtomicUsize,
    concluded: watch::Receiver<u64>,
}

impl Turns {
    /// The turns of objects of which so many are tried at a time.
    pub(super) fn new(jobs: usize) -> Self {
        Self { share: SHARED / jobs.max(1), concluded: watch::Sender::new(0) }
    }

    /// The turn of the object at `position` in the corpus, from 0.
    pub(super) fn of(&self, position: u64) -> Arc<Turn> {
        let concluded = self.concluded.subscribe();
        Arc::new(Turn { position, share: self.share, kept: AtomicUsize::new(0), concluded })
    }

    /// So many objects are concluded: nothing is kept of them but what was found.
    pub(super) fn conclude(&self, objects: u64) {
        self.concluded.send_replace(objects);
    }
}

impl Turn {
    /// Keeps so many bytes more until the object is concluded. Where it has its share already, that waits for its turn.
    pub(super) async fn keep(&self, bytes: usize) {
        let kept = self.kept.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if kept > self.share {
            // It fails if nobody counts any more.
            let _ = self.concluded.clone().wait_for(|concluded| *concluded >= self.position).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn an_object_that_has_its_share_waits_for_those_before_it() {
        let turns = Turns::new(4);
        let [first, second, third] = [0, 1, 2].map(|position| turns.of(position));
        let keeps = |turn: &Turn, bytes: usize| turn.keep(bytes).now_or_never().is_some();
        let share = SHARED / 4;
        // The one whose turn it is keeps what it needs, the others their share.
        assert!(keeps(&first, 10 * SHARED));
        assert!(keeps(&second, share) && keeps(&third, share));
        assert!(!keeps(&second, 1) && !keeps(&third, 1));
        turns.conclude(1);
        assert!(keeps(&second, SHARED) && !keeps(&third, 1));
        turns.conclude(2);
        assert!(keeps(&third, SHARED));
    }

    #[test]
    fn nobody_waits_when_the_run_is_over() {
        let turns = Turns::new(1);
        let last = turns.of(7);
        drop(turns);
        assert!(last.keep(2 * SHARED).now_or_never().is_some());
    }
}
