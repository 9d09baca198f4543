//! The objects of the server, in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kubernetes_admission::authorizer::{RBAC_GROUP, RbacObjects};
use kubernetes_types::status::Status;
use kubernetes_types::weight::{json_length, weight};
use serde_json::Value;
use tokio::sync::watch;

pub(super) use self::pages::{Page, Snapshot, SnapshotPage, Walk};
use super::authorization::bootstrap;
use super::history::History;
pub(super) use super::history::{Change, Forgotten, Key};
use super::limits::Limits;

/// The most bytes that one object may have as JSON. etcd takes 1.5 MiB of protobuf, which are seldom more than this; no
/// body has as many, but one patch after another can make them.
///
/// Source: etcd server/embed/config.go, `DefaultMaxRequestBytes`.
const LARGEST_OBJECT: usize = 2 * super::body::LIMIT;

/// Reads stored objects, which are in their storage version.
pub(crate) trait ObjectReader: Send + Sync {
    /// One object; `namespace` is empty for a cluster-scoped one.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// All objects of a namespace, or of all namespaces if `namespace` is empty.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>>;
}

/// By [`place`].
type Collection = BTreeMap<String, Stored>;

/// Where an object stands in its collection: `NAMESPACE/NAME`, or `NAME` if it is cluster-scoped. The order of places is
/// that of etcd's keys.
///
/// Source: apiserver pkg/registry/generic/registry/store.go, `NamespaceKeyFunc`.
/// Rule: LST-03.
pub(super) fn place(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// What the places of a namespace begin with; empty for all namespaces.
pub(super) fn prefix(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!("{namespace}/") }
}

#[derive(Debug)]
struct Stored {
    object: Arc<Value>,
    weight: usize,
    /// Whether it was written without defaults that it has when it is read.
    is_incomplete: bool,
}

impl Stored {
    fn new(object: Arc<Value>) -> Self {
        Self { weight: weight(&object), object, is_incomplete: false }
    }

    /// The object, and what it weighs.
    fn weighed(&self) -> (Arc<Value>, usize) {
        (Arc::clone(&self.object), self.weight)
    }
}

#[derive(Debug)]
struct Contents {
    /// By group, then by resource.
    collections: BTreeMap<String, BTreeMap<String, Collection>>,
    /// The number of the last write.
    resource_version: u64,
    history: History,
    /// What all objects weigh, and what they may weigh.
    weight: usize,
    quota: usize,
    /// The number of the last write to a role or a binding.
    rbac_version: u64,
}

impl Contents {
    /// Nothing yet, after this `resourceVersion`.
    const fn new(resource_version: u64, limits: &Limits) -> Self {
        Self {
            collections: BTreeMap::new(),
            resource_version,
            history: History::new(resource_version, limits.watch_cache_bytes),
            weight: 0,
            quota: limits.storage_bytes,
            rbac_version: 0,
        }
    }

    fn collection(&self, group: &str, resource: &str) -> Option<&Collection> {
        self.collections.get(group)?.get(resource)
    }

    /// Takes note of a write that put `after` in the place of `before`, which weighed so much.
    fn note(&mut self, key: Key, before: Option<(Arc<Value>, usize)>, after: Option<&Arc<Value>>) {
        self.resource_version += 1;
        if key.group == RBAC_GROUP {
            self.rbac_version = self.resource_version;
        }
        let (before, gone) = before.map_or((None, 0), |(object, weight)| (Some(object), weight));
        self.weight -= gone;
        self.history.push(Change { key, before, after: after.cloned() }, gone);
    }
}

/// What the watchers of a storage are told: that they should look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum News {
    /// Something was written.
    #[default]
    Written,
    /// The server stops.
    Closed,
}

/// The objects of one server.
#[derive(Debug)]
pub(super) struct Storage {
    contents: RwLock<Contents>,
    news: watch::Sender<News>,
    bootstrap: Option<Bootstrap>,
}

/// The roles and bindings that a server has from the start. Few requests need them, and a start should not wait for
/// them: they are read when somebody looks for one.
#[derive(Debug)]
struct Bootstrap {
    read: Once,
    /// When the server started.
    time: String,
}

