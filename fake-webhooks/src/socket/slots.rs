//! Limits the number of connections of a listener.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The connection slots of a listener.
///
/// If all slots are taken, a new connection replaces the one that has been idle longest, or waits if every connection
/// has a call in progress.
#[derive(Debug)]
pub(crate) struct Slots {
    state: Mutex<State>,
    /// Notified when a slot becomes free or a connection becomes idle.
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    most: usize,
    next: u64,
    open: BTreeMap<u64, Arc<Activity>>,
}

/// The slot of a connection. It is freed when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    number: u64,
    pub(crate) activity: Arc<Activity>,
}

/// The activity of a connection.
#[derive(Debug)]
pub(crate) struct Activity {
    calls: AtomicUsize,
    idle_since: Mutex<Instant>,
    changed: Arc<Notify>,
    /// Canceled when the connection must close so that another one gets its slot.
    pub(crate) ends: CancellationToken,
}

/// A call in progress on a connection.
#[derive(Debug)]
pub(crate) struct Busy<'a>(&'a Activity);

impl Slots {
    pub(crate) fn new(most: usize) -> Self {
        let state = State { most, next: 0, open: BTreeMap::new() };
        Self { state: Mutex::new(state), changed: Arc::default() }
    }

    /// Changes the number of slots.
    pub(crate) fn resize(&self, most: usize) {
        lock(&self.state).most = most;
        self.changed.notify_one();
    }

    /// Waits for a free slot, and closes the connection that has been idle longest if all slots are taken.
    pub(crate) async fn take(self: &Arc<Self>) -> Slot {
        loop {
            if let Some(slot) = self.try_take() {
                return slot;
            }
            self.changed.notified().await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Slot> {
        let mut state = lock(&self.state);
        if state.open.len() >= state.most {
            let idle = state.open.values().filter(|activity| activity.is_idle());
            if let Some(longest) = idle.min_by_key(|activity| *lock(&activity.idle_since)) {
                longest.ends.cancel();
            }
            return None;
        }
        let number = state.next;
        state.next += 1;
        let activity = Arc::new(Activity {
            calls: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            changed: Arc::clone(&self.changed),
            ends: CancellationToken::new(),
        });
        state.open.insert(number, Arc::clone(&activity));
        Some(Slot { slots: Arc::clone(self), number, activity })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.slots.state).open.remove(&self.number);
        self.slots.changed.notify_one();
    }
}

impl Activity {
    /// Marks a call as in progress until the returned value is dropped.
    pub(crate) fn begin(&self) -> Busy<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    fn is_idle(&self) -> bool {
        self.calls.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        *lock(&self.0.idle_since) = Instant::now();
        if self.0.calls.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.changed.notify_one();
        }
    }
}

/// Locks a mutex. Ignores poisoning, because updates are atomic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn longest_idle_connection_is_replaced() {
        let slots = Arc::new(Slots::new(3));
        let busy = slots.take().await;
        let _call = busy.activity.begin();
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        let oldest = slots.take().await;
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        let newest = slots.take().await;
        drop(oldest.activity.begin());

        let mut next = Box::pin(slots.take());
        assert!((&mut next).now_or_never().is_none(), "it waits until the other one is gone");
        let ends = |slot: &Slot| slot.activity.ends.is_cancelled();
        assert_eq!((ends(&busy), ends(&oldest), ends(&newest)), (false, true, false), "the call was before");
        drop(oldest);
        assert!(next.now_or_never().is_some());
    }

    #[tokio::test]
    async fn new_connection_waits_if_all_slots_are_busy() {
        let slots = Arc::new(Slots::new(1));
        let slot = slots.take().await;
        let call = slot.activity.begin();
        let mut next = Box::pin(slots.take());
        assert!((&mut next).now_or_never().is_none());
        slots.resize(2);
        let second = next.now_or_never().expect("there is one more");
        let _other_call = second.activity.begin();

        let mut next = Box::pin(slots.take());
        assert!((&mut next).now_or_never().is_none());
        assert!(!slot.activity.ends.is_cancelled());
        drop(call);
        assert!((&mut next).now_or_never().is_none());
        assert!(slot.activity.ends.is_cancelled(), "it makes room as soon as it is idle");
    }
}
