//! Watches: the changes of a collection, as they come.
//!
//! A watcher keeps no queue, and no objects. It reads what is stored, and then the changes that the
//! [storage](super::storage) remembers, from where it last stopped. One that lags too far behind ends without a word, as
//! upstream's cache closes a watcher that does not read; one that begins too far back is told `410 Expired`, upon which
//! clients list again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, timeout_at};

use super::answer::Answer;
use super::budget::{Budget, Reservation};
use super::discovery::Resource;
use super::options;
use super::query::Query;
use super::read::{self, Selection};
use super::request::ObjectRequest;
use super::state::State;
use super::storage::{Change, Forgotten, Key, News, Page, Walk, set_resource_version};
use crate::json::set;
use crate::status::{FieldError, Status};

/// How long a watch lives that does not say.
///
/// Source: kube-apiserver's `--min-request-timeout`, of which upstream takes once to twice as much at random.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// How often a client that takes bookmarks is told the latest `resourceVersion`.
///
/// Source: apiserver `pkg/storage/cacher/cacher.go`, `defaultBookmarkFrequency`.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// How many changes or objects a watcher looks at together.
const LOOKED_AT: usize = 256;

/// A piece of the answer ends with the event that makes it as long as this. Each watcher may have one under way; what is
/// longer counts as a large event.
const PIECE_BYTES: usize = 32 << 10;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// With an event for each object that is there.
    WithObjects,
    /// With what was written after this `resourceVersion`.
    After(u64),
}

/// What the query says of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WatchOptions {
    start: Start,
    bookmarks: bool,
    /// None if it is over before it begins.
    lifetime: Option<Duration>,
}

/// A watch that has been granted.
#[derive(Debug)]
pub(super) struct Watch {
    state: Arc<State>,
    resource: Arc<Resource>,
    namespace: String,
    selection: Selection,
    options: WatchOptions,
    large_events: Budget,
    /// Its place among the watches.
    _place: Reservation,
}

/// Grants a watch of a collection.
pub(super) fn watch(request: &ObjectRequest<'_>) -> Result<Answer, Box<Status>> {
    // What is written from now on counts, though the first look is taken later: a WebSocket is yet to be opened.
    let options = watch_options(&request.query, request.server.state.storage.resource_version())?;
    let resource = Arc::clone(&request.target.resource);
    Ok(Answer::Watch(Watch {
        state: Arc::clone(&request.server.state),
        selection: Selection::parse(&request.query, &resource.gvr.group_resource())?,
        resource,
        namespace: request.target.namespace.clone(),
        options,
        large_events: request.server.large_events.clone(),
        _place: request.server.watches.try_reserve(1)?,
    }))
}

/// Source: apimachinery pkg/apis/meta/internalversion/validation/validation.go, `validateWatchOptions`, and
/// pkg/apis/meta/internalversion/defaults.go, `SetListOptionsDefaults`; apiserver pkg/endpoints/handlers/get.go,
/// `ListResource`.
fn watch_options(query: &Query, now: u64) -> Result<WatchOptions, Box<Status>> {
    let text = |field| query.first(field).unwrap_or_default();
    let version = text("resourceVersion");
    let wants_objects = options::truth(query, "sendInitialEvents");
    let errors = check(wants_objects.is_some(), text("resourceVersionMatch"), text("continue"));
    if !errors.is_empty() {
        return Err(Box::new(Status::invalid("meta.k8s.io", "ListOptions", "", &errors)));
    }
    let lifetime = match text("timeoutSeconds") {
        "" => Some(LIFETIME),
        seconds => match seconds.parse::<i64>() {
            Ok(seconds) => lifetime(seconds),
            Err(_) => return Err(options::not_an_integer(seconds)),
        },
    };
    let start = match (version, wants_objects) {
        ("" | "0", None) | (_, Some(true)) => Start::WithObjects,
        ("" | "0", Some(false)) => Start::After(now),
        (version, Some(false) | None) => {
            let wrong = |why| Box::new(Status::failure(500, "", why));
            Start::After(read::resource_version(version).map_err(wrong)?)
        }
    };
    Ok(WatchOptions {
        start,
        bookmarks: options::truth(query, "allowWatchBookmarks") == Some(true),
        lifetime,
    })
}

