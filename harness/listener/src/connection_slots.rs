//! Limits the number and the duration of connections, and decides which peers are evicted.
//!
//! Every peer that reaches the port may connect. An unauthenticated peer never evicts an authenticated peer. An
//! unauthenticated peer gets one slot and a small number of bytes, loses the slot after a timeout, and is evicted
//! earlier if another peer needs its slot. Peers that have sent nothing are evicted first, so that a flood of idle
//! connections cannot evict a peer during its handshake.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The maximum number of connections, including upgraded connections.
const CONNECTIONS: usize = 1024;

/// The time limit for the handshake and the headers of the first request.
///
/// Source: apiserver `pkg/server/secure_serving.go`, `ReadHeaderTimeout`, which also limits the handshake.
pub(crate) const FIRST_REQUEST: Duration = Duration::from_secs(32);

/// The time after which a connection without an active request is closed.
///
/// Source: apiserver `pkg/server/secure_serving.go`, `IdleTimeout`.
const IDLE: Duration = Duration::from_secs(90);

/// The maximum number of bytes from each unauthenticated peer. The headers of most requests are smaller.
const FREE_BYTES: usize = 16 << 10;

/// The maximum total number of bytes in excess of [`FREE_BYTES`] from all unauthenticated peers.
const UNAUTHENTICATED_BYTES: usize = 16 << 20;

/// The connection slots of a listener.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    /// The peers, in the order in which they connected.
    occupied: Mutex<OccupiedSlots>,
    capacity: usize,
    /// Notified when a slot may be free.
    freed: Notify,
    unauthenticated_bytes: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct OccupiedSlots {
    next: u64,
    peers: BTreeMap<u64, Arc<Peer>>,
}

/// A connected peer.
#[derive(Debug)]
struct Peer {
    activity: Mutex<Activity>,
    /// Canceled when the peer is evicted.
    evicted: CancellationToken,
}

/// What a peer has sent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Nothing,
    /// Some bytes, such as the start of a handshake.
    Bytes,
    Token,
}

/// What a peer has done on its connection, and the memory that it uses.
#[derive(Debug)]
struct Activity {
    progress: Progress,
    has_requested: bool,
    /// Whether the connection has been upgraded from HTTP.
    is_upgraded: bool,
    /// The number of active requests.
    requests: usize,
    /// The time at which the last request ended or, before the first request, the time at which the peer connected.
    quiet_since: Instant,
    /// The bytes that the peer sent before it was authenticated.
    bytes: usize,
    /// The reservation for the peer's bytes in excess of [`FREE_BYTES`].
    charged: Option<OwnedSemaphorePermit>,
}

impl ConnectionSlots {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_capacity(CONNECTIONS)
    }

    fn with_capacity(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            occupied: Mutex::default(),
            capacity,
            freed: Notify::new(),
            unauthenticated_bytes: Arc::new(Semaphore::new(UNAUTHENTICATED_BYTES)),
        })
    }

    /// Takes a slot for a new peer.
    ///
    /// If no slot is free, evicts a peer: the longest-connected peer that has not sent anything; if there is none, the
    /// longest-connected unauthenticated peer; otherwise, the peer that has been idle longest. Waits only while all
    /// peers are authenticated and have active requests.
    pub(crate) async fn take(self: &Arc<Self>) -> ConnectionSlot {
        loop {
            if let Some(slot) = self.try_take() {
                return slot;
            }
            self.freed.notified().await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut occupied = lock(&self.occupied);
        if occupied.peers.len() >= self.capacity && !occupied.evict_one() {
            return None;
        }
        let id = occupied.next;
        occupied.next += 1;
        let peer = Arc::new(Peer {
            activity: Mutex::new(Activity {
                progress: Progress::Nothing,
                has_requested: false,
                is_upgraded: false,
                requests: 0,
                quiet_since: Instant::now(),
                bytes: 0,
                charged: None,
            }),
            evicted: CancellationToken::new(),
        });
        occupied.peers.insert(id, Arc::clone(&peer));
        Some(ConnectionSlot { id, peer, slots: Arc::clone(self) })
    }

    /// Evicts a peer because the process cannot open more files.
    pub(crate) fn evict_one(&self) {
        lock(&self.occupied).evict_one();
    }
}

