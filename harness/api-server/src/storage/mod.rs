//! The in-memory storage of the server.

pub(crate) mod history;
pub(crate) mod list;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::watch;

use self::object::DecodedCache;
pub(crate) use self::object::{EncodedObject, StoredObject};
pub(crate) use self::pages::{Page, PagePosition, Snapshot, SnapshotPage};
use crate::apimachinery::limits::Limits;
use crate::storage::history::History;
pub(crate) use crate::storage::history::{Change, HistoryExpired, Key};

/// Reads stored objects in their storage version.
pub(crate) trait ObjectReader: Send + Sync {
    /// Returns an object; `namespace` is empty for a cluster-scoped object.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// Returns all objects of a namespace, or of all namespaces if `namespace` is empty.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>>;
}

/// The objects of a resource by [`place`].
type Collection = BTreeMap<String, Arc<StoredObject>>;

/// Returns the key of an object within its collection: `NAMESPACE/NAME`, or `NAME` if it is cluster-scoped.
///
/// The keys sort in the same order as etcd keys.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `NamespaceKeyFunc`.
/// Rule: LST-03.
pub(crate) fn place(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Returns the prefix of the keys in a namespace; empty for all namespaces.
pub(crate) fn prefix(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!("{namespace}/") }
}

#[derive(Debug)]
struct Contents {
    /// The collections by group and resource.
    collections: BTreeMap<String, BTreeMap<String, Collection>>,
    /// The version of the last write.
    resource_version: u64,
    history: History,
    /// The total weight of the stored objects. It must not exceed `quota`.
    weight: usize,
    quota: usize,
    /// The version of the last write in each API group; a group without writes is absent.
    group_versions: BTreeMap<String, u64>,
}

impl Contents {
    /// Creates empty contents with `resource_version` as the version of the last write.
    const fn new(resource_version: u64, limits: &Limits) -> Self {
        Self {
            collections: BTreeMap::new(),
            resource_version,
            history: History::new(resource_version, limits.watch_cache_bytes),
            weight: 0,
            quota: limits.storage_bytes,
            group_versions: BTreeMap::new(),
        }
    }

    fn collection(&self, group: &str, resource: &str) -> Option<&Collection> {
        self.collections.get(group)?.get(resource)
    }

    fn stored(&self, key: &Key) -> Option<&Arc<StoredObject>> {
        self.collection(&key.group, &key.resource)?.get(&key.place())
    }

    /// Records a write that replaced `before` with `after`.
    fn note(&mut self, key: Key, before: Option<Arc<StoredObject>>, after: Option<Arc<StoredObject>>) {
        self.resource_version += 1;
        match self.group_versions.get_mut(&key.group) {
            Some(version) => *version = self.resource_version,
            None => drop(self.group_versions.insert(key.group.clone(), self.resource_version)),
        }
        let weight = |stored: &Option<Arc<StoredObject>>| stored.as_ref().map_or(0, |stored| stored.weight());
        self.weight = self.weight - weight(&before) + weight(&after);
        self.history.push(Change { key, before, after });
    }
}

/// The state to which watchers of a storage subscribe. After any change, watchers read the storage again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StorageEvent {
    /// An object was written.
    #[default]
    Written,
    /// The server is stopping.
    Closed,
}

/// The objects of one server.
#[derive(Debug)]
pub(crate) struct Storage {
    contents: RwLock<Contents>,
    notifications: watch::Sender<StorageEvent>,
    initial: Option<UnreadObjects>,
    recent: Mutex<DecodedCache>,
}

/// The objects of an API group that exist when the server starts.
///
/// They are parsed on first use, so that they do not delay the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialObjects {
    pub(crate) group: &'static str,
    /// The number of objects. The storage needs the number before the objects are parsed.
    pub(crate) count: u64,
    /// Returns the objects of a server that started at this time, with their plural resource names.
    pub(crate) read: fn(time: &str) -> Vec<(&'static str, Value)>,
}