/// How long a watch with this `timeoutSeconds` lives: Go counts in nanoseconds, and what overflows 64 bits wraps around,
/// also to a negative duration.
///
/// Source: apiserver pkg/endpoints/handlers/get.go, `ListResource`: `time.Duration(*opts.TimeoutSeconds) * time.Second`.
fn lifetime(seconds: i64) -> Option<Duration> {
    match seconds.wrapping_mul(1_000_000_000) {
        0 => Some(LIFETIME),
        nanoseconds => u64::try_from(nanoseconds).ok().map(Duration::from_nanos),
    }
}

fn check(says_objects: bool, version_match: &str, token: &str) -> Vec<FieldError> {
    let field = "resourceVersionMatch";
    let forbidden = |why: &str| FieldError::forbidden(field, why);
    let mut errors = Vec::new();
    if says_objects && version_match != "NotOlderThan" {
        errors.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    if version_match.is_empty() {
        return errors;
    }
    if !says_objects {
        errors.push(forbidden(
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ));
    }
    if version_match != "NotOlderThan" {
        errors.push(FieldError::not_supported(field, Value::from(version_match), "\"NotOlderThan\""));
    }
    if !token.is_empty() {
        errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
    }
    errors
}

impl Watch {
    /// The events, each a line of JSON.
    pub(super) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self.begin(), async |mut watcher| {
            let piece = watcher.next().await?;
            Some((Ok::<_, Infallible>(piece), watcher))
        }))
    }

    /// Begins the watch.
    pub(super) fn begin(self) -> Watcher {
        Watcher::new(self)
    }

    /// Returns when the server stops.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut news = self.state.storage.subscribe();
        async move {
            // The server is gone if the news are.
            let _ = news.wait_for(|news| *news == News::Closed).await;
        }
    }

    /// The event that a change is for this watch, if it is one.
    ///
    /// Source: apiserver `pkg/storage/cacher/cache_watcher.go`, `convertToWatchEvent`.
    fn event(&self, change: &Change, version: u64) -> Result<Option<Value>, Box<Status>> {
        let key = &change.key;
        let is_meant = key.group == self.resource.storage_group()
            && key.resource == self.resource.gvr.resource
            && (self.namespace.is_empty() || key.namespace == self.namespace);
        if !is_meant {
            return Ok(None);
        }
        let selected = |object: &&Arc<Value>| self.selection.matches(object);
        Ok(match (change.before.as_ref().filter(selected), change.after.as_ref().filter(selected)) {
            (None, None) => None,
            (None, Some(after)) => Some(self.told("ADDED", after)?),
            (Some(_), Some(after)) => Some(self.told("MODIFIED", after)?),
            (Some(before), None) => {
                // It is told as it last was, with the version of the write that took it away.
                let mut last = (**before).clone();
                set_resource_version(&mut last, version);
                Some(self.told("DELETED", &Arc::new(last))?)
            }
        })
    }

    fn told(&self, kind: &str, stored: &Arc<Value>) -> Result<Value, Box<Status>> {
        let object = self.state.in_version_of(stored, &self.resource);
        Ok(json!({"type": kind, "object": *object.map_err(super::create::conversion_failed)?}))
    }

    fn bookmark(&self, version: u64, ends_objects: bool) -> Value {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if ends_objects {
            set(&mut metadata, &["annotations"], json!({"k8s.io/initial-events-end": "true"}));
        }
        let kind = &self.resource.kind;
        let object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata});
        json!({"type": "BOOKMARK", "object": object})
    }
}

/// What a watcher has been told.
#[derive(Clone, Debug)]
enum Told {
    /// Nothing.
    Nothing,
    /// Which objects there are, as of this `resourceVersion`, up to the one of this namespace and name; none at the
    /// beginning.
    Objects { last: Option<(String, String)>, version: u64 },
    /// All up to this `resourceVersion`.
    Changes { version: u64 },
}

