//! Encodes each watch event once for all watches that send it.
//!
//! The `resourceVersion` of a write determines the object of its event. Therefore this number, the event type, and the
//! kind identify an encoded event. Small events are copied into the buffer of each watch. Large events are shared: each
//! of them is in memory once, regardless of how many watches send it, and counts against a budget until the last watch
//! has sent it.
//!
//! Source: apiserver `pkg/storage/cacher/caching_object.go`, `cachingObject`.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use futures::FutureExt as _;
use jiff::Timestamp;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::ConversionError;
use kubernetes_types::budget::{Budget, Reservation};
use kubernetes_types::json::set;
use kubernetes_types::schema;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;

use super::accept::{MediaType, Representation};
use super::answer::metadata_of;
use super::event_encoding::{EventType, SMALL_EVENT_BYTES, around, encode_event, encode_small};
use crate::apimachinery::metadata::METADATA_KIND;
use crate::apimachinery::off_thread;
use crate::kinds::core::service::reading as service_reading;
use crate::kinds::discovery::Resource;
use crate::kinds::tables::Table;
use crate::registry::create::conversion_failed;
use crate::registry::state::State;
use crate::storage::{EncodedObject, StoredObject, set_resource_version};

/// The maximum size, in bytes of JSON, of a stored object that may have a small event after a conversion.
const SMALL_STORED_BYTES: usize = 2 * SMALL_EVENT_BYTES;

/// The maximum number of recent events in the cache of small events.
const RECENT_EVENTS: usize = 256;

/// The size of the cache of large events at which unused entries are removed.
const MAX_LARGE_EVENTS: usize = 64;

/// An event that has not been encoded yet.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) happened: EventType,
    /// The stored object; for a deletion, its last state.
    pub(crate) stored: Arc<StoredObject>,
    /// The `resourceVersion` of the write.
    pub(crate) version: u64,
}

/// The kind, version, and representation in which events contain the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedVersion<'a> {
    pub(crate) state: &'a Arc<State>,
    pub(crate) resource: &'a Arc<Resource>,
    /// The part of the object that is sent.
    pub(crate) representation: Representation,
    pub(crate) media_type: MediaType,
}

/// The key of an encoded event.
///
/// It consists of the `resourceVersion` of the write, the event type, the kind, and whether the event is encoded in
/// protobuf. JSON events are never indented, so they are the same for all clients.
type EventKey = (u64, EventType, GroupVersionKind, bool);

impl Event {
    /// Returns the key of the encoded event; `None` for a Table.
    ///
    /// A Table is encoded again for each watch, because the ages in it depend on the time.
    fn name(&self, served: ServedVersion<'_>) -> Option<EventKey> {
        let kind = match served.representation {
            Representation::Whole => served.resource.kind.clone(),
            Representation::Metadata(options) => {
                let version = options.version.rsplit('/').next().unwrap_or_default();
                GroupVersionKind::new("meta.k8s.io", version, METADATA_KIND)
            }
            Representation::Table(_) => return None,
        };
        Some((self.version, self.happened, kind, served.media_type == MediaType::Protobuf))
    }

