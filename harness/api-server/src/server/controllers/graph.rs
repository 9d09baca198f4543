//! The graph of objects and their owners.
//!
//! Source: kubernetes `pkg/controller/garbagecollector/graph_builder.go`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::apimachinery::metadata;
use crate::storage::{Change, Key, StoredObject};

/// The finalizer of an object in orphan deletion.
pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// An object that has owners or waits for the garbage collector.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) uid: String,
    pub(super) key: Key,
    pub(super) owners: Vec<Owner>,
    /// Whether the object is in foreground deletion.
    pub(super) waits_for_dependents: bool,
    /// Whether the object is in orphan deletion.
    orphans: bool,
}

/// One of the `ownerReferences` of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The value of `blockOwnerDeletion`.
    pub(super) blocks: bool,
}

/// An object and its dependents.
#[derive(Debug)]
pub(super) struct Neighbors {
    pub(super) node: Node,
    pub(super) dependents: Vec<Node>,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    /// The UIDs of the dependents, by the UID of the owner.
    dependents: HashMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Applies a change to the graph. Returns the UIDs of the objects to process.
    pub(super) fn observe(&mut self, change: &Change) -> Vec<String> {
        let uid_of = |stored: &Option<Arc<StoredObject>>| {
            stored
                .as_ref()
                .map(|stored| metadata::text(&stored.object(), "uid").to_owned())
                .filter(|uid| !uid.is_empty())
        };
        let (gone, there) = (uid_of(&change.before), uid_of(&change.after));
        let mut concerned = Vec::new();
        if let Some(gone) = gone.filter(|gone| there.as_ref() != Some(gone)) {
            let node = self.remove(&gone);
            // Owners that waited for the deleted object may now be deleted.
            concerned.extend(node.into_iter().flat_map(|node| self.waiting_owners(&node.owners)));
            concerned.extend(self.dependents.get(&gone).into_iter().flatten().cloned());
        }
        if let (Some(uid), Some(object)) = (there, &change.after) {
            let before = self.remove(&uid);
            let node = Node::new(&uid, &change.key, &object.object());
            for owner in &node.owners {
                self.dependents.entry(owner.uid.clone()).or_default().insert(uid.clone());
            }
            let (owners, waited, orphaned) = before.map_or((Vec::new(), false, false), |before| {
                (before.owners, before.waits_for_dependents, before.orphans)
            });
            if node.waits_for_dependents && !waited {
                concerned.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
            }
            let starts = (node.waits_for_dependents && !waited) || (node.orphans && !orphaned);
            if owners != node.owners {
                concerned.extend(self.waiting_owners(&owners));
            }
            if starts || owners != node.owners {
                concerned.push(uid.clone());
            }
            if !node.owners.is_empty() || node.waits_for_dependents || node.orphans {
                self.nodes.insert(uid, node);
            }
        }
        concerned
    }

    /// Returns the UIDs of the `owners` that wait for the deletion of their dependents.
    fn waiting_owners(&self, owners: &[Owner]) -> Vec<String> {
        let waits =
            |owner: &&Owner| self.nodes.get(&owner.uid).is_some_and(|owner| owner.waits_for_dependents);
        owners.iter().filter(waits).map(|owner| owner.uid.clone()).collect()
    }

    /// Returns an object and its dependents; `None` if the object does not need processing.
    pub(super) fn neighbors(&self, uid: &str) -> Option<Neighbors> {
        let dependents = self.dependents.get(uid).into_iter().flatten();
        let dependents = dependents.filter_map(|uid| self.nodes.get(uid)).cloned().collect();
        Some(Neighbors { node: self.nodes.get(uid)?.clone(), dependents })
    }

    fn remove(&mut self, uid: &str) -> Option<Node> {
        let node = self.nodes.remove(uid)?;
        for owner in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        Some(node)
    }
}

impl Node {
    fn new(uid: &str, key: &Key, object: &Value) -> Self {
        let is_deleting = metadata::is_deleting(object);
        Self {
            uid: uid.to_owned(),
            key: key.clone(),
            owners: owners(object),
            waits_for_dependents: is_deleting && has_finalizer(object, FOREGROUND),
            orphans: is_deleting && has_finalizer(object, ORPHAN),
        }
    }

    /// Returns whether the object blocks the deletion of its owner with this UID.
    pub(super) fn blocks(&self, owner: &str) -> bool {
        self.owners.iter().any(|reference| reference.uid == owner && reference.blocks)
    }
}

/// Returns the owners that an object references.
pub(super) fn owners(object: &Value) -> Vec<Owner> {
    let references = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner = |reference: &Value| {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Owner {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            blocks: reference.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false),
        }
    };
    references.into_iter().flatten().map(owner).collect()
}

pub(super) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    metadata::finalizers(object).any(|known| known == finalizer)
}