/// A watch under way.
#[derive(Debug)]
pub(super) struct Watcher {
    watch: Watch,
    news: watch::Receiver<News>,
    told: Told,
    ends: Instant,
    bookmarks: Interval,
    is_over: bool,
}

impl Watcher {
    fn new(watch: Watch) -> Self {
        let now = Instant::now();
        let mut bookmarks = tokio::time::interval_at(now + BOOKMARKS, BOOKMARKS);
        bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            news: watch.state.storage.subscribe(),
            told: Told::Nothing,
            // A watch that ends beyond all clocks lives as long as one that does not say.
            ends: now.checked_add(watch.options.lifetime.unwrap_or_default()).unwrap_or(now + LIFETIME),
            bookmarks,
            is_over: false,
            watch,
        }
    }

    /// The next events, each a line of JSON; none once the watch is over. A caller that stops waiting loses no event.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let mut reserved: Option<Reservation> = None;
        while !self.is_over {
            if *self.news.borrow_and_update() == News::Closed {
                return None;
            }
            let told = self.told.clone();
            let mut piece = Vec::new();
            let is_last = self.look(&mut piece).is_err();
            if piece.is_empty() && !is_last {
                self.wait(&mut piece).await;
            }
            if piece.len() <= PIECE_BYTES {
                self.is_over |= is_last;
                if piece.is_empty() {
                    continue;
                }
                return Some(piece.into());
            }
            let large_events = &self.watch.large_events;
            let room = match reserved.take() {
                Some(mut reserved) => reserved.resize(piece.len()).map(|()| reserved),
                None => large_events.try_reserve(piece.len()),
            };
            if let Ok(room) = room {
                self.is_over |= is_last;
                return Some(room.hold(piece));
            }
            // Others have the room. Whoever waits for it keeps nothing, and looks again when it is there.
            self.told = told;
            let wanted = piece.len();
            drop(piece);
            let room = timeout_at(self.ends, large_events.reserve(wanted)).await;
            self.is_over |= room.is_err();
            reserved = room.ok().flatten();
        }
        None
    }

    /// Writes what has happened since it was last told.
    ///
    /// # Errors
    /// [`Over`] if nothing comes after it.
    fn look(&mut self, piece: &mut Vec<u8>) -> Result<(), Over> {
        let result = self.try_look(piece);
        result.map_err(|end| {
            if let End::Failed(status) = end {
                write(piece, &json!({"type": "ERROR", "object": status}));
            }
            Over
        })
    }

    fn try_look(&mut self, piece: &mut Vec<u8>) -> Result<(), End> {
        if self.watch.options.lifetime.is_none() {
            let why = "context deadline exceeded";
            return Err(End::Failed(Box::new(Status::failure(500, "InternalError", why))));
        }
        if let Told::Nothing = self.told {
            self.begin()?;
        }
        while let Told::Objects { last, version } = &self.told {
            let (last, version) = (last.clone(), *version);
            self.look_at_objects(last, version, piece)?;
            if piece.len() >= PIECE_BYTES {
                return Ok(());
            }
        }
        if let Told::Changes { version } = self.told {
            let changes = self.watch.state.storage.changes_after(version, LOOKED_AT)?;
            let told = self.look_at_changes(version, &changes, None, piece)?;
            self.told = Told::Changes { version: told };
            if changes.len() == LOOKED_AT {
                // More may be there, though none of these concerns this watch.
                self.news.mark_changed();
            }
        }
        Ok(())
    }

    /// Begins where the watch is to begin, if that is remembered.
    fn begin(&mut self) -> Result<(), Box<Status>> {
        let storage = &self.watch.state.storage;
        self.told = match self.watch.options.start {
            Start::WithObjects => Told::Objects { last: None, version: storage.resource_version() },
            Start::After(version) => {
                storage.changes_after(version, 0).map_err(|Forgotten { oldest }| {
                    let message = format!("too old resource version: {version} ({oldest})");
                    Box::new(Status::failure(410, "Expired", message))
                })?;
                Told::Changes { version }
            }
        };
        Ok(())
    }

    /// Writes an event for each of the next objects, or, if something has changed since the last of them was told, what
    /// has become of those that were told.
    fn look_at_objects(
        &mut self,
        last: Option<(String, String)>,
        version: u64,
        piece: &mut Vec<u8>,
    ) -> Result<(), End> {
        let Watch { state, resource, namespace, selection, options, .. } = &self.watch;
        let walk = Walk {
            group: resource.storage_group(),
            resource: &resource.gvr.resource,
            namespace,
            after: last.as_ref(),
            version,
        };
        match state.storage.next_page(&walk, LOOKED_AT)? {
            Page::Changes(changes) => {
                let upto = last.clone().unwrap_or_default();
                let version = self.look_at_changes(version, &changes, Some(&upto), piece)?;
                self.told = Told::Objects { last, version };
            }
            Page::Objects(objects) if objects.is_empty() => {
                if options.bookmarks {
                    write(piece, &self.watch.bookmark(version, true));
                }
                self.told = Told::Changes { version };
            }
            Page::Objects(objects) => {
                for (place, object) in objects {
                    if selection.matches(&object) {
                        write(piece, &self.watch.told("ADDED", &object)?);
                    }
                    self.told = Told::Objects { last: Some(place), version };
                    if piece.len() >= PIECE_BYTES {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the events of the changes after a `resourceVersion`, as long as the piece is not full, and says up to which
    /// one it did; only of objects up to `upto`, if that is there.
    fn look_at_changes(
        &self,
        mut version: u64,
        changes: &[Change],
        upto: Option<&(String, String)>,
        piece: &mut Vec<u8>,
    ) -> Result<u64, Box<Status>> {
        for change in changes {
            if piece.len() >= PIECE_BYTES {
                break;
            }
            version += 1;
            let Key { namespace, name, .. } = &change.key;
            let is_told = upto.is_none_or(|(in_namespace, last)| (namespace, name) <= (in_namespace, last));
            if is_told && let Some(event) = self.watch.event(change, version)? {
                write(piece, &event);
            }
        }
        Ok(version)
    }

    /// Waits until there is something to look at, the client is due a bookmark, or the time is over.
    async fn wait(&mut self, piece: &mut Vec<u8>) {
        tokio::select! {
            // The server is gone with all its objects if the news are.
            changed = self.news.changed() => self.is_over = changed.is_err(),
            () = tokio::time::sleep_until(self.ends) => self.is_over = true,
            _ = self.bookmarks.tick(), if self.watch.options.bookmarks => {
                if let Told::Changes { version } = self.told {
                    write(piece, &self.watch.bookmark(version, false));
                }
            }
        }
    }
}

/// Nothing comes after what was written.
struct Over;

/// Why a watch is over.
enum End {
    /// The client is told.
    Failed(Box<Status>),
    /// It lags too far behind.
    Lags,
}

impl From<Box<Status>> for End {
    fn from(status: Box<Status>) -> Self {
        Self::Failed(status)
    }
}

/// Source: apiserver `pkg/storage/cacher/cache_watcher.go`, `add` and `processInterval`: the channel is closed.
impl From<Forgotten> for End {
    fn from(_: Forgotten) -> Self {
        Self::Lags
    }
}

fn write(piece: &mut Vec<u8>, event: &Value) {
    piece.extend_from_slice(event.to_string().as_bytes());
    piece.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_beyond_64_bits_of_nanoseconds_wrap_around() {
        assert_eq!(lifetime(0), Some(LIFETIME));
        assert_eq!(lifetime(5), Some(Duration::from_secs(5)));
        assert_eq!(lifetime(-1), None);
        assert_eq!(lifetime(9_223_372_036), Some(Duration::from_secs(9_223_372_036)));
        assert_eq!(lifetime(9_223_372_037), None);
        assert_eq!(lifetime(18_446_744_074), Some(Duration::from_nanos(290_448_384)));
        assert_eq!(lifetime(i64::MAX), None);
        assert_eq!(lifetime(i64::MIN), Some(LIFETIME));
    }
}
