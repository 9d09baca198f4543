//! Watches: streams of changes to a collection.
//!
//! A watcher does not queue events or keep objects. It reads the stored objects and then the changes in the history of
//! the [storage](crate::storage), from its last position. A watcher that lags too far behind ends without an error, as
//! a watcher of upstream's cache does if its client does not read. A watcher receives `410 Expired` if its start is no
//! longer in the history. Clients then list again.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use jiff::Timestamp;
use kubernetes_admission::cluster_state::ConversionError;
use kubernetes_types::budget::Reservation;
use kubernetes_types::json::set;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, timeout_at};

use super::accept::{MediaType, MetadataOptions, Representation};
use super::answer::ResponseContent;
use super::context::Server;
use super::event_encoding::{EventType, encode_error, encode_event};
use super::events::{EncodeFailure, Event, Events, ServedVersion, give_zero_values};
use super::watch_end::{EndReason, WatchEnded};
use super::watch_options::{DEFAULT_LIFETIME, Start, WatchOptions};
use super::watch_piece::Piece;
use crate::apimachinery::metadata::METADATA_KIND;
use crate::endpoints::watch_options;
use crate::kinds::conversion::Strategy;
use crate::kinds::discovery::Resource;
use crate::kinds::discovery::custom::CustomResourceInfo;
use crate::kinds::tables::{Table, TableOptions};
use crate::registry::request::ObjectRequest;
use crate::registry::selectors::Selection;
use crate::registry::state::State;
use crate::registry::{create, resource_versions};
use crate::storage::{Change, HistoryExpired, Page, PagePosition, StorageEvent, StoredObject};

/// The interval at which a client that allows bookmarks receives the latest `resourceVersion`.
///
/// Source: apiserver `pkg/storage/cacher/cacher.go`, `defaultBookmarkFrequency`.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// The number of changes or objects that a watcher processes at once.
const BATCH_SIZE: usize = 256;

/// An accepted watch.
#[derive(Debug)]
pub(crate) struct Watch {
    state: Arc<State>,
    resource: Arc<Resource>,
    namespace: String,
    selection: Selection,
    options: WatchOptions,
    events: Arc<Events>,
    representation: Representation,
    media_type: MediaType,
    /// Whether an event was sent. Only the first event has column definitions.
    has_begun: AtomicBool,
    /// The reservation that counts toward the maximum number of watches.
    _place: Reservation,
}

/// Creates a watch of a collection.
pub(crate) fn watch(server: &Server, request: &ObjectRequest<'_>) -> Result<ResponseContent, Box<Status>> {
    // The watch includes writes from now on although it reads later, because a WebSocket has to be opened first.
    let now = server.registry.state.storage.resource_version();
    let resource = Arc::clone(&request.target.resource);
    let (options, selection) = watch_options::parse(&request.query, &resource, now)?;
    let by_webhook = |custom: &CustomResourceInfo| matches!(custom.conversion, Strategy::Webhook(_));
    if selection.looks_at_version() && resource.custom.as_ref().is_some_and(by_webhook) {
        let what = "a watch with a field selector on custom resources that a webhook converts".to_owned();
        return Err(Box::new(Status::unsupported(&Unsupported { what })));
    }
    Ok(ResponseContent::Watch(Watch {
        state: Arc::clone(&server.registry.state),
        selection,
        resource,
        namespace: request.target.namespace.clone(),
        options,
        events: Arc::clone(&server.events),
        representation: Representation::Whole,
        media_type: MediaType::Json,
        has_begun: AtomicBool::new(false),
        _place: server.watches.try_reserve(1)?,
    }))
}

impl Watch {
    /// Returns the watch with its objects reduced to their metadata.
    pub(crate) fn of_metadata(self, options: MetadataOptions) -> Self {
        Self { representation: Representation::Metadata(options), ..self }
    }

    /// Returns the watch with each object converted to a Table with one row.
    ///
    /// # Errors
    /// Returns 501 for a kind without columns.
    pub(crate) fn of_tables(self, options: TableOptions) -> Result<Self, Box<Status>> {
        Table::of_object(Arc::default(), &self.resource, "", options, Timestamp::now())?;
        Ok(Self { representation: Representation::Table(options), ..self })
    }

    /// Sets the encoding of the events.
    pub(crate) fn encode_as(&mut self, media_type: MediaType) {
        self.media_type = media_type;
    }

    /// Returns the encoding of the events.
    pub(crate) fn media_type(&self) -> MediaType {
        self.media_type
    }

