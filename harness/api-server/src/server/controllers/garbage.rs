//! Garbage collection: deletes objects when all of their owners are deleted.

use std::sync::Arc;

use http::Method;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::status::Status;
use serde_json::{Map, Value, json};

use super::actors::{Actor, Actors, Change, JSON, MERGE_PATCH, STRATEGIC_PATCH, path};
use super::graph::{FOREGROUND, Neighbors, Node, ORPHAN, Owner, has_finalizer, owners};
use super::queue::Outcome;
use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;

/// The state of the owner to which an owner reference refers.
enum OwnerState {
    /// The owner exists.
    Exists,
    /// The owner does not exist, or another object has its name.
    Dangling,
    /// The owner waits for the deletion of its dependents.
    Waiting,
    /// The owner is namespaced but the dependent is cluster-scoped, so the reference is invalid.
    Invalid,
    /// The kind of the owner is not served.
    Unknown,
}

/// Processes an object that has owners or waits for its dependents.
///
/// Source: kubernetes pkg/controller/garbagecollector/garbagecollector.go, `attemptToDeleteItem`,
/// `processDeletingDependentsItem` and `attemptToOrphanWorker`.
/// Rule: CTL-05, CTL-06, CTL-07.
pub(super) async fn collect(actors: &Actors, neighbors: &Neighbors) -> Outcome {
    let Neighbors { node, dependents } = neighbors;
    let Some(live) = actors.server.registry.state.storage.at(&node.key) else { return Outcome::Done };
    let Some(resource) = actors.stored_as(&node.key.group, &node.key.resource) else { return Outcome::Park };
    if metadata::text(&live, "uid") != node.uid {
        return Outcome::Done;
    }
    let object = Object { actors, node, live: &live, resource: &resource };
    if metadata::is_deleting(&live) {
        if has_finalizer(&live, ORPHAN) {
            return object.orphan(dependents).await;
        }
        if has_finalizer(&live, FOREGROUND) {
            return object.finish(dependents).await;
        }
        // The object is deleted when its other finalizers are removed.
        return Outcome::Done;
    }
    object.collect(dependents).await
}

/// The stored state of the object being processed.
struct Object<'a> {
    actors: &'a Actors,
    node: &'a Node,
    live: &'a Arc<Value>,
    resource: &'a Arc<Resource>,
}

