//! Who may be connected, for how long, and who makes room.
//!
//! Whoever reaches the port may connect. A peer that has not shown a token costs a place and a few bytes, gives both back
//! after a time, and earlier if somebody else comes: nobody who has a token waits for one who has none. Peers that say
//! nothing go first, so that however many of these come, who has a token keeps the place until it is shown.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How many peers may be connected, upgraded connections among them.
const CONNECTIONS: usize = 1024;

/// The handshake, and the head of the first request, must be there within this time.
///
/// Source: apiserver `pkg/server/secure_serving.go`, `ReadHeaderTimeout`, which counts for a handshake, too.
pub(crate) const FIRST_REQUEST: Duration = Duration::from_secs(32);

/// A connection without a request under way is closed after this time.
///
/// Source: apiserver `pkg/server/secure_serving.go`, `IdleTimeout`.
const IDLE: Duration = Duration::from_secs(90);

/// What a peer may send before it has shown a token. It is enough for the head of any usual request.
const FREE_BYTES: usize = 16 << 10;

/// What all such peers may send together beyond that, since a head may have a megabyte.
const STRANGERS_BYTES: usize = 16 << 20;

/// The places of a listener.
#[derive(Debug)]
pub(crate) struct Places {
    /// In the order in which the peers came.
    taken: Mutex<Taken>,
    capacity: usize,
    /// There may be room again.
    freed: Notify,
    strangers_bytes: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    peers: BTreeMap<u64, Arc<Peer>>,
}

/// Whoever is connected.
#[derive(Debug)]
struct Peer {
    activity: Mutex<Activity>,
    /// Its place goes to somebody else.
    evicted: CancellationToken,
}

/// What a peer has shown of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Nothing,
    /// That it speaks, if only the beginning of a handshake.
    Life,
    Token,
}

/// What a peer does.
#[derive(Debug)]
struct Activity {
    shown: Shown,
    has_requested: bool,
    /// Whether HTTP is over and something else goes on.
    is_upgraded: bool,
    /// How many requests are under way.
    requests: usize,
    /// Since when there is none.
    quiet_since: Instant,
    /// What it has sent as a stranger.
    bytes: usize,
    /// The part of these that is not free.
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

    /// A place for somebody who has just come. If there is none, the stranger who has been there for longest gives up its
    /// own, one that says nothing before others, or else the peer that has been idle for longest. It waits only while
    /// everybody has a token and a request under way.
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

    /// Makes room where the process has no more files to open.
    pub(crate) fn evict_one(&self) {
        lock(&self.taken).evict_one();
    }
}

impl Taken {
    /// Takes the place of whoever can best do without; whether there is somebody.
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

    /// When the connection has been quiet for too long.
    fn ends(&self) -> Option<Instant> {
        let limit = if self.has_requested { IDLE } else { FIRST_REQUEST };
        self.idle_since().map(|since| since + limit)
    }
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    id: u64,
    peer: Arc<Peer>,
    places: Arc<Places>,
}

impl Place {
    /// For whoever watches over the connection.
    pub(crate) fn watcher(&self) -> Watcher {
        Watcher { peer: Arc::clone(&self.peer), places: Arc::clone(&self.places) }
    }

    /// Takes note of what the peer has sent inside of TLS.
    ///
    /// # Errors
    /// It is a stranger who sends much while others do.
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

/// Watches over a connection.
#[derive(Clone, Debug)]
pub(crate) struct Watcher {
    peer: Arc<Peer>,
    places: Arc<Places>,
}

impl Watcher {
    /// A request has begun, of somebody with a token or not; it is under way until what is returned is dropped.
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

    /// HTTP is over, though the connection may not be.
    pub(crate) fn has_ended(&self) {
        lock(&self.peer.activity).is_upgraded = true;
    }

    /// Something has come from the peer.
    pub(crate) fn has_spoken(&self) {
        let mut activity = lock(&self.peer.activity);
        activity.shown = activity.shown.max(Shown::Life);
    }

    /// Returns when the place goes to somebody else.
    pub(crate) async fn evicted(&self) {
        self.peer.evicted.cancelled().await;
    }

    /// Returns when the connection has been quiet for too long.
    pub(crate) async fn quiet(&self) {
        loop {
            let now = Instant::now();
            let ends = lock(&self.peer.activity).ends();
            if ends.is_some_and(|ends| ends <= now) {
                return;
            }
            // What begins or ends meanwhile only puts it off.
            sleep_until(ends.unwrap_or(now + FIRST_REQUEST.min(IDLE))).await;
        }
    }
}

/// A request under way.
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
        // A stranger's request keeps nobody out.
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
        // Who shows a token gives them back, and so does who goes.
        let _request = one.watcher().request(true);
        assert_eq!(free(), STRANGERS_BYTES - 1);
        one.has_sent(STRANGERS_BYTES).unwrap();
        drop(other);
        assert_eq!(free(), STRANGERS_BYTES);
    }
}