#[derive(Debug)]
struct UnreadObjects {
    objects: InitialObjects,
    read: Once,
    /// The time when the server started.
    time: String,
}

/// The error for a write that failed because another write happened first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteConflict;

impl Default for Storage {
    fn default() -> Self {
        Self {
            contents: RwLock::new(Contents::new(0, &Limits::default())),
            notifications: watch::Sender::default(),
            initial: None,
            recent: Mutex::default(),
        }
    }
}

impl Storage {
    /// Creates a storage with these objects.
    pub(crate) fn new(objects: InitialObjects, limits: &Limits) -> Self {
        let time = crate::apimachinery::metadata::now();
        Self {
            contents: RwLock::new(Contents::new(objects.count, limits)),
            initial: Some(UnreadObjects { objects, read: Once::new(), time }),
            ..Self::default()
        }
    }

    /// Parses the initial objects if they are in this API group.
    fn read_initial(&self, group: &str) {
        if let Some(initial) = self.initial.as_ref().filter(|initial| initial.objects.group == group) {
            initial.read.call_once(|| {
                let mut contents = self.write();
                let mut weight = 0;
                let resources = contents.collections.entry(group.to_owned()).or_default();
                let objects = (initial.objects.read)(&initial.time);
                for (version, (resource, mut object)) in (1..).zip(objects) {
                    set_resource_version(&mut object, version);
                    let text = |field| crate::apimachinery::metadata::text(&object, field).to_owned();
                    let place = place(&text("namespace"), &text("name"));
                    let collection = resources.entry(resource.to_owned()).or_default();
                    let encoded = EncodedObject::new(&object);
                    let stored = StoredObject::new(encoded, &Arc::new(object), version);
                    weight += stored.weight();
                    collection.insert(place, Arc::new(stored));
                }
                contents.weight += weight;
            });
        }
    }

    /// Returns the version of the last write in an API group; 0 if there was none.
    pub(crate) fn group_version(&self, group: &str) -> u64 {
        self.read().group_versions.get(group).copied().unwrap_or(0)
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.contents.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the `resourceVersion` of the latest write.
    pub(crate) fn resource_version(&self) -> u64 {
        self.read().resource_version
    }

    /// Subscribes to all writes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<StorageEvent> {
        self.notifications.subscribe()
    }

    /// Notifies all subscribers that the storage is closed.
    pub(crate) fn close(&self) {
        self.notifications.send_replace(StorageEvent::Closed);
    }

    /// Notifies subscribers of a write, unless the storage is closed.
    pub(crate) fn tell(&self) {
        self.notifications.send_if_modified(|notifications| *notifications == StorageEvent::Written);
    }

    /// Returns at most `limit` changes after `version`. The `version` may be in the future.
    pub(crate) fn changes_after(&self, version: u64, limit: usize) -> Result<Vec<Change>, HistoryExpired> {
        self.read().history.after_version(version, limit)
    }

    /// Returns the next page for a client that reads a collection in pages, with at most `limit` entries.
    ///
    /// The page contains the changes since the client's `resourceVersion` or, if there are no changes, the objects
    /// after the client's position.
    pub(crate) fn next_page(&self, walk: &PagePosition<'_>, limit: usize) -> Result<Page, HistoryExpired> {
        self.read_initial(walk.group);
        let contents = self.read();
        let changes = contents.history.after_version(walk.version, limit)?;
        if !changes.is_empty() {
            return Ok(Page::Changes(changes));
        }
        let prefix = prefix(walk.namespace);
        let from = match walk.after {
            Some(place) => Bound::Excluded(place),
            None => Bound::Included(prefix.as_str()),
        };
        let collection = contents.collection(walk.group, walk.resource);
        let objects = collection.into_iter().flat_map(|all| all.range::<str, _>((from, Bound::Unbounded)));
        let objects = objects
            .take_while(|(place, _)| place.starts_with(&prefix))
            .take(limit)
            .map(|(place, stored)| (place.clone(), Arc::clone(stored)));
        Ok(Page::Objects(objects.collect()))
    }