    /// Returns the encoded events.
    pub(crate) fn into_body(self) -> Body {
        Body::from_stream(stream::unfold(self.begin(), async |mut watcher| {
            let piece = watcher.next().await?;
            Some((Ok::<_, Infallible>(piece), watcher))
        }))
    }

    /// Starts the watch and returns its watcher.
    pub(crate) fn begin(self) -> Watcher {
        Watcher::new(self)
    }

    /// Returns a future that completes when the server stops.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut notifications = self.state.storage.subscribe();
        async move {
            // A closed channel means that the server no longer exists.
            let _ = notifications.wait_for(|notifications| *notifications == StorageEvent::Closed).await;
        }
    }

    /// Returns the event for a change in this watch; `None` if the watch does not select the object.
    ///
    /// Source: apiserver `pkg/storage/cacher/cache_watcher.go`, `convertToWatchEvent`.
    fn event(&self, change: &Change, version: u64) -> Option<Event> {
        let key = &change.key;
        let is_meant = key.group == self.resource.storage_group()
            && key.resource == self.resource.gvr.resource
            && (self.namespace.is_empty() || key.namespace == self.namespace);
        if !is_meant {
            return None;
        }
        let selected =
            |stored: &&Arc<StoredObject>| self.selection.matches(stored, &self.state, &self.resource);
        let (happened, stored) =
            match (change.before.as_ref().filter(selected), change.after.as_ref().filter(selected)) {
                (None, None) => return None,
                (None, Some(after)) => (EventType::Added, after),
                (Some(_), Some(after)) => (EventType::Modified, after),
                (Some(before), None) => (EventType::Deleted, before),
            };
        Some(Event { happened, stored: Arc::clone(stored), version })
    }

    fn served(&self) -> ServedVersion<'_> {
        let Self { state, resource, media_type, .. } = self;
        ServedVersion { state, resource, representation: self.representation(), media_type: *media_type }
    }

    /// Returns the representation of the next event. Only the first event has column definitions.
    ///
    /// Rule: TBL-11.
    fn representation(&self) -> Representation {
        match self.representation {
            Representation::Table(options) => {
                let has_headers = !self.has_begun.load(Relaxed);
                Representation::Table(TableOptions { has_headers, ..options })
            }
            other @ (Representation::Whole | Representation::Metadata(_)) => other,
        }
    }

    /// Adds an event to a piece of the response. Returns false if the piece is full.
    ///
    /// # Errors
    /// Returns an error if the event cannot be encoded, for example because the client requests a list of metadata.
    fn put(&self, event: Event, piece: &mut Piece) -> Result<bool, EndReason> {
        if matches!(self.representation, Representation::Metadata(options) if options.is_list) {
            return Err(EndReason::Lags);
        }
        match self.events.small(&event, self.served())? {
            Some(text) => {
                piece.text.extend_from_slice(&text);
                self.has_begun.store(true, Relaxed);
            }
            None if piece.text.is_empty() => piece.large = Some(event),
            None => {
                piece.is_closed = true;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns an encoded bookmark; `ends_objects` marks the end of the initial events.
    ///
    /// Rule: KND-13.
    fn bookmark(&self, version: u64, ends_objects: bool) -> Vec<u8> {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if ends_objects {
            set(&mut metadata, &["annotations"], json!({"k8s.io/initial-events-end": "true"}));
        }
        let (kind, version) = match self.representation {
            Representation::Whole | Representation::Table(_) => {
                (self.resource.kind.kind.as_str(), self.resource.kind.api_version())
            }
            Representation::Metadata(options) => (METADATA_KIND, options.version.to_owned()),
        };
        let mut object = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        // A kind without a Go type has no fields that are always present.
        if !matches!(self.representation, Representation::Metadata(_)) {
            give_zero_values(&mut object, &self.resource);
        }
        if let Representation::Table(options) = self.representation() {
            let table = Table::of_object(Arc::new(object), &self.resource, "", options, Timestamp::now());
            object = table.ok().and_then(|table| serde_json::to_value(table).ok()).unwrap_or_default();
            self.has_begun.store(true, Relaxed);
        }
        encode_event("BOOKMARK", &object, self.media_type)
    }
}

/// The events that a watcher has already sent.
#[derive(Clone, Debug)]
enum WatchProgress {
    /// The watcher has not sent an event.
    Nothing,
    /// The objects at this `resourceVersion`, up to the key `last`; `last` is `None` until the first object is sent.
    Objects { last: Option<String>, version: u64 },
    /// All changes up to this `resourceVersion`.
    Changes { version: u64 },
}

/// A running watch.
#[derive(Debug)]
pub(crate) struct Watcher {
    watch: Watch,
    notifications: watch::Receiver<StorageEvent>,
    progress: WatchProgress,
    ends: Instant,
    /// The deadline by which the storage must reach the version that the watcher waits for.
    fresh_by: Instant,
    bookmarks: Interval,
    is_over: bool,
}

impl Watcher {
    fn new(watch: Watch) -> Self {
        let now = Instant::now();
        let mut bookmarks = tokio::time::interval_at(now + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
        bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            notifications: watch.state.storage.subscribe(),
            progress: WatchProgress::Nothing,
            // A watch whose end is out of range uses the default lifetime.
            ends: now
                .checked_add(watch.options.lifetime.unwrap_or_default())
                .unwrap_or(now + DEFAULT_LIFETIME),
            fresh_by: now + resource_versions::BLOCK_TIMEOUT,
            bookmarks,
            is_over: false,
            watch,
        }
    }

    /// Returns the next encoded events; `None` after the end. Dropping the future does not lose events.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let mut reserved: Option<Reservation> = None;
        if let (WatchProgress::Nothing, Start::WithObjects { not_older_than }) =
            (&self.progress, self.watch.options.start)
            && !self.is_over
        {
            let storage = &self.watch.state.storage;
            let waited = resource_versions::wait(storage, not_older_than, self.fresh_by.min(self.ends)).await;
            if let Err(status) = waited {
                self.is_over = true;
                return Some(self.error(&status).into());
            }
        }
        while !self.is_over {
            if *self.notifications.borrow_and_update() == StorageEvent::Closed {
                return None;
            }
            let before = self.progress.clone();
            let mut piece = Piece::default();
            let is_last = self.write_events(&mut piece).is_err();
            if piece.is_empty() && !is_last {
                self.wait(&mut piece).await;
            }
            let Some(event) = piece.large else {
                self.is_over |= is_last;
                if piece.text.is_empty() {
                    continue;
                }
                return Some(piece.text.into());
            };
            let progress = std::mem::replace(&mut self.progress, before);
            let version = event.version;
            match self.watch.events.large(event, self.watch.served(), reserved.take()).await {
                Ok(text) => {
                    self.watch.has_begun.store(true, Relaxed);
                    self.progress = progress;
                    return Some(text);
                }
                Err(EncodeFailure::Unconvertible(failure)) => {
                    self.is_over = true;
                    return self.unconvertible(failure, version).map(|status| self.error(&status).into());
                }
                // While it waits for memory, a watch does not keep the event. It then reads the event again.
                Err(EncodeFailure::OverBudget(bytes)) => {
                    let room = timeout_at(self.ends, self.watch.events.room().reserve(bytes)).await;
                    reserved = room.ok().flatten();
                    self.is_over |= reserved.is_none();
                }
            }
        }
        None
    }

    fn error(&self, status: &Status) -> Vec<u8> {
        encode_error(status, self.watch.media_type)
    }

    /// Returns the error event for an object that cannot be converted; `None` if the watch ends without an error.
    ///
    /// kube-apiserver's cache of this version stops before the object: a new watch times out, and a running watch ends.
    ///
    /// Source: apiserver pkg/storage/cacher/cacher.go, `startCaching`; `watch_cache.go`, `waitUntilFreshAndBlock`.
    /// Rule: CNV-10.
    fn unconvertible(&self, failure: ConversionError, version: u64) -> Option<Box<Status>> {
        if !matches!(failure, ConversionError::Refused(_)) {
            return Some(create::conversion_failed(failure));
        }
        let has_begun = matches!(self.progress, WatchProgress::Changes { .. });
        if has_begun || !matches!(self.watch.options.start, Start::WithObjects { .. }) {
            return None;
        }
        let wanted = self.watch.state.storage.resource_version();
        let has = version.saturating_sub(1);
        Some(resource_versions::too_large(wanted, has, 1))
    }

    /// Writes the events since the last piece.
    ///
    /// # Errors
    /// Returns [`WatchEnded`] if this is the last piece.
    fn write_events(&mut self, piece: &mut Piece) -> Result<(), WatchEnded> {
        let result = self.try_write_events(piece);
        result.map_err(|end| {
            if let EndReason::Failed(status) = end {
                piece.text.extend(self.error(&status));
            }
            WatchEnded
        })
    }

    fn try_write_events(&mut self, piece: &mut Piece) -> Result<(), EndReason> {
        if self.watch.options.lifetime.is_none() {
            let why = "context deadline exceeded";
            return Err(EndReason::Failed(Box::new(Status::failure(500, "InternalError", why))));
        }
        if let WatchProgress::Nothing = self.progress {
            self.begin()?;
        }
        while let WatchProgress::Objects { last, version } = &self.progress {
            let (last, version) = (last.clone(), *version);
            self.write_objects(last, version, piece)?;
            if piece.is_full() {
                return Ok(());
            }
        }
        let is_served = self.watch.state.still_serves(&self.watch.resource);
        if let WatchProgress::Changes { version } = self.progress {
            let changes = self.watch.state.storage.changes_after(version, BATCH_SIZE)?;
            let progress = self.write_changes(version, &changes, None, piece)?;
            self.progress = WatchProgress::Changes { version: progress };
            if changes.len() == BATCH_SIZE {
                // There may be more changes, even if none of these matches this watch.
                self.notifications.mark_changed();
            }
            if !is_served && changes.len() < BATCH_SIZE && !piece.is_full() {
                return Err(EndReason::Lags);
            }
        }
        Ok(())
    }

    /// Sets the progress to the start of the watch. Fails if the start is no longer in the history.
    fn begin(&mut self) -> Result<(), Box<Status>> {
        let storage = &self.watch.state.storage;
        self.progress = match self.watch.options.start {
            Start::WithObjects { .. } => {
                WatchProgress::Objects { last: None, version: storage.resource_version() }
            }
            Start::After(version) => {
                storage.changes_after(version, 0).map_err(|HistoryExpired { oldest }| {
                    let message = format!("too old resource version: {version} ({oldest})");
                    Box::new(Status::failure(410, "Expired", message))
                })?;
                WatchProgress::Changes { version }
            }
        };
        Ok(())
    }

    /// Writes an event for each of the next objects.
    ///
    /// If objects have changed since the previous page, writes the changes to the objects already sent instead.
    fn write_objects(
        &mut self,
        last: Option<String>,
        version: u64,
        piece: &mut Piece,
    ) -> Result<(), EndReason> {
        let Watch { state, resource, namespace, selection, options, .. } = &self.watch;
        let walk = PagePosition {
            group: resource.storage_group(),
            resource: &resource.gvr.resource,
            namespace,
            after: last.as_deref(),
            version,
        };
        match state.storage.next_page(&walk, BATCH_SIZE)? {
            Page::Changes(changes) => {
                let upto = last.clone().unwrap_or_default();
                let version = self.write_changes(version, &changes, Some(&upto), piece)?;
                self.progress = WatchProgress::Objects { last, version };
            }
            Page::Objects(objects) if objects.is_empty() => {
                if options.bookmarks {
                    piece.text.extend(self.watch.bookmark(version, true));
                }
                self.progress = WatchProgress::Changes { version };
            }
            Page::Objects(objects) => {
                for (place, stored) in objects {
                    if selection.matches(&stored, state, resource) {
                        let event = Event { happened: EventType::Added, version: stored.version(), stored };
                        if !self.watch.put(event, piece)? {
                            break;
                        }
                    }
                    self.progress = WatchProgress::Objects { last: Some(place), version };
                    if piece.is_full() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes events for the changes after `version` until the piece is full. Returns the version that was reached.
    ///
    /// If `upto` is set, skips objects whose keys sort after it.
    fn write_changes(
        &self,
        mut version: u64,
        changes: &[Change],
        upto: Option<&str>,
        piece: &mut Piece,
    ) -> Result<u64, EndReason> {
        for change in changes {
            let is_told = upto.is_none_or(|last| change.key.place().as_str() <= last);
            let event = self.watch.event(change, version + 1).filter(|_| is_told);
            if let Some(event) = event
                && (piece.is_full() || !self.watch.put(event, piece)?)
            {
                break;
            }
            version += 1;
        }
        Ok(version)
    }

    /// Waits until the storage has changed, a bookmark is due, or the watch times out.
    async fn wait(&mut self, piece: &mut Piece) {
        tokio::select! {
            // A closed channel means that the server and its objects no longer exist.
            changed = self.notifications.changed() => self.is_over = changed.is_err(),
            () = tokio::time::sleep_until(self.ends) => self.is_over = true,
            _ = self.bookmarks.tick(), if self.watch.options.bookmarks => {
                if let WatchProgress::Changes { version } = self.progress {
                    piece.text.extend(self.watch.bookmark(version, false));
                }
            }
        }
    }
}