    /// Returns the stored JSON of the object; `None` if the object must be converted or encoded in protobuf.
    fn text(&self, served: ServedVersion<'_>) -> Option<Cow<'_, EncodedObject>> {
        let is_whole = served.representation == Representation::Whole;
        if !is_whole
            || served.media_type == MediaType::Protobuf
            || !State::is_served_as_stored(&self.stored, served.resource)
        {
            return None;
        }
        let encoded = self.stored.encoded();
        Some(match self.happened {
            EventType::Added | EventType::Modified => Cow::Borrowed(encoded),
            // A deleted object is sent in its last state, with the version of the write that removed it.
            EventType::Deleted => Cow::Owned(encoded.with_version(self.version)),
        })
    }

    /// Returns the object in the served version and representation.
    async fn object(&self, served: ServedVersion<'_>) -> Result<Arc<Value>, ConversionError> {
        let object = served.state.in_version_of(&self.stored.object(), served.resource).await?;
        let mut object = service_reading::read(object, served.resource);
        if let Representation::Metadata(options) = served.representation {
            object = Arc::new(metadata_of(&object, options.version));
        }
        if self.happened == EventType::Deleted {
            // A deleted object is sent in its last state, with the version of the write that removed it.
            let mut last = Arc::unwrap_or_clone(object);
            set_resource_version(&mut last, self.version);
            object = Arc::new(last);
        }
        if let Representation::Table(options) = served.representation {
            let table = Table::of_object(object, served.resource, "", options, Timestamp::now());
            let table = table.ok().and_then(|table| serde_json::to_value(table).ok());
            object = Arc::new(table.unwrap_or_default());
        }
        Ok(object)
    }
}

/// The reason why a large event cannot be encoded.
#[derive(Debug)]
pub(crate) enum EncodeFailure {
    /// The event needs this many bytes, but other events are using the memory budget.
    OverBudget(usize),
    /// The object cannot be converted to the served version.
    Unconvertible(ConversionError),
}

/// A cache of encoded events.
#[derive(Debug)]
pub(crate) struct Events {
    small: Mutex<RecentEvents>,
    large: Mutex<HashMap<EventKey, Arc<Slot>>>,
    /// The memory budget for large events.
    room: Budget,
}

/// The latest events by key. The value is `None` for a large event.
#[derive(Debug, Default)]
struct RecentEvents {
    texts: HashMap<EventKey, Option<Bytes>>,
    oldest_first: VecDeque<EventKey>,
}

/// The slot of a large event. It is locked while the event is encoded and empty when no watch sends the event.
type Slot = tokio::sync::Mutex<Weak<LargeEvent>>;

#[derive(Debug)]
struct LargeEvent {
    text: Vec<u8>,
    _room: Reservation,
}

/// Keeps a large event in memory while a watch sends it.
struct SharedText(Arc<LargeEvent>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        &self.0.text
    }
}

impl Events {
    /// Creates a cache that limits the total size of large events to `room` bytes.
    pub(crate) fn new(room: usize) -> Self {
        Self { small: Mutex::default(), large: Mutex::default(), room: Budget::new(room) }
    }

    /// Returns the memory budget for large events.
    pub(crate) const fn room(&self) -> &Budget {
        &self.room
    }

    /// Returns the encoded small event, including its newline or its length.
    ///
    /// Returns `None` for a large event and for an event whose conversion calls a webhook.
    pub(crate) fn small(
        &self,
        event: &Event,
        served: ServedVersion<'_>,
    ) -> Result<Option<Bytes>, Box<Status>> {
        if State::asks_webhook_of_stored(&event.stored, served.resource) {
            return Ok(None);
        }
        let Some(name) = event.name(served) else { return encode_if_small(event, served) };
        // The lock is held during encoding, which is fast, because other watches need the same event.
        let mut recent = lock(&self.small);
        if let Some(known) = recent.texts.get(&name) {
            return Ok(known.clone());
        }
        let text = encode_if_small(event, served)?;
        if recent.oldest_first.len() >= RECENT_EVENTS
            && let Some(oldest) = recent.oldest_first.pop_front()
        {
            recent.texts.remove(&oldest);
        }
        recent.oldest_first.push_back(name.clone());
        recent.texts.insert(name, text.clone());
        Ok(text)
    }

    /// Returns the encoded large event. All watches that request the event share it.
    ///
    /// The event takes its memory from `reserved`, or from the budget if `reserved` is `None`.
    pub(crate) async fn large(
        &self,
        event: Event,
        served: ServedVersion<'_>,
        reserved: Option<Reservation>,
    ) -> Result<Bytes, EncodeFailure> {
        let Some(name) = event.name(served) else {
            return Ok(Bytes::from_owner(SharedText(self.encode(event, served, reserved).await?)));
        };
        let slot = self.slot(name);
        let mut known = slot.lock().await;
        if let Some(large) = known.upgrade() {
            return Ok(Bytes::from_owner(SharedText(large)));
        }
        let large = self.encode(event, served, reserved).await?;
        *known = Arc::downgrade(&large);
        Ok(Bytes::from_owner(SharedText(large)))
    }

    async fn encode(
        &self,
        event: Event,
        served: ServedVersion<'_>,
        reserved: Option<Reservation>,
    ) -> Result<Arc<LargeEvent>, EncodeFailure> {
        let (room, state) = (self.room.clone(), Arc::clone(served.state));
        let resource = Arc::clone(served.resource);
        let (representation, media_type) = (served.representation, served.media_type);
        let encoding = off_thread::run(async move {
            let served = ServedVersion { state: &state, resource: &resource, representation, media_type };
            encode_large(&event, served, &room, reserved).await.map(Arc::new)
        });
        encoding.await
    }