/// Why nothing was written: somebody else wrote in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteConflict;

impl Default for Storage {
    fn default() -> Self {
        Self {
            contents: RwLock::new(Contents::new(0, &Limits::default())),
            news: watch::Sender::default(),
            bootstrap: None,
        }
    }
}

impl Storage {
    /// A storage with the roles and bindings that a server has from the start.
    pub(super) fn with_roles(limits: &Limits) -> Self {
        let time = super::metadata::now();
        Self {
            contents: RwLock::new(Contents::new(bootstrap::COUNT, limits)),
            bootstrap: Some(Bootstrap { read: Once::new(), time }),
            ..Self::default()
        }
    }

    /// Reads the roles and bindings that were there from the start, if `group` is theirs.
    fn read_bootstrap(&self, group: &str) {
        if let Some(bootstrap) = self.bootstrap.as_ref().filter(|_| group == RBAC_GROUP) {
            bootstrap.read.call_once(|| {
                let mut contents = self.write();
                let mut weight = 0;
                let resources = contents.collections.entry(RBAC_GROUP.to_owned()).or_default();
                for (version, mut object) in (1..).zip(bootstrap::objects(&bootstrap.time)) {
                    set_resource_version(&mut object, version);
                    let text = |field| super::metadata::text(&object, field).to_owned();
                    let place = place(&text("namespace"), &text("name"));
                    let collection = resources.entry(bootstrap::resource(&object).to_owned()).or_default();
                    let stored = Stored::new(Arc::new(object));
                    weight += stored.weight;
                    collection.insert(place, stored);
                }
                contents.weight += weight;
            });
        }
    }

    /// The number of the last write to a role or a binding.
    pub(super) fn rbac_version(&self) -> u64 {
        self.read().rbac_version
    }

