//! The objects of the server, in memory.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::watch;

use super::authorization::bootstrap;
use crate::authorizer::{RBAC_GROUP, RbacObjects};
use crate::ownership::Owners;

/// How many changes a watch may lag behind: the oldest of more are forgotten, as upstream's watch cache does.
const REMEMBERED: usize = 4096;

/// Reads stored objects, which are in their storage version.
pub(crate) trait ObjectReader: Send + Sync {
    /// One object; `namespace` is empty for a cluster-scoped one.
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// All objects of a namespace, or of all namespaces if `namespace` is empty.
    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>>;
}

/// Where an object is stored: one place for all versions of its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) group: String,
    pub(super) resource: String,
    /// Empty for a cluster-scoped object.
    pub(super) namespace: String,
    pub(super) name: String,
}

type Collection = BTreeMap<(String, String), Stored>;

#[derive(Debug)]
struct Stored {
    object: Arc<Value>,
    owners: Owners,
}

/// One write.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) key: Key,
    /// None of an object that is new.
    pub(super) before: Option<Arc<Value>>,
    /// None of an object that is gone.
    pub(super) after: Option<Arc<Value>>,
}

#[derive(Debug, Default)]
struct Contents {
    /// By group, then by resource.
    collections: BTreeMap<String, BTreeMap<String, Collection>>,
    /// The number of the last of `changes`.
    resource_version: u64,
    /// The latest writes, one for each `resourceVersion`.
    changes: VecDeque<Change>,
    /// The number of the last write to a role or a binding.
    rbac_version: u64,
}

impl Contents {
    fn collection(&self, group: &str, resource: &str) -> Option<&Collection> {
        self.collections.get(group)?.get(resource)
    }

    /// The `resourceVersion` before the oldest change that is remembered.
    fn forgotten(&self) -> u64 {
        self.resource_version - self.changes.len() as u64
    }

    fn note(&mut self, change: Change) {
        self.resource_version += 1;
        if change.key.group == RBAC_GROUP {
            self.rbac_version = self.resource_version;
        }
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
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
#[derive(Debug, Default)]
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
pub(super) struct Raced;

/// Changes are not remembered that far back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forgotten {
    /// The oldest `resourceVersion` after which all changes are remembered.
    pub(super) oldest: u64,
}

impl Storage {
    /// A storage with the roles and bindings that a server has from the start.
    pub(super) fn with_roles() -> Self {
        let contents = Contents { resource_version: bootstrap::COUNT, ..Contents::default() };
        Self {
            contents: RwLock::new(contents),
            news: watch::Sender::default(),
            bootstrap: Some(Bootstrap { read: Once::new(), time: super::metadata::now() }),
        }
    }