    /// Returns all objects and the `resourceVersion` of the storage.
    ///
    /// Bootstrap roles and bindings are included only after they have been parsed.
    pub(crate) fn everything(&self) -> (Vec<(Key, Arc<StoredObject>)>, u64) {
        let contents = self.read();
        let mut objects = Vec::new();
        for (group, resources) in &contents.collections {
            for (resource, collection) in resources {
                for (place, stored) in collection {
                    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
                    let key = Key {
                        group: group.clone(),
                        resource: resource.clone(),
                        namespace: namespace.to_owned(),
                        name: name.to_owned(),
                    };
                    objects.push((key, Arc::clone(stored)));
                }
            }
        }
        (objects, contents.resource_version)
    }

    pub(crate) fn at(&self, key: &Key) -> Option<Arc<Value>> {
        self.get(&key.group, &key.resource, &key.namespace, &key.name)
    }

    /// Returns an object without decoding it.
    pub(crate) fn stored_at(&self, key: &Key) -> Option<Arc<StoredObject>> {
        self.read_initial(&key.group);
        self.read().stored(key).cloned()
    }

    /// Returns the decoded object, and caches it if it was not decoded yet.
    fn decoded(&self, stored: &StoredObject) -> Arc<Value> {
        let (object, was_decoded) = stored.object_and_whether_decoded();
        if was_decoded {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            recent.push(Arc::clone(&object), stored.encoded().text().len());
        }
        object
    }

    /// Returns the objects at a `resourceVersion`, sorted by key.
    ///
    /// Source: apiserver `pkg/storage/cacher/watch_cache.go`, `waitUntilFreshAndList`.
    /// Rule: LST-01.
    pub(crate) fn snapshot(&self, wanted: &Snapshot<'_>) -> Result<SnapshotPage, HistoryExpired> {
        self.read_initial(wanted.group);
        let contents = self.read();
        let version = wanted.version.unwrap_or(contents.resource_version);
        let prefix = prefix(wanted.namespace);
        let from = wanted.from.unwrap_or(prefix.as_str());
        // The earlier states of the objects that have changed since.
        let mut former: BTreeMap<String, Option<&Arc<StoredObject>>> = BTreeMap::new();
        for change in contents.history.since(version)? {
            let key = &change.key;
            if key.group == wanted.group && key.resource == wanted.resource {
                former.entry(key.place()).or_insert(change.before.as_ref());
            }
        }
        let collection = contents.collection(wanted.group, wanted.resource);
        let objects = collection
            .into_iter()
            .flat_map(|all| all.range::<str, _>((Bound::Included(from), Bound::Unbounded)))
            .take_while(|(place, _)| place.starts_with(&prefix))
            .filter(|(place, _)| !former.contains_key(*place))
            .map(|(place, stored)| (place.as_str(), stored));
        let gone = former
            .range::<str, _>((Bound::Included(from), Bound::Unbounded))
            .take_while(|(place, _)| place.starts_with(&prefix))
            .filter_map(|(place, stored)| Some((place.as_str(), (*stored)?)));
        let mut all: Vec<(&str, &Arc<StoredObject>)> = objects.chain(gone).collect();
        if !former.is_empty() {
            all.sort_by_key(|(place, _)| *place);
        }
        let count = all.len();
        all.truncate(wanted.limit.unwrap_or(count));
        Ok(SnapshotPage {
            version,
            behind: count - all.len(),
            last: all.last().map(|(place, _)| (*place).to_owned()),
            objects: all.into_iter().map(|(_, stored)| Arc::clone(stored)).collect(),
        })
    }

    /// Records that a stored object differs from what clients read: it lacks defaults or has more metadata.
    pub(crate) fn note_incomplete(&self, key: &Key, object: &Arc<Value>) {
        if let Some(stored) = self.read().stored(key).filter(|stored| stored.is(object)) {
            stored.note_incomplete();
        }
    }