    /// All roles and bindings, with the number of the last write to one of them.
    pub(super) fn rbac_objects(&self) -> (RbacObjects, u64) {
        self.read_bootstrap(RBAC_GROUP);
        let contents = self.read();
        let all = |resource: &str| {
            contents.collection(RBAC_GROUP, resource).map_or_else(Vec::new, |all| listed(all, ""))
        };
        let objects = RbacObjects {
            cluster_roles: all("clusterroles"),
            roles: all("roles"),
            cluster_role_bindings: all("clusterrolebindings"),
            role_bindings: all("rolebindings"),
        };
        (objects, contents.rbac_version)
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.contents.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.contents.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `resourceVersion` of the latest write.
    pub(super) fn resource_version(&self) -> u64 {
        self.read().resource_version
    }

    /// Is told of every write.
    pub(super) fn subscribe(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// Tells all subscribers that nothing comes any more.
    pub(super) fn close(&self) {
        self.news.send_replace(News::Closed);
    }

    /// Says that something was written, unless nothing is to come any more.
    fn tell(&self) {
        self.news.send_if_modified(|news| *news == News::Written);
    }

    /// At most `limit` of the changes after the `resourceVersion`, which may be one that is yet to come.
    pub(super) fn changes_after(&self, version: u64, limit: usize) -> Result<Vec<Change>, Forgotten> {
        self.read().history.after_version(version, limit)
    }

    /// The next piece for a client that reads a collection in pieces: the changes since its `resourceVersion` or, if there
    /// are none, the objects after its position. At most `limit` of either.
    pub(super) fn next_page(&self, walk: &Walk<'_>, limit: usize) -> Result<Page, Forgotten> {
        self.read_bootstrap(walk.group);
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
            .map(|(place, stored)| (place.clone(), Arc::clone(&stored.object)));
        Ok(Page::Objects(objects.collect()))
    }

    /// Checks that there is room for an object, in place of the one that is there if there is one.
    ///
    /// # Errors
    /// 500, with what etcd says.
    ///
    /// Source: etcd api/v3rpc/rpctypes/error.go, `ErrGRPCNoSpace` and `ErrGRPCRequestTooLarge`.
    pub(super) fn check_space(&self, object: &Value, before: Option<&Value>) -> Result<(), Box<Status>> {
        let full = |why: &str| Err(Box::new(Status::failure(500, "", format!("etcdserver: {why}"))));
        let (new, old) = (weight(object), before.map_or(0, weight));
        // What weighs little is short, and seldom has to be measured.
        if new > LARGEST_OBJECT && json_length(object) > LARGEST_OBJECT {
            return full("request is too large");
        }
        if new > old {
            let contents = self.read();
            if contents.weight + (new - old) > contents.quota {
                return full("mvcc: database space exceeded");
            }
        }
        Ok(())
    }

    /// All objects, and the `resourceVersion` at which they are that. Roles and bindings from the start are only among them
    /// once somebody has looked for one.
    pub(super) fn everything(&self) -> (Vec<(Key, Arc<Value>)>, u64) {
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
                    objects.push((key, Arc::clone(&stored.object)));
                }
            }
        }
        (objects, contents.resource_version)
    }

    pub(super) fn at(&self, key: &Key) -> Option<Arc<Value>> {
        self.get(&key.group, &key.resource, &key.namespace, &key.name)
    }

    /// Objects as they were at a `resourceVersion`, in the order of their places.
    ///
    /// Source: apiserver `pkg/storage/cacher/watch_cache.go`, `waitUntilFreshAndList`.
    /// Rule: LST-01.
    pub(super) fn snapshot(&self, wanted: &Snapshot<'_>) -> Result<SnapshotPage, Forgotten> {
        self.read_bootstrap(wanted.group);
        let contents = self.read();
        let version = wanted.version.unwrap_or(contents.resource_version);
        let prefix = prefix(wanted.namespace);
        let from = wanted.from.unwrap_or(prefix.as_str());
        // What the objects were that have changed since.
        let mut former: BTreeMap<String, Option<&Arc<Value>>> = BTreeMap::new();
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
            .map(|(place, stored)| (place.as_str(), &stored.object));
        let gone = former
            .range::<str, _>((Bound::Included(from), Bound::Unbounded))
            .take_while(|(place, _)| place.starts_with(&prefix))
            .filter_map(|(place, object)| Some((place.as_str(), (*object)?)));
        let mut all: Vec<(&str, &Arc<Value>)> = objects.chain(gone).collect();
        if !former.is_empty() {
            all.sort_by_key(|(place, _)| *place);
        }
        let count = all.len();
        all.truncate(wanted.limit.unwrap_or(count));
        Ok(SnapshotPage {
            version,
            behind: count - all.len(),
            last: all.last().map(|(place, _)| (*place).to_owned()),
            objects: all.into_iter().map(|(_, object)| Arc::clone(object)).collect(),
        })
    }

    /// Notes that an object was written without defaults that it has when it is read.
    pub(super) fn note_incomplete(&self, key: &Key, object: &Arc<Value>) {
        let mut contents = self.write();
        let collection = contents.collections.get_mut(&key.group).and_then(|all| all.get_mut(&key.resource));
        let stored = collection.and_then(|all| all.get_mut(&key.place()));
        if let Some(stored) = stored.filter(|stored| Arc::ptr_eq(&stored.object, object)) {
            stored.is_incomplete = true;
        }
    }

    /// Whether that was noted of an object.
    pub(super) fn is_incomplete(&self, key: &Key, object: &Arc<Value>) -> bool {
        let contents = self.read();
        let stored = contents.collection(&key.group, &key.resource).and_then(|all| all.get(&key.place()));
        stored.is_some_and(|stored| stored.is_incomplete && Arc::ptr_eq(&stored.object, object))
    }

    /// Stores a new object and gives it its `resourceVersion`.
    pub(super) fn insert(&self, key: &Key, object: Value) -> Result<Arc<Value>, WriteConflict> {
        self.replace(key, None, object)
    }

    /// Stores `object` if what is stored is still `expected`, and gives it its `resourceVersion`.
    pub(super) fn replace(
        &self,
        key: &Key,
        expected: Option<&Arc<Value>>,
        mut object: Value,
    ) -> Result<Arc<Value>, WriteConflict> {
        self.read_bootstrap(&key.group);
        let mut contents = self.write();
        let place = key.place();
        let stored = contents.collection(&key.group, &key.resource).and_then(|all| all.get(&place));
        let unchanged = match (stored, expected) {
            (None, None) => true,
            (Some(stored), Some(expected)) => Arc::ptr_eq(&stored.object, expected),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !unchanged {
            return Err(WriteConflict);
        }
        set_resource_version(&mut object, contents.resource_version + 1);
        let object = Arc::new(object);
        let stored = Stored::new(Arc::clone(&object));
        contents.weight += stored.weight;
        let collections = contents.collections.entry(key.group.clone()).or_default();
        let before = collections.entry(key.resource.clone()).or_default().insert(place, stored);
        contents.note(key.clone(), before.as_ref().map(Stored::weighed), Some(&object));
        drop(contents);
        self.tell();
        Ok(object)
    }

    /// Removes an object if what is stored is still `expected`; the `resourceVersion` of that write.
    pub(super) fn remove(&self, key: &Key, expected: &Arc<Value>) -> Result<u64, WriteConflict> {
        self.read_bootstrap(&key.group);
        let mut contents = self.write();
        let place = key.place();
        let collection = contents
            .collections
            .get_mut(&key.group)
            .and_then(|group| group.get_mut(&key.resource))
            .ok_or(WriteConflict)?;
        match collection.get(&place) {
            Some(stored) if Arc::ptr_eq(&stored.object, expected) => {
                let before = collection.remove(&place);
                contents.note(key.clone(), before.as_ref().map(Stored::weighed), None);
            }
            Some(_) | None => return Err(WriteConflict),
        }
        let version = contents.resource_version;
        drop(contents);
        self.tell();
        Ok(version)
    }

    /// Removes the objects of a namespace that no finalizer keeps; whether none is left.
    pub(super) fn empty_namespace(&self, namespace: &str) -> bool {
        self.read_bootstrap(RBAC_GROUP);
        let mut contents = self.write();
        let mut empty = true;
        let mut gone = Vec::new();
        for (group, resources) in &mut contents.collections {
            for (resource, collection) in resources {
                collection.retain(|place, stored| {
                    let Some((stored_in, name)) = place.split_once('/').filter(|(it, _)| *it == namespace)
                    else {
                        return true;
                    };
                    let kept = super::metadata::has_finalizers(&stored.object);
                    empty &= !kept;
                    if !kept {
                        let key = Key {
                            group: group.clone(),
                            resource: resource.clone(),
                            namespace: stored_in.to_owned(),
                            name: name.to_owned(),
                        };
                        gone.push((key, stored.weighed()));
                    }
                    kept
                });
            }
        }
        for (key, before) in gone {
            contents.note(key, Some(before), None);
        }
        drop(contents);
        self.tell();
        empty
    }
}

/// Says which write an object is of.
pub(super) fn set_resource_version(object: &mut Value, version: u64) {
    super::metadata::set(object, "resourceVersion", Value::String(version.to_string()));
}

fn listed(collection: &Collection, namespace: &str) -> Vec<Arc<Value>> {
    if namespace.is_empty() {
        return collection.values().map(|stored| Arc::clone(&stored.object)).collect();
    }
    let prefix = prefix(namespace);
    collection
        .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
        .take_while(|(place, _)| place.starts_with(&prefix))
        .map(|(_, stored)| Arc::clone(&stored.object))
        .collect()
}

impl ObjectReader for Storage {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.read_bootstrap(group);
        let nested = (!namespace.is_empty()).then(|| place(namespace, name));
        let place = nested.as_deref().unwrap_or(name);
        self.read().collection(group, resource)?.get(place).map(|stored| Arc::clone(&stored.object))
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.read_bootstrap(group);
        self.read().collection(group, resource).map_or_else(Vec::new, |all| listed(all, namespace))
    }
}

mod pages;
#[cfg(test)]
mod tests;