    /// Reads the roles and bindings that were there from the start, if `group` is theirs.
    fn read_bootstrap(&self, group: &str) {
        if let Some(bootstrap) = self.bootstrap.as_ref().filter(|_| group == RBAC_GROUP) {
            bootstrap.read.call_once(|| {
                let mut contents = self.write();
                let resources = contents.collections.entry(RBAC_GROUP.to_owned()).or_default();
                for (version, mut object) in (1..).zip(bootstrap::objects(&bootstrap.time)) {
                    set_resource_version(&mut object, version);
                    let text = |field| super::metadata::text(&object, field).to_owned();
                    let place = (text("namespace"), text("name"));
                    let owners = Owners::of(&object, true);
                    let collection = resources.entry(bootstrap::resource(&object).to_owned()).or_default();
                    collection.insert(place, Stored { object: Arc::new(object), owners });
                }
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
        let contents = self.read();
        let oldest = contents.forgotten();
        let Some(skipped) = version.checked_sub(oldest) else { return Err(Forgotten { oldest }) };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        Ok(contents.changes.iter().skip(skipped).take(limit).cloned().collect())
    }

    pub(super) fn at(&self, key: &Key) -> Option<Arc<Value>> {
        self.get(&key.group, &key.resource, &key.namespace, &key.name)
    }

    /// All objects of a namespace, or of all namespaces if `namespace` is empty, with the `resourceVersion` at which
    /// these are all.
    pub(super) fn list_at_version(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> (Vec<Arc<Value>>, u64) {
        self.read_bootstrap(group);
        let contents = self.read();
        let objects =
            contents.collection(group, resource).map_or_else(Vec::new, |all| listed(all, namespace));
        (objects, contents.resource_version)
    }

    /// Who owns the fields of an object; nobody if there is none.
    pub(super) fn owners(&self, key: &Key) -> Owners {
        self.read_bootstrap(&key.group);
        let contents = self.read();
        let place = (key.namespace.clone(), key.name.clone());
        let stored = contents.collection(&key.group, &key.resource).and_then(|all| all.get(&place));
        stored.map(|stored| stored.owners.clone()).unwrap_or_default()
    }

    /// Stores a new object and gives it its `resourceVersion`.
    pub(super) fn insert(&self, key: &Key, object: Value, owners: Owners) -> Result<Arc<Value>, Raced> {
        self.replace(key, None, object, owners)
    }

    /// Stores `object` if what is stored is still `expected`, and gives it its `resourceVersion`.
    pub(super) fn replace(
        &self,
        key: &Key,
        expected: Option<&Arc<Value>>,
        mut object: Value,
        owners: Owners,
    ) -> Result<Arc<Value>, Raced> {
        self.read_bootstrap(&key.group);
        let mut contents = self.write();
        let place = (key.namespace.clone(), key.name.clone());
        let stored = contents.collection(&key.group, &key.resource).and_then(|all| all.get(&place));
        let unchanged = match (stored, expected) {
            (None, None) => true,
            (Some(stored), Some(expected)) => Arc::ptr_eq(&stored.object, expected),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !unchanged {
            return Err(Raced);
        }
        set_resource_version(&mut object, contents.resource_version + 1);
        let object = Arc::new(object);
        let collections = contents.collections.entry(key.group.clone()).or_default();
        let stored = Stored { object: Arc::clone(&object), owners };
        let before = collections.entry(key.resource.clone()).or_default().insert(place, stored);
        let before = before.map(|stored| stored.object);
        contents.note(Change { key: key.clone(), before, after: Some(Arc::clone(&object)) });
        drop(contents);
        self.tell();
        Ok(object)
    }

    /// Removes an object if what is stored is still `expected`; the `resourceVersion` of that write.
    pub(super) fn remove(&self, key: &Key, expected: &Arc<Value>) -> Result<u64, Raced> {
        self.read_bootstrap(&key.group);
        let mut contents = self.write();
        let place = (key.namespace.clone(), key.name.clone());
        let collection = contents
            .collections
            .get_mut(&key.group)
            .and_then(|group| group.get_mut(&key.resource))
            .ok_or(Raced)?;
        match collection.get(&place) {
            Some(stored) if Arc::ptr_eq(&stored.object, expected) => {
                let before = collection.remove(&place).map(|stored| stored.object);
                contents.note(Change { key: key.clone(), before, after: None });
            }
            Some(_) | None => return Err(Raced),
        }
        let version = contents.resource_version;
        drop(contents);
        self.tell();
        Ok(version)
    }

    /// Removes all objects of a resource.
    pub(super) fn remove_resource(&self, group: &str, resource: &str) {
        let mut contents = self.write();
        let removed = contents.collections.get_mut(group).and_then(|resources| resources.remove(resource));
        for ((namespace, name), stored) in removed.into_iter().flatten() {
            let key = Key { group: group.to_owned(), resource: resource.to_owned(), namespace, name };
            contents.note(Change { key, before: Some(stored.object), after: None });
        }
        drop(contents);
        self.tell();
    }

    /// Removes the objects of a namespace that no finalizer keeps; whether none is left.
    pub(super) fn empty_namespace(&self, namespace: &str) -> bool {
        self.read_bootstrap(RBAC_GROUP);
        let mut contents = self.write();
        let mut empty = true;
        let mut gone = Vec::new();
        for (group, resources) in &mut contents.collections {
            for (resource, collection) in resources {
                collection.retain(|(stored_in, name), stored| {
                    if stored_in != namespace {
                        return true;
                    }
                    let kept = super::metadata::has_finalizers(&stored.object);
                    empty &= !kept;
                    if !kept {
                        let key = Key {
                            group: group.clone(),
                            resource: resource.clone(),
                            namespace: stored_in.clone(),
                            name: name.clone(),
                        };
                        gone.push(Change { key, before: Some(Arc::clone(&stored.object)), after: None });
                    }
                    kept
                });
            }
        }
        for change in gone {
            contents.note(change);
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
    let from = (namespace.to_owned(), String::new());
    collection
        .range((Bound::Included(from), Bound::Unbounded))
        .take_while(|((stored_in, _), _)| stored_in == namespace)
        .map(|(_, stored)| Arc::clone(&stored.object))
        .collect()
}

impl ObjectReader for Storage {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.read_bootstrap(group);
        let contents = self.read();
        let collection = contents.collection(group, resource)?;
        collection.get(&(namespace.to_owned(), name.to_owned())).map(|stored| Arc::clone(&stored.object))
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        self.list_at_version(group, resource, namespace).0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            group: String::new(),
            resource: "configmaps".to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_write_over_an_object_that_somebody_replaced_is_refused() {
        let storage = Storage::default();
        let object = || json!({"metadata": {}});
        let first = storage.insert(&key("a"), object(), Owners::default()).unwrap();
        let second = storage.replace(&key("a"), Some(&first), object(), Owners::default()).unwrap();
        assert_eq!(second["metadata"]["resourceVersion"], "2");
        assert_eq!(storage.replace(&key("a"), Some(&first), object(), Owners::default()), Err(Raced));
        assert_eq!(storage.remove(&key("a"), &first), Err(Raced));
        assert_eq!(storage.remove(&key("a"), &second), Ok(3));
        assert_eq!(storage.at(&key("a")), None);
    }

    #[test]
    fn a_list_of_a_namespace_has_its_objects_only() {
        let storage = Storage::default();
        for (namespace, name) in [("a", "x"), ("b", "x"), ("b", "y"), ("c", "x")] {
            let key = Key { namespace: namespace.to_owned(), ..key(name) };
            let object = json!({"metadata": {"name": name, "namespace": namespace}});
            storage.insert(&key, object, Owners::default()).unwrap();
        }
        assert_eq!(storage.list("", "configmaps", "b").len(), 2);
        assert_eq!(storage.list("", "configmaps", "").len(), 4);
    }
}
