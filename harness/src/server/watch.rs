//! Watches: the changes of a collection, as they come.
//!
//! A watcher keeps no queue. It reads the changes that the [storage](super::storage) remembers from where it last
//! stopped, and one that lags too far behind is told `410 Expired`, upon which clients list anew.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::answer::Answer;
use super::discovery::Resource;

use super::options;
use super::read::{self, Selection};
use super::request::{ObjectRequest, Query};
use super::state::State;
use super::storage::{Change, Forgotten, News, set_resource_version};
use crate::status::{FieldError, Status};

/// How long a watch lives that does not say.
///
/// Source: kube-apiserver's `--min-request-timeout`, of which upstream takes once to twice as much at random.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// How often a client that takes bookmarks is told the latest `resourceVersion`.
///
/// Source: apiserver `pkg/storage/cacher/cacher.go`, `defaultBookmarkFrequency`.
const BOOKMARKS: Duration = Duration::from_secs(60);

/// How many changes become one piece of the answer.
const PIECE: usize = 256;

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
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let kind = &self.resource.kind;
        let object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata});
        json!({"type": "BOOKMARK", "object": object})
    }
}

/// A watch under way.
#[derive(Debug)]
pub(super) struct Watcher {
    watch: Watch,
    news: watch::Receiver<News>,
    /// The `resourceVersion` up to which all is told; none before the first piece.
    told: Option<u64>,
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
            told: None,
            // A watch that ends beyond all clocks lives as long as one that does not say.
            ends: now.checked_add(watch.options.lifetime.unwrap_or_default()).unwrap_or(now + LIFETIME),
            bookmarks,
            is_over: false,
            watch,
        }
    }

    /// The next events, each a line of JSON; none once the watch is over. A caller that stops waiting loses no event.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            if *self.news.borrow_and_update() == News::Closed {
                return None;
            }
            let mut piece = Vec::new();
            if let Err(status) = self.look(&mut piece) {
                self.is_over = true;
                write(&mut piece, &json!({"type": "ERROR", "object": status}));
            }
            if piece.is_empty() {
                self.wait(&mut piece).await;
            }
            if !piece.is_empty() {
                return Some(piece.into());
            }
        }
        None
    }

    /// Writes what has happened since it was last told.
    fn look(&mut self, piece: &mut Vec<u8>) -> Result<(), Box<Status>> {
        if self.watch.options.lifetime.is_none() {
            return Err(Box::new(Status::failure(500, "InternalError", "context deadline exceeded")));
        }
        let told = match self.told {
            Some(told) => told,
            None => self.begin(piece)?,
        };
        self.told = Some(told);
        let watch = &self.watch;
        let changes = watch.state.storage.changes_after(told, PIECE).map_err(|Forgotten { oldest }| {
            let message = format!("too old resource version: {told} ({oldest})");
            Box::new(Status::failure(410, "Expired", message))
        })?;
        for (version, change) in (told + 1..).zip(&changes) {
            if let Some(event) = watch.event(change, version)? {
                write(piece, &event);
            }
            self.told = Some(version);
        }
        // More may be there than one piece holds.
        if changes.len() == PIECE {
            self.news.mark_changed();
        }
        Ok(())
    }

    /// Where the watch begins, with the objects that are there if they are wanted.
    fn begin(&self, piece: &mut Vec<u8>) -> Result<u64, Box<Status>> {
        let Watch { state, resource, namespace, selection, options } = &self.watch;
        match options.start {
            Start::After(version) => Ok(version),
            Start::WithObjects => {
                let (objects, version) = state.storage.list_at_version(
                    resource.storage_group(),
                    &resource.gvr.resource,
                    namespace,
                );
                for object in objects.iter().filter(|object| selection.matches(object)) {
                    write(piece, &self.watch.told("ADDED", object)?);
                }
                if options.bookmarks {
                    write(piece, &self.watch.bookmark(version, true));
                }
                Ok(version)
            }
        }
    }

    /// Waits until there is something to look at, the client is due a bookmark, or the time is over.
    async fn wait(&mut self, piece: &mut Vec<u8>) {
        tokio::select! {
            // The server is gone with all its objects if the news are.
            changed = self.news.changed() => self.is_over = changed.is_err(),
            () = tokio::time::sleep_until(self.ends) => self.is_over = true,
            _ = self.bookmarks.tick(), if self.watch.options.bookmarks => {
                if let Some(told) = self.told {
                    write(piece, &self.watch.bookmark(told, false));
                }
            }
        }
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
