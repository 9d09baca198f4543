//! Limits connections: how many peers may connect, for how long, and which ones are evicted for others.
//!
//! Every peer that reaches the port may connect. Authenticated peers are never evicted by unauthenticated ones: a peer
//! that has not sent a token gets one slot and a small number of bytes, loses them after a timeout, and is evicted
//! earlier if another peer connects. Peers that have sent nothing are evicted first, so a flood of idle connections
//! cannot evict a peer during its handshake.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The maximum number of connections, including upgraded ones.
const CONNECTIONS: usize = 1024;

/// The time limit for the handshake and the headers of the first request.
///
/// Source: apiserver `pkg/server/secure_serving.go`, `ReadHeaderTimeout`, which counts for a handshake, too.
pub(crate) const FIRST_REQUEST: Duration = Duration::from_secs(32);

/// The time after which a connection without an active request is closed.
///
/// Source: apiserver `pkg/server/secure_serving.go`, `IdleTimeout`.
const IDLE: Duration = Duration::from_secs(90);

/// How many bytes a peer may send before it has sent a token. The headers of a usual request are smaller.
const FREE_BYTES: usize = 16 << 10;

/// How many bytes all such peers may send together beyond that, because headers may be up to a megabyte.
const STRANGERS_BYTES: usize = 16 << 20;

/// The connection slots of a listener.
#[derive(Debug)]
pub(crate) struct Places {
    /// The peers, in the order in which they connected.
    taken: Mutex<Taken>,
    capacity: usize,
    /// Notified when a slot may be free.
    freed: Notify,
    strangers_bytes: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    peers: BTreeMap<u64, Arc<Peer>>,
}

/// A connected peer.
#[derive(Debug)]
struct Peer {
    activity: Mutex<Activity>,
    /// Canceled when its slot is given to another peer.
    evicted: CancellationToken,
}

/// What a peer has sent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Nothing,
    /// Some bytes, such as the start of a handshake.
    Life,
    Token,
}

/// The activity of a peer.
#[derive(Debug)]
struct Activity {
    shown: Shown,
    has_requested: bool,
    /// Whether the connection has been upgraded from HTTP.
    is_upgraded: bool,
    /// The number of active requests.
    requests: usize,
    /// When the last request ended.
    quiet_since: Instant,
    /// The bytes that it has sent before it was authenticated.
    bytes: usize,
    /// The reservation for those bytes beyond the free ones.
    charged: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_capacity(CONNECTIONS)
    }

    fn with_capacity(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: Mutex::default(),
            capacity,
            freed: Notify::new(),
            strangers_bytes: Arc::new(Semaphore::new(STRANGERS_BYTES)),
        })
    }

    /// Takes a slot for a new peer.
    ///
    /// If none is free, evicts the unauthenticated peer that has been connected longest, preferring peers that have
    /// sent nothing; otherwise, the peer that has been idle longest. Waits only while all peers are authenticated and
    /// have active requests.
    pub(crate) async fn take(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.try_take() {
                return place;
            }
            self.freed.notified().await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Place> {
        let mut taken = lock(&self.taken);
        if taken.peers.len() >= self.capacity && !taken.evict_one() {
            return None;
        }
        let id = taken.next;
        taken.next += 1;
        let peer = Arc::new(Peer {
            activity: Mutex::new(Activity {
                shown: Shown::Nothing,
                has_requested: false,
                is_upgraded: false,
                requests: 0,
                quiet_since: Instant::now(),
                bytes: 0,
                charged: None,
            }),
            evicted: CancellationToken::new(),
        });
        taken.peers.insert(id, Arc::clone(&peer));
        Some(Place { id, peer, places: Arc::clone(self) })
    }

    /// Evicts a peer because the process cannot open more files.
    pub(crate) fn evict_one(&self) {
        lock(&self.taken).evict_one();
    }
}

impl Taken {
    /// Evicts the least important peer, and returns whether there was one to evict.
    fn evict_one(&mut self) -> bool {
        let silent = self.peers.iter().find(|(_, peer)| lock(&peer.activity).shown == Shown::Nothing);
        let stranger = || self.peers.iter().find(|(_, peer)| lock(&peer.activity).shown < Shown::Token);
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

    /// Returns when the connection times out.
    fn ends(&self) -> Option<Instant> {
        let limit = if self.has_requested { IDLE } else { FIRST_REQUEST };
        self.idle_since().map(|since| since + limit)
    }
}

/// The slot of a connection, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    id: u64,
    peer: Arc<Peer>,
    places: Arc<Places>,
}

impl Place {
    /// Returns a handle for the task that monitors the connection.
    pub(crate) fn watcher(&self) -> Watcher {
        Watcher { peer: Arc::clone(&self.peer), places: Arc::clone(&self.places) }
    }

    /// Counts bytes that the peer has sent over TLS.
    ///
    /// # Errors
    /// The peer is unauthenticated and has exceeded its share of the bytes.
    pub(crate) fn has_sent(&self, bytes: usize) -> io::Result<()> {
        let mut activity = lock(&self.peer.activity);
        if activity.shown == Shown::Token {
            return Ok(());
        }
        activity.bytes += bytes;
        let charged = activity.charged.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = activity.bytes.saturating_sub(FREE_BYTES).saturating_sub(charged);
        let more = u32::try_from(more).map_err(io::Error::other)?;
        if more > 0 {
            let permit = Arc::clone(&self.places.strangers_bytes).try_acquire_many_owned(more);
            let permit = permit.map_err(io::Error::other)?;
            match &mut activity.charged {
                Some(charged) => charged.merge(permit),
                charged @ None => *charged = Some(permit),
            }
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.taken).peers.remove(&self.id);
        self.places.freed.notify_one();
    }
}

