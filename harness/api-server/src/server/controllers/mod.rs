//! Runs controllers of kube-controller-manager.
//!
//! They delete namespaces, collect garbage, and create default objects in namespaces.
//!
//! The server authorizes and admits the controllers' requests in the same way as requests from any other client.
//!
//! One task reads the changes of the storage, maintains a [graph](graph) of owners, and [queues](queue) items to
//! process. A few workers process one item each, based on the stored state at that time.

mod accounts;
mod actors;
mod garbage;
mod graph;
mod namespaces;
mod queue;

use std::collections::HashSet;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::actors::Actors;
use self::graph::Graph;
use self::queue::{Item, Outcome, Queue};
use crate::apimachinery::metadata;
use crate::endpoints::context::Server;
use crate::endpoints::options::Controllers;
use crate::kinds::discovery::custom;
use crate::storage::{Change, Key, StorageEvent};

/// The maximum number of items that are processed concurrently. Each item may wait for webhooks.
const WORKERS: usize = 8;

/// The maximum number of changes that are read at once.
const PAGE: usize = 500;

/// Runs the controllers of a server until it stops.
pub(crate) async fn run(server: Arc<Server>, options: Controllers) {
    let actors = Arc::new(Actors::new(Arc::clone(&server), options));
    let mut notifications = server.registry.state.storage.subscribe();
    let mut manager = Manager::new(server, actors);
    manager.list();
    let mut working: JoinSet<(Item, Outcome)> = JoinSet::new();
    loop {
        if *notifications.borrow_and_update() == StorageEvent::Closed {
            return;
        }
        manager.follow();
        while working.len() < WORKERS
            && let Some(item) = manager.queue.next(Instant::now())
        {
            working.spawn(manager.work(item));
        }
        let due = manager.queue.due().filter(|_| working.len() < WORKERS);
        tokio::select! {
            changed = notifications.changed() => if changed.is_err() { return },
            Some(ended) = working.join_next() => match ended {
                Ok((item, outcome)) => manager.queue.end(item, outcome, Instant::now()),
                Err(error) => if let Ok(panic) = error.try_into_panic() { std::panic::resume_unwind(panic) },
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

/// The state that the controllers build from the objects and changes in the storage.
struct Manager {
    server: Arc<Server>,
    actors: Arc<Actors>,
    graph: Graph,
    queue: Queue,
    /// The namespaces being deleted.
    terminating: HashSet<String>,
    /// The `resourceVersion` of the last change that was read.
    version: u64,
}

impl Manager {
    fn new(server: Arc<Server>, actors: Arc<Actors>) -> Self {
        Self {
            server,
            actors,
            graph: Graph::default(),
            queue: Queue::default(),
            terminating: HashSet::new(),
            version: 0,
        }
    }

    /// Rebuilds the state from all stored objects, at startup and after the history has dropped unread changes.
    fn list(&mut self) {
        self.graph = Graph::default();
        self.terminating.clear();
        let (objects, version) = self.server.registry.state.storage.everything();
        self.version = version;
        for (key, object) in objects {
            self.observe(&Change { key, before: None, after: Some(object) });
        }
    }

    /// Reads the new changes of the storage and enqueues the items that they affect.
    fn follow(&mut self) {
        loop {
            match self.server.registry.state.storage.changes_after(self.version, PAGE) {
                Ok(changes) if changes.is_empty() => return,
                Ok(changes) => {
                    for change in changes {
                        self.version += 1;
                        self.observe(&change);
                    }
                }
                Err(_forgotten) => self.list(),
            }
        }
    }

    fn observe(&mut self, change: &Change) {
        let Change { key, before, after } = change;
        let Key { group, resource, namespace, name } = key;
        match (group.as_str(), resource.as_str()) {
            ("", "namespaces") => {
                if after.as_ref().is_some_and(|after| metadata::is_deleting(&after.object())) {
                    self.terminating.insert(name.clone());
                } else {
                    self.terminating.remove(name);
                }
                if after.is_some() {
                    let of = [Item::Namespace, Item::Account, Item::RootCertificates];
                    for item in of {
                        self.queue.add(item(name.clone()));
                    }
                }
            }
            ("", "serviceaccounts") if name == accounts::ACCOUNT && after.is_none() => {
                self.queue.add(Item::Account(namespace.clone()));
            }
            ("", "configmaps") if name == accounts::ROOT_CERTIFICATES && before.is_some() => {
                self.queue.add(Item::RootCertificates(namespace.clone()));
            }
            (custom::GROUP, custom::RESOURCE) => self.queue.add_parked(),
            _ => {}
        }
        if after.is_none() && self.terminating.contains(namespace) {
            self.queue.add(Item::Namespace(namespace.clone()));
        }
        for uid in self.graph.observe(change) {
            self.queue.add(Item::Object(uid));
        }
    }

    /// Returns the future that processes one item.
    fn work(&self, item: Item) -> impl Future<Output = (Item, Outcome)> + Send + 'static {
        let actors = Arc::clone(&self.actors);
        let neighbors = match &item {
            Item::Object(uid) => self.graph.neighbors(uid),
            Item::Namespace(_) | Item::Account(_) | Item::RootCertificates(_) => None,
        };
        async move {
            let outcome = match (&item, neighbors) {
                (Item::Namespace(name), _) => namespaces::finish(&actors, name).await,
                (Item::Account(namespace), _) => accounts::make(&actors, namespace).await,
                (Item::RootCertificates(namespace), _) => accounts::publish(&actors, namespace).await,
                (Item::Object(_), Some(neighbors)) => garbage::collect(&actors, &neighbors).await,
                // The object and its references no longer exist.
                (Item::Object(_), None) => Outcome::Done,
            };
            (item, outcome)
        }
    }
}