    fn slot(&self, name: EventKey) -> Arc<Slot> {
        let mut slots = lock(&self.large);
        if let Some(slot) = slots.get(&name) {
            return Arc::clone(slot);
        }
        if slots.len() >= MAX_LARGE_EVENTS {
            slots.retain(|_, slot| {
                let is_sent = slot.try_lock().map_or(true, |large| large.strong_count() > 0);
                is_sent || Arc::strong_count(slot) > 1
            });
        }
        Arc::clone(slots.entry(name).or_default())
    }
}

/// Encodes an event; returns `None` if the event is large.
fn encode_if_small(event: &Event, served: ServedVersion<'_>) -> Result<Option<Bytes>, Box<Status>> {
    if let Some(object) = event.text(served) {
        let [before, behind] = around(event.happened);
        let is_small = before.len() + object.text().len() + behind.len() <= SMALL_EVENT_BYTES;
        return Ok(is_small.then(|| [before, object.text(), behind].concat().into()));
    }
    if event.stored.encoded().text().len() > SMALL_STORED_BYTES {
        return Ok(None);
    }
    // Without a webhook the future completes immediately.
    let object = event.object(served).now_or_never();
    let object = object.unwrap_or_else(|| Err(waits())).map_err(conversion_failed)?;
    Ok(encode_small(event.happened, &object, served.media_type))
}

/// Returns the error for a future that should have completed immediately.
fn waits() -> ConversionError {
    Unsupported { what: "an event that waits for a conversion".to_owned() }.into()
}

async fn encode_large(
    event: &Event,
    served: ServedVersion<'_>,
    room: &Budget,
    reserved: Option<Reservation>,
) -> Result<LargeEvent, EncodeFailure> {
    let object = if let Some(encoded) = event.text(served) {
        encoded
    } else {
        let object = event.object(served).await.map_err(EncodeFailure::Unconvertible)?;
        if served.media_type == MediaType::Protobuf {
            let text = encode_event(event.happened.name(), &object, served.media_type);
            let room = with_room(text.len(), room, reserved)?;
            return Ok(LargeEvent { text, _room: room });
        }
        Cow::Owned(EncodedObject::new(&object))
    };
    let [before, behind] = around(event.happened);
    let room = with_room(before.len() + object.text().len() + behind.len(), room, reserved)?;
    Ok(LargeEvent { text: [before, object.text(), behind].concat(), _room: room })
}