/// Monitors a connection.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    peer: Arc<Peer>,
    places: Arc<Places>,
}

impl Watcher {
    /// Registers a request, which is active until the returned guard is dropped.
    ///
    /// `is_known` says whether the user is authenticated.
    pub(crate) fn request(&self, is_known: bool) -> UnderWay {
        let mut activity = lock(&self.peer.activity);
        activity.shown = activity.shown.max(Shown::Life);
        activity.has_requested = true;
        activity.requests += 1;
        if is_known {
            activity.shown = Shown::Token;
            activity.charged = None;
        }
        drop(activity);
        UnderWay(self.clone())
    }

    /// Records that HTTP has ended, although the connection may continue.
    pub(crate) fn has_ended(&self) {
        lock(&self.peer.activity).is_upgraded = true;
    }

    /// Records that the peer has sent something.
    pub(crate) fn has_spoken(&self) {
        let mut activity = lock(&self.peer.activity);
        activity.shown = activity.shown.max(Shown::Life);
    }

    /// Returns when the slot is given to another peer.
    pub(crate) async fn evicted(&self) {
        self.peer.evicted.cancelled().await;
    }

    /// Returns when the connection times out.
    pub(crate) async fn quiet(&self) {
        loop {
            let now = Instant::now();
            let ends = lock(&self.peer.activity).ends();
            if ends.is_some_and(|ends| ends <= now) {
                return;
            }
            // Requests that start or end in the meantime can only postpone the deadline.
            sleep_until(ends.unwrap_or(now + FIRST_REQUEST.min(IDLE))).await;
        }
    }
}

/// Guards an active request.
#[derive(Debug)]
pub(crate) struct UnderWay(Watcher);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.peer.activity);
        activity.requests -= 1;
        activity.quiet_since = Instant::now();
        drop(activity);
        self.0.places.freed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn is_evicted(place: &Place) -> bool {
        place.peer.evicted.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_make_room_first_and_then_who_is_idle() {
        let places = Places::with_capacity(4);
        let known = places.take().await;
        drop(known.watcher().request(true));
        tokio::time::advance(Duration::from_secs(1)).await;
        let busy = places.take().await;
        let _request = busy.watcher().request(true);
        let strangers = [places.take().await, places.take().await];
        for stranger in &strangers {
            stranger.watcher().has_spoken();
        }
        // A request of an unauthenticated peer does not protect it from eviction.
        let _request = strangers[0].watcher().request(false);

        let third = places.take().await;
        assert!(is_evicted(&strangers[0]) && !is_evicted(&strangers[1]));
        drop(third.watcher().request(true));
        let fourth = places.take().await;
        assert!(is_evicted(&strangers[1]));
        drop(fourth.watcher().request(true));
        drop(strangers);

        let fifth = places.take().await;
        assert!(is_evicted(&known) && !is_evicted(&third));
        let _requests = [&third, &fourth, &fifth].map(|place| place.watcher().request(true));
        assert!(places.take().now_or_never().is_none(), "everybody has a token and a request");
        drop(busy);
        places.take().await;
    }

    #[tokio::test]
    async fn who_says_nothing_makes_room_before_who_shakes_hands() {
        let places = Places::with_capacity(2);
        let (speaks, silent) = (places.take().await, places.take().await);
        speaks.watcher().has_spoken();
        let third = places.take().await;
        assert!(is_evicted(&silent) && !is_evicted(&speaks));
        third.watcher().has_spoken();
        let _fourth = places.take().await;
        assert!(is_evicted(&speaks) && !is_evicted(&third));
    }

    #[tokio::test]
    async fn an_upgraded_connection_keeps_its_place_until_it_ends() {
        let places = Places::with_capacity(1);
        let place = places.take().await;
        drop(place.watcher().request(true));
        place.watcher().has_ended();
        assert!(places.take().now_or_never().is_none());
        drop(place);
        assert!(places.take().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_connections_end() {
        let places = Places::with_capacity(1);
        let place = places.take().await;
        let started = Instant::now();
        place.watcher().quiet().await;
        assert_eq!(started.elapsed(), FIRST_REQUEST);
        let request = place.watcher().request(false);
        let watcher = place.watcher();
        assert!(tokio::time::timeout(10 * IDLE, watcher.quiet()).await.is_err());
        drop(request);
        let started = Instant::now();
        watcher.quiet().await;
        assert_eq!(started.elapsed(), IDLE);
    }

    #[tokio::test]
    async fn strangers_share_the_bytes_that_they_may_send() {
        let places = Places::with_capacity(3);
        let free = || places.strangers_bytes.available_permits();
        let (one, other) = (places.take().await, places.take().await);
        one.has_sent(FREE_BYTES).unwrap();
        assert_eq!(free(), STRANGERS_BYTES);
        one.has_sent(STRANGERS_BYTES - 1).unwrap();
        other.has_sent(FREE_BYTES + 1).unwrap();
        assert!(other.has_sent(1).is_err());
        // Bytes are released when the peer authenticates or disconnects.
        let _request = one.watcher().request(true);
        assert_eq!(free(), STRANGERS_BYTES - 1);
        one.has_sent(STRANGERS_BYTES).unwrap();
        drop(other);
        assert_eq!(free(), STRANGERS_BYTES);
    }
}