    /// Returns whether [`Self::note_incomplete`] was called for a stored object.
    pub(crate) fn is_incomplete(&self, key: &Key, object: &Arc<Value>) -> bool {
        self.read().stored(key).is_some_and(|stored| stored.is_incomplete() && stored.is(object))
    }

    /// Stores a new object and sets its `resourceVersion`.
    pub(crate) fn insert(&self, key: &Key, object: Value) -> Result<Arc<Value>, WriteConflict> {
        self.replace(key, None, object)
    }

    /// Stores `object` if the stored object is still `expected`, and sets its `resourceVersion`.
    pub(crate) fn replace(
        &self,
        key: &Key,
        expected: Option<&Arc<Value>>,
        mut object: Value,
    ) -> Result<Arc<Value>, WriteConflict> {
        self.read_initial(&key.group);
        // The lock is not held during encoding. The version is determined later and then set in the text.
        set_resource_version(&mut object, 0);
        let encoded = EncodedObject::new(&object);
        let mut contents = self.write();
        let place = key.place();
        let stored = contents.collection(&key.group, &key.resource).and_then(|all| all.get(&place));
        let unchanged = match (stored, expected) {
            (None, None) => true,
            (Some(stored), Some(expected)) => stored.is(expected),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !unchanged {
            return Err(WriteConflict);
        }
        let version = contents.resource_version + 1;
        set_resource_version(&mut object, version);
        let object = Arc::new(object);
        let stored = Arc::new(StoredObject::new(encoded.with_version(version), &object, version));
        let collections = contents.collections.entry(key.group.clone()).or_default();
        let collection = collections.entry(key.resource.clone()).or_default();
        let before = collection.insert(place, Arc::clone(&stored));
        contents.note(key.clone(), before, Some(stored));
        drop(contents);
        self.tell();
        Ok(object)
    }

    /// Removes an object if the stored object is still `expected`. Returns the `resourceVersion` of the write.
    pub(crate) fn remove(&self, key: &Key, expected: &Arc<Value>) -> Result<u64, WriteConflict> {
        self.read_initial(&key.group);
        let mut contents = self.write();
        let place = key.place();
        let collection = contents
            .collections
            .get_mut(&key.group)
            .and_then(|group| group.get_mut(&key.resource))
            .ok_or(WriteConflict)?;
        match collection.get(&place) {
            Some(stored) if stored.is(expected) => {
                let before = collection.remove(&place);
                contents.note(key.clone(), before, None);
            }
            Some(_) | None => return Err(WriteConflict),
        }
        let version = contents.resource_version;
        drop(contents);
        self.tell();
        Ok(version)
    }
}

/// Sets `metadata.resourceVersion` to `version`.
pub(crate) fn set_resource_version(object: &mut Value, version: u64) {
    crate::apimachinery::metadata::set(object, "resourceVersion", Value::String(version.to_string()));
}

impl ObjectReader for Storage {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.read_initial(group);
        let nested = (!namespace.is_empty()).then(|| place(namespace, name));
        let place = nested.as_deref().unwrap_or(name);
        let stored = self.read().collection(group, resource)?.get(place).map(Arc::clone)?;
        Some(self.decoded(&stored))
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.read_initial(group);
        let prefix = prefix(namespace);
        let stored: Vec<Arc<StoredObject>> = {
            let contents = self.read();
            let collection = contents.collection(group, resource);
            let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
            let all = collection.into_iter().flat_map(|all| all.range::<str, _>(from));
            let of_namespace = all.take_while(|(place, _)| place.starts_with(&prefix));
            of_namespace.map(|(_, stored)| Arc::clone(stored)).collect()
        };
        stored.iter().map(|stored| self.decoded(stored)).collect()
    }
}

mod object;
mod pages;
mod space;
#[cfg(test)]
mod tests;