impl OccupiedSlots {
    /// Evicts the least important peer. Returns `false` if no peer can be evicted.
    fn evict_one(&mut self) -> bool {
        let silent = self.peers.iter().find(|(_, peer)| lock(&peer.activity).progress == Progress::Nothing);
        let stranger = || self.peers.iter().find(|(_, peer)| lock(&peer.activity).progress < Progress::Token);
        let idle = || {
            let idle =
                self.peers.iter().filter_map(|(id, peer)| Some((lock(&peer.activity).idle_since()?, *id)));
            idle.min().map(|(_, id)| id)
        };
        let Some(id) = silent.or_else(stranger).map(|(id, _)| *id).or_else(idle) else { return false };
        if let Some(peer) = self.peers.remove(&id) {
            peer.evicted.cancel();
        }
        true
    }
}

impl Activity {
    fn idle_since(&self) -> Option<Instant> {
        (self.requests == 0 && !self.is_upgraded).then_some(self.quiet_since)
    }

    /// Returns the time at which the connection times out; `None` if it does not time out.
    fn deadline(&self) -> Option<Instant> {
        let limit = if self.has_requested { IDLE } else { FIRST_REQUEST };
        self.idle_since().map(|since| since + limit)
    }
}

/// The slot of a connection. The slot is released when this value is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    id: u64,
    peer: Arc<Peer>,
    slots: Arc<ConnectionSlots>,
}

impl ConnectionSlot {
    /// Returns a handle that monitors the connection.
    pub(crate) fn watcher(&self) -> Watcher {
        Watcher { peer: Arc::clone(&self.peer), slots: Arc::clone(&self.slots) }
    }

    /// Counts bytes that the peer has sent over TLS.
    ///
    /// # Errors
    /// Returns an error if the peer is unauthenticated and unauthenticated peers would exceed
    /// [`UNAUTHENTICATED_BYTES`].
    pub(crate) fn count_sent(&self, bytes: usize) -> io::Result<()> {
        let mut activity = lock(&self.peer.activity);
        if activity.progress == Progress::Token {
            return Ok(());
        }
        activity.bytes += bytes;
        let charged = activity.charged.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = activity.bytes.saturating_sub(FREE_BYTES).saturating_sub(charged);
        let more = u32::try_from(more).map_err(io::Error::other)?;
        if more > 0 {
            let permit = Arc::clone(&self.slots.unauthenticated_bytes).try_acquire_many_owned(more);
            let permit = permit.map_err(io::Error::other)?;
            match &mut activity.charged {
                Some(charged) => charged.merge(permit),
                charged @ None => *charged = Some(permit),
            }
        }
        Ok(())
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.slots.occupied).peers.remove(&self.id);
        self.slots.freed.notify_one();
    }
}

/// A handle that records the activity of a connection and waits for its eviction or timeout.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    peer: Arc<Peer>,
    slots: Arc<ConnectionSlots>,
}

impl Watcher {
    /// Registers a request. The request is active until the returned guard is dropped.
    ///
    /// `is_known` specifies whether the user is authenticated.
    pub(crate) fn request(&self, is_known: bool) -> ActiveRequest {
        let mut activity = lock(&self.peer.activity);
        activity.progress = activity.progress.max(Progress::Bytes);
        activity.has_requested = true;
        activity.requests += 1;
        if is_known {
            activity.progress = Progress::Token;
            activity.charged = None;
        }
        drop(activity);
        ActiveRequest(self.clone())
    }

    /// Records that the connection no longer uses HTTP. It may continue, for example as a WebSocket.
    pub(crate) fn record_http_end(&self) {
        lock(&self.peer.activity).is_upgraded = true;
    }

    /// Records that the peer has sent something.
    pub(crate) fn record_activity(&self) {
        let mut activity = lock(&self.peer.activity);
        activity.progress = activity.progress.max(Progress::Bytes);
    }

    /// Waits until the peer is evicted.
    pub(crate) async fn evicted(&self) {
        self.peer.evicted.cancelled().await;
    }

