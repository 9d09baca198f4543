//! The objects of the server, in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;

use crate::ownership::Owners;

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

#[derive(Debug, Default)]
struct Contents {
    /// By group, then by resource.
    collections: BTreeMap<String, BTreeMap<String, Collection>>,
    resource_version: u64,
}

impl Contents {
    fn collection(&self, group: &str, resource: &str) -> Option<&Collection> {
        self.collections.get(group)?.get(resource)
    }

    fn next_resource_version(&mut self) -> u64 {
        self.resource_version += 1;
        self.resource_version
    }
}

/// The objects of one server.
#[derive(Debug, Default)]
pub(super) struct Storage {
    contents: RwLock<Contents>,
}

/// Why nothing was written: somebody else wrote in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raced;

impl Storage {
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

    pub(super) fn at(&self, key: &Key) -> Option<Arc<Value>> {
        self.get(&key.group, &key.resource, &key.namespace, &key.name)
    }

    /// Who owns the fields of an object; nobody if there is none.
    pub(super) fn owners(&self, key: &Key) -> Owners {
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
        let resource_version = contents.next_resource_version();
        super::metadata::set(&mut object, "resourceVersion", Value::String(resource_version.to_string()));
        let object = Arc::new(object);
        contents
            .collections
            .entry(key.group.clone())
            .or_default()
            .entry(key.resource.clone())
            .or_default()
            .insert(place, Stored { object: Arc::clone(&object), owners });
        Ok(object)
    }

    /// Removes an object if what is stored is still `expected`; the `resourceVersion` of that write.
    pub(super) fn remove(&self, key: &Key, expected: &Arc<Value>) -> Result<u64, Raced> {
        let mut contents = self.write();
        let place = (key.namespace.clone(), key.name.clone());
        let collection = contents
            .collections
            .get_mut(&key.group)
            .and_then(|group| group.get_mut(&key.resource))
            .ok_or(Raced)?;
        match collection.get(&place) {
            Some(stored) if Arc::ptr_eq(&stored.object, expected) => {
                collection.remove(&place);
                Ok(contents.next_resource_version())
            }
            Some(_) | None => Err(Raced),
        }
    }

    /// Removes all objects of a resource.
    pub(super) fn remove_resource(&self, group: &str, resource: &str) {
        let mut contents = self.write();
        if let Some(resources) = contents.collections.get_mut(group) {
            resources.remove(resource);
        }
    }

    /// Removes the objects of a namespace that no finalizer keeps; whether none is left.
    pub(super) fn empty_namespace(&self, namespace: &str) -> bool {
        let mut contents = self.write();
        let mut empty = true;
        for collection in contents.collections.values_mut().flat_map(BTreeMap::values_mut) {
            collection.retain(|(stored_in, _), stored| {
                if stored_in != namespace {
                    return true;
                }
                let kept = super::metadata::has_finalizers(&stored.object);
                empty &= !kept;
                kept
            });
        }
        empty
    }
}

impl ObjectReader for Storage {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let contents = self.read();
        let collection = contents.collection(group, resource)?;
        collection.get(&(namespace.to_owned(), name.to_owned())).map(|stored| Arc::clone(&stored.object))
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Value>> {
        let contents = self.read();
        let Some(collection) = contents.collection(group, resource) else { return Vec::new() };
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