impl Object<'_> {
    /// Deletes the object if no owner keeps it. Otherwise removes the references to the owners that do not keep it.
    async fn collect(&self, dependents: &[Node]) -> Outcome {
        let owners = owners(self.live);
        if owners.is_empty() {
            return Outcome::Done;
        }
        let (mut has_existing_owner, mut waiting, mut superfluous) = (false, false, Vec::new());
        for owner in &owners {
            match self.owner_state(owner) {
                OwnerState::Exists => has_existing_owner = true,
                OwnerState::Dangling => superfluous.push(owner.uid.as_str()),
                OwnerState::Waiting => {
                    waiting = true;
                    superfluous.push(owner.uid.as_str());
                }
                OwnerState::Invalid => return Outcome::Done,
                OwnerState::Unknown => return Outcome::Park,
            }
        }
        if has_existing_owner {
            if superfluous.is_empty() {
                return Outcome::Done;
            }
            return ended(patch_owners(self.actors, &self.node.key, &self.node.uid, &superfluous).await);
        }
        let policy = if waiting && !dependents.is_empty() {
            // Otherwise two objects that wait for each other would never be deleted.
            if dependents.iter().any(|dependent| dependent.waits_for_dependents)
                && let Err(status) = self.unblock().await
            {
                return ended(Err(status));
            }
            "Foreground"
        } else if has_finalizer(self.live, ORPHAN) {
            "Orphan"
        } else if has_finalizer(self.live, FOREGROUND) {
            "Foreground"
        } else {
            "Background"
        };
        let version = actors_version(self.actors, self.node).unwrap_or_default();
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1",
            "preconditions": {"uid": self.node.uid, "resourceVersion": version},
            "propagationPolicy": policy,
        });
        let change = Change { method: Method::DELETE, path: self.path(), media_type: JSON, body: &options };
        ended(self.actors.send(Actor::Garbage, change).await)
    }

    /// Removes the finalizer of the object, or enqueues the dependents that block the deletion of the object.
    async fn finish(&self, dependents: &[Node]) -> Outcome {
        let blocking: Vec<&Node> =
            dependents.iter().filter(|dependent| dependent.blocks(&self.node.uid)).collect();
        if blocking.is_empty() {
            return ended(self.remove_finalizer(FOREGROUND).await);
        }
        let next = blocking.into_iter().filter(|dependent| !dependent.waits_for_dependents);
        Outcome::Then(next.map(|dependent| dependent.uid.clone()).collect())
    }

    /// Removes the object from the owner references of its dependents, then removes the finalizer from the object.
    async fn orphan(&self, dependents: &[Node]) -> Outcome {
        for dependent in dependents {
            let patched =
                patch_owners(self.actors, &dependent.key, &dependent.uid, &[self.node.uid.as_str()]).await;
            if let Err(status) = patched
                && status.code != 404
            {
                return Outcome::Retry;
            }
        }
        ended(self.remove_finalizer(ORPHAN).await)
    }

    fn owner_state(&self, owner: &Owner) -> OwnerState {
        let server = &self.actors.server;
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let kind = GroupVersionKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: owner.kind.clone(),
        };
        let resources = server.registry.state.resources();
        let Some(resource) = resources.of_kind(&kind) else { return OwnerState::Unknown };
        let namespace = self.node.key.namespace.as_str();
        if resource.namespaced && namespace.is_empty() {
            return OwnerState::Invalid;
        }
        let namespace = if resource.namespaced { namespace } else { "" };
        let found = server.registry.state.storage.at(&resource.key(namespace, &owner.name));
        match found.filter(|found| metadata::text(found, "uid") == owner.uid) {
            None => OwnerState::Dangling,
            Some(found) if metadata::is_deleting(&found) && has_finalizer(&found, FOREGROUND) => {
                OwnerState::Waiting
            }
            Some(_) => OwnerState::Exists,
        }
    }

    /// Sets `blockOwnerDeletion` to false in the owner references of the object.
    async fn unblock(&self) -> Result<(), Box<Status>> {
        let references = self.live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let mut references = references.cloned().unwrap_or_default();
        for reference in references.iter_mut().filter_map(Value::as_object_mut) {
            reference.insert("blockOwnerDeletion".to_owned(), false.into());
        }
        let version = metadata::text(self.live, "resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": references}});
        let change =
            Change { method: Method::PATCH, path: self.path(), media_type: MERGE_PATCH, body: &patch };
        self.actors.send(Actor::Garbage, change).await
    }

    /// Source: kubernetes pkg/controller/garbagecollector/operations.go, `removeFinalizer`.
    async fn remove_finalizer(&self, finalizer: &str) -> Result<(), Box<Status>> {
        let finalizers = self.live.pointer("/metadata/finalizers").and_then(Value::as_array);
        let kept: Vec<&Value> = finalizers.into_iter().flatten().filter(|it| *it != finalizer).collect();
        let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
        let version = metadata::text(self.live, "resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": kept}});
        let change =
            Change { method: Method::PATCH, path: self.path(), media_type: MERGE_PATCH, body: &patch };
        self.actors.send(Actor::Garbage, change).await
    }

    fn path(&self) -> String {
        path(self.resource, &self.node.key.namespace, &self.node.key.name)
    }
}

/// Returns the current `resourceVersion` of a stored object. An earlier request may have changed the object.
fn actors_version(actors: &Actors, node: &Node) -> Option<String> {
    let stored = actors.server.registry.state.storage.at(&node.key)?;
    Some(metadata::text(&stored, "resourceVersion").to_owned())
}

/// Removes owners from an object with a strategic merge patch or, for a custom resource, a merge patch.
///
/// Source: kubernetes pkg/controller/garbagecollector/patch.go, `patch` and `deleteOwnerRefJSONMergePatch`.
async fn patch_owners(
    actors: &Actors,
    at: &crate::storage::Key,
    uid: &str,
    superfluous: &[&str],
) -> Result<(), Box<Status>> {
    let (Some(stored), Some(resource)) =
        (actors.server.registry.state.storage.at(at), actors.stored_as(&at.group, &at.resource))
    else {
        return Ok(());
    };
    let (patch, media_type) = if resource.custom.is_some() {
        let references = stored.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_kept = |reference: &&Value| {
            let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
            !superfluous.contains(&uid)
        };
        let kept: Vec<&Value> = references.into_iter().flatten().filter(is_kept).collect();
        let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
        let version = metadata::text(&stored, "resourceVersion");
        (json!({"metadata": {"resourceVersion": version, "ownerReferences": kept}}), MERGE_PATCH)
    } else {
        let references: Vec<Value> =
            superfluous.iter().map(|uid| json!({"$patch": "delete", "uid": uid})).collect();
        let metadata = Map::from_iter([
            ("ownerReferences".to_owned(), references.into()),
            ("uid".to_owned(), uid.into()),
        ]);
        (json!({"metadata": metadata}), STRATEGIC_PATCH)
    };
    let change = Change {
        method: Method::PATCH,
        path: path(&resource, &at.namespace, &at.name),
        media_type,
        body: &patch,
    };
    actors.send(Actor::Garbage, change).await
}

fn ended(answer: Result<(), Box<Status>>) -> Outcome {
    match answer {
        Ok(()) => Outcome::Done,
        Err(status) if status.code == 404 => Outcome::Done,
        Err(_) => Outcome::Retry,
    }
}