    /// Waits until the connection times out.
    pub(crate) async fn timed_out(&self) {
        loop {
            let now = Instant::now();
            let deadline = lock(&self.peer.activity).deadline();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return;
            }
            // Requests that start or end in the meantime can only postpone the deadline.
            sleep_until(deadline.unwrap_or(now + FIRST_REQUEST.min(IDLE))).await;
        }
    }
}

/// A guard for an active request. The request ends when the guard is dropped.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Watcher);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.peer.activity);
        activity.requests -= 1;
        activity.quiet_since = Instant::now();
        drop(activity);
        self.0.slots.freed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn is_evicted(slot: &ConnectionSlot) -> bool {
        slot.peer.evicted.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn unauthenticated_peers_are_evicted_before_idle_ones() {
        let slots = ConnectionSlots::with_capacity(4);
        let known = slots.take().await;
        drop(known.watcher().request(true));
        tokio::time::advance(Duration::from_secs(1)).await;
        let busy = slots.take().await;
        let _request = busy.watcher().request(true);
        let strangers = [slots.take().await, slots.take().await];
        for stranger in &strangers {
            stranger.watcher().record_activity();
        }
        // A request of an unauthenticated peer does not protect it from eviction.
        let _request = strangers[0].watcher().request(false);

        let third = slots.take().await;
        assert!(is_evicted(&strangers[0]) && !is_evicted(&strangers[1]));
        drop(third.watcher().request(true));
        let fourth = slots.take().await;
        assert!(is_evicted(&strangers[1]));
        drop(fourth.watcher().request(true));
        drop(strangers);

        let fifth = slots.take().await;
        assert!(is_evicted(&known) && !is_evicted(&third));
        let _requests = [&third, &fourth, &fifth].map(|slot| slot.watcher().request(true));
        assert!(slots.take().now_or_never().is_none(), "everybody has a token and a request");
        drop(busy);
        slots.take().await;
    }

    #[tokio::test]
    async fn silent_peers_are_evicted_before_peers_in_a_handshake() {
        let slots = ConnectionSlots::with_capacity(2);
        let (speaks, silent) = (slots.take().await, slots.take().await);
        speaks.watcher().record_activity();
        let third = slots.take().await;
        assert!(is_evicted(&silent) && !is_evicted(&speaks));
        third.watcher().record_activity();
        let _fourth = slots.take().await;
        assert!(is_evicted(&speaks) && !is_evicted(&third));
    }

    #[tokio::test]
    async fn an_upgraded_connection_keeps_its_slot_until_it_ends() {
        let slots = ConnectionSlots::with_capacity(1);
        let slot = slots.take().await;
        drop(slot.watcher().request(true));
        slot.watcher().record_http_end();
        assert!(slots.take().now_or_never().is_none());
        drop(slot);
        assert!(slots.take().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_closed() {
        let slots = ConnectionSlots::with_capacity(1);
        let slot = slots.take().await;
        let started = Instant::now();
        slot.watcher().timed_out().await;
        assert_eq!(started.elapsed(), FIRST_REQUEST);
        let request = slot.watcher().request(false);
        let watcher = slot.watcher();
        assert!(tokio::time::timeout(10 * IDLE, watcher.timed_out()).await.is_err());
        drop(request);
        let started = Instant::now();
        watcher.timed_out().await;
        assert_eq!(started.elapsed(), IDLE);
    }

    #[tokio::test]
    async fn unauthenticated_peers_share_a_byte_limit() {
        let slots = ConnectionSlots::with_capacity(3);
        let free = || slots.unauthenticated_bytes.available_permits();
        let (one, other) = (slots.take().await, slots.take().await);
        one.count_sent(FREE_BYTES).unwrap();
        assert_eq!(free(), UNAUTHENTICATED_BYTES);
        one.count_sent(UNAUTHENTICATED_BYTES - 1).unwrap();
        other.count_sent(FREE_BYTES + 1).unwrap();
        assert!(other.count_sent(1).is_err());
        // Bytes are released when the peer authenticates or disconnects.
        let _request = one.watcher().request(true);
        assert_eq!(free(), UNAUTHENTICATED_BYTES - 1);
        one.count_sent(UNAUTHENTICATED_BYTES).unwrap();
        drop(other);
        assert_eq!(free(), UNAUTHENTICATED_BYTES);
    }
}
