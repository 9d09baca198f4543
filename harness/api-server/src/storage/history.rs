//! Keeps the latest writes for watches.
//!
//! The history is limited by size and by the number of changes. The watch cache of kube-apiserver is limited only by
//! the number of events.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::storage::{StoredObject, place};

/// The maximum number of changes that a watch may lag behind.
const MAX_CHANGES: usize = 4096;

/// The storage key of an object, shared by all versions of its resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) group: String,
    pub(crate) resource: String,
    /// The namespace; empty for a cluster-scoped object.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    /// Returns the key of a cluster-scoped object.
    pub(crate) fn cluster_scoped(group: &str, resource: &str, name: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        }
    }

    /// Returns the key of the object within its collection.
    pub(crate) fn place(&self) -> String {
        place(&self.namespace, &self.name)
    }
}

/// A write of an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) key: Key,
    /// The object before the write; `None` for a creation.
    pub(crate) before: Option<Arc<StoredObject>>,
    /// The object after the write; `None` for a deletion.
    pub(crate) after: Option<Arc<StoredObject>>,
}

/// The error for a read of changes that are no longer in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryExpired {
    /// The oldest `resourceVersion` after which all changes are available.
    pub(crate) oldest: u64,
}

/// The latest changes, one for each `resourceVersion`.
#[derive(Debug)]
pub(crate) struct History {
    /// The changes, each with the weight of the object that only this change keeps in memory.
    changes: VecDeque<(Change, usize)>,
    /// The total weight of the objects that only the history keeps in memory.
    weight: usize,
    /// The maximum of `weight`.
    capacity: usize,
    /// The `resourceVersion` before the oldest change.
    forgotten: u64,
}

impl History {
    /// Creates a history that begins after this `resourceVersion`, with a maximum total weight.
    pub(crate) const fn new(version: u64, capacity: usize) -> Self {
        Self { changes: VecDeque::new(), weight: 0, capacity, forgotten: version }
    }

    /// Adds a change and drops the oldest changes that exceed the capacity.
    ///
    /// The newest change always remains, so that watches receive it regardless of its size.
    ///
    /// Only the replaced object counts toward the capacity, because the new object is either stored or the replaced
    /// object of a later change.
    pub(crate) fn push(&mut self, change: Change) {
        let key = &change.key;
        let weight = change.before.as_ref().map_or(0, |before| before.weight())
            + size_of::<Change>()
            + [&key.group, &key.resource, &key.namespace, &key.name].map(String::len).iter().sum::<usize>();
        self.changes.push_back((change, weight));
        self.weight += weight;
        while self.changes.len() > MAX_CHANGES || (self.weight > self.capacity && self.changes.len() > 1) {
            let Some((_, weight)) = self.changes.pop_front() else { return };
            self.weight -= weight;
            self.forgotten += 1;
        }
    }

    /// Returns at most `limit` changes after `version`. The `version` may be in the future.
    pub(crate) fn after_version(&self, version: u64, limit: usize) -> Result<Vec<Change>, HistoryExpired> {
        Ok(self.since(version)?.take(limit).cloned().collect())
    }

    /// Returns all changes after `version`.
    pub(crate) fn since(&self, version: u64) -> Result<impl Iterator<Item = &Change>, HistoryExpired> {
        let oldest = self.forgotten;
        let Some(skipped) = version.checked_sub(oldest) else { return Err(HistoryExpired { oldest }) };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        Ok(self.changes.iter().skip(skipped).map(|(change, _)| change))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::EncodedObject;

    const WEIGHT: usize = 1 << 20;

    /// Creates a change whose replaced object has this weight.
    fn change(weight: usize) -> Change {
        let key = Key {
            group: String::new(),
            resource: "configmaps".to_owned(),
            namespace: "default".to_owned(),
            name: "a".to_owned(),
        };
        let object = Arc::new(json!("x".repeat(weight)));
        let before = Arc::new(StoredObject::new(EncodedObject::new(&object), &object, 1));
        Change { key, before: Some(before), after: None }
    }

    #[track_caller]
    fn check(history: &History, forgotten: u64, remembered: usize) {
        assert_eq!(history.after_version(forgotten, usize::MAX).unwrap().len(), remembered);
        let before = forgotten.checked_sub(1).map(|version| history.after_version(version, 1).map(drop));
        assert!(before.is_none_or(|before| before == Err(HistoryExpired { oldest: forgotten })));
    }

    #[test]
    fn large_changes_evict_the_oldest() {
        let mut history = History::new(7, WEIGHT);
        for _ in 0..10 {
            history.push(change(WEIGHT / 5));
        }
        check(&history, 13, 4);
        assert!(history.weight <= WEIGHT);
        history.push(change(2 * WEIGHT));
        check(&history, 17, 1);
        history.push(change(0));
        check(&history, 18, 1);
    }

    #[test]
    fn number_of_small_changes_is_limited() {
        let mut history = History::new(0, usize::MAX);
        for _ in 0..MAX_CHANGES + 3 {
            history.push(change(100));
        }
        check(&history, 3, MAX_CHANGES);
    }
}