/// Reserves memory for an event of this length, in bytes.
fn with_room(
    length: usize,
    room: &Budget,
    reserved: Option<Reservation>,
) -> Result<Reservation, EncodeFailure> {
    let reserved = match reserved {
        Some(mut reserved) => reserved.resize(length).map(|()| reserved),
        None => room.try_reserve(length),
    };
    reserved.map_err(|_others_have_it| EncodeFailure::OverBudget(length))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the fields that the Go type of the kind encodes even if they have their zero value.
///
/// Rule: KND-13.
pub(crate) fn give_zero_values(object: &mut Value, resource: &Resource) {
    drop(schema::normalize(object, &resource.kind));
    // Go's internal types have a number where these versions have a pointer to a number.
    let group_resource = resource.gvr.group_resource();
    if ["deployments.apps", "replicasets.apps", "statefulsets.apps"].contains(&group_resource.as_str()) {
        set(object, &["spec", "replicas"], 0);
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::attributes::GroupVersionResource;
    use serde_json::json;

    use super::*;
    use crate::kinds::rbac::AuthorizationMode;
    use crate::storage::Storage;

    const BUDGET: usize = 1 << 20;

    fn served() -> (Arc<State>, Arc<Resource>) {
        let state = Arc::new(State::alone(Arc::new(Storage::default()), AuthorizationMode::AlwaysAllow));
        let resources = state.resources();
        let config_maps = resources.get(&GroupVersionResource::new("", "v1", "configmaps")).unwrap();
        (Arc::clone(&state), Arc::clone(config_maps))
    }

    fn whole<'a>(state: &'a Arc<State>, resource: &'a Arc<Resource>) -> ServedVersion<'a> {
        ServedVersion { state, resource, representation: Representation::Whole, media_type: MediaType::Json }
    }

    fn event(happened: EventType, version: u64, bytes: usize) -> Event {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1"},
            "data": {"k": "x".repeat(bytes)},
        });
        let object = Arc::new(object);
        let stored = Arc::new(StoredObject::new(EncodedObject::new(&object), &object, 1));
        Event { happened, stored, version }
    }

    #[tokio::test]
    async fn a_large_event_is_encoded_once_for_all_watches() {
        let (state, resource) = served();
        let served = whole(&state, &resource);
        let events = Events::new(BUDGET);
        let large = event(EventType::Added, 1, BUDGET / 2);
        let all = futures::future::join_all((0..100).map(|_| events.large(large.clone(), served, None)));
        let texts: Vec<Bytes> = all.await.into_iter().map(Result::unwrap).collect();
        // The budget does not have room for a hundred copies, so all watches must share the same bytes.
        assert!(texts.iter().all(|text| text.as_ptr() == texts[0].as_ptr()));
        assert_eq!(events.room.available(), BUDGET - texts[0].len());
        let line: Value = serde_json::from_slice(&texts[0]).unwrap();
        assert_eq!(line, json!({"type": "ADDED", "object": *large.stored.object()}));
        // The next event does not fit in the budget until all of them are dropped.
        let other = event(EventType::Added, 2, BUDGET / 2);
        let refused = events.large(other.clone(), served, None).await.unwrap_err();
        assert!(
            matches!(refused, EncodeFailure::OverBudget(bytes) if bytes == texts[0].len()),
            "{refused:?}"
        );
        drop(texts);
        assert_eq!(events.room.available(), BUDGET);
        assert!(events.large(other, served, None).await.is_ok());
    }

    #[tokio::test]
    async fn reservation_is_used_for_the_event() {
        let (state, resource) = served();
        let served = whole(&state, &resource);
        let events = Events::new(BUDGET);
        let reserved = events.room.try_reserve(BUDGET).unwrap();
        let text = events.large(event(EventType::Added, 1, 100_000), served, Some(reserved)).await.unwrap();
        assert_eq!(events.room.available(), BUDGET - text.len());
    }

    #[test]
    fn a_small_event_is_encoded_once_for_all_watches() {
        let (state, resource) = served();
        let served = whole(&state, &resource);
        let events = Events::new(BUDGET);
        let texts: Vec<Bytes> = (0..100)
            .map(|_| events.small(&event(EventType::Modified, 1, 100), served).unwrap().unwrap())
            .collect();
        assert!(texts.iter().all(|text| text.as_ptr() == texts[0].as_ptr()));
        for version in 0..2 * RECENT_EVENTS as u64 {
            events.small(&event(EventType::Added, version, 1), served).unwrap();
        }
        assert_eq!(lock(&events.small).texts.len(), RECENT_EVENTS);
    }

    #[test]
    fn small_events_have_a_maximum_size() {
        let (state, resource) = served();
        let served = whole(&state, &resource);
        let events = Events::new(BUDGET);
        let length = |version, bytes| {
            let text = events.small(&event(EventType::Added, version, bytes), served).unwrap();
            text.map(|text| text.len())
        };
        let beside = length(1, 0).unwrap();
        assert_eq!(length(2, SMALL_EVENT_BYTES - beside), Some(SMALL_EVENT_BYTES));
        assert_eq!(length(3, SMALL_EVENT_BYTES - beside + 1), None);
        assert_eq!(length(4, 2 * SMALL_STORED_BYTES), None);
        // The cache remembers that the event is large.
        assert_eq!(length(4, 0), None);
    }

    #[test]
    fn deleted_object_has_the_version_of_its_removal() {
        let (state, resource) = served();
        let served = whole(&state, &resource);
        let text = Events::new(BUDGET).small(&event(EventType::Deleted, 7, 1), served).unwrap().unwrap();
        let line: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(line["type"], "DELETED");
        assert_eq!(line["object"]["metadata"]["resourceVersion"], "7");
    }

    #[tokio::test]
    async fn unused_large_events_are_dropped() {
        let (state, resource) = served();
        let served = whole(&state, &resource);
        let events = Events::new(BUDGET);
        let sent = events.large(event(EventType::Added, 0, 1), served, None).await.unwrap();
        for version in 1..3 * MAX_LARGE_EVENTS as u64 {
            events.large(event(EventType::Added, version, 1), served, None).await.unwrap();
        }
        assert!(lock(&events.large).len() <= MAX_LARGE_EVENTS);
        let again = events.large(event(EventType::Added, 0, 1), served, None).await.unwrap();
        assert_eq!(again.as_ptr(), sent.as_ptr());
    }
}
