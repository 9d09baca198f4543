//! The controllers of definitions where webhooks have a rule for `customresourcedefinitions/status`: each of their writes is
//! a request of the server itself, made after the answer to the request that caused it. Where no webhook can see them,
//! the writes of [`definition_status`] and [`definition_deletion`] go straight to the storage.
//!
//! One task makes the requests, one at a time, and ends when nothing is left to write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kubernetes_admission::attributes::{GroupVersionResource, Operation};
use kubernetes_types::json::text;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::custom_resources::{GROUP, RESOURCE};
use super::definition_status::Names;
use super::storage::{News, ObjectReader as _, Storage};
use super::{Server, definition_deletion, definition_status, metadata, own_requests};

/// How long a write waits after the first failure, and how long at most; twice as long after each.
///
/// Source: client-go `util/workqueue/default_rate_limiters.go`, `DefaultTypedControllerRateLimiter`.
const FIRST_DELAY: Duration = Duration::from_millis(5);
const LONGEST_DELAY: Duration = Duration::from_secs(1000);

/// What the server knows of the task.
#[derive(Debug, Default)]
pub(super) struct DefinitionControllers {
    activity: Arc<Mutex<Activity>>,
}

#[derive(Debug, Default)]
struct Activity {
    is_running: bool,
    /// Whether something has changed since the task began to look at the definitions.
    has_changed: bool,
}

fn lock(activity: &Mutex<Activity>) -> MutexGuard<'_, Activity> {
    activity.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the task makes the writes that follow a change, because a webhook may have to see them, and if so notifies
/// it of the change.
///
/// Rule: SCH-20.
pub(super) fn are_to_write(server: &Arc<Server>) -> bool {
    let definitions = GroupVersionResource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        resource: RESOURCE.to_owned(),
    };
    if !server.admission.has_rule_for(Operation::Update, &definitions, "status") {
        return false;
    }
    // Who fills the storage of a server before it runs does so outside of a runtime.
    let Ok(runtime) = Handle::try_current() else { return false };
    let mut activity = lock(&server.definition_controllers.activity);
    activity.has_changed = true;
    if !activity.is_running {
        activity.is_running = true;
        runtime.spawn(run(Arc::clone(server)));
    }
    true
}

/// Lets another task begin when this one ends before its work is done, with its runtime.
struct Running {
    activity: Arc<Mutex<Activity>>,
    is_over: bool,
}

impl Running {
    /// Whether nothing has changed since the task began to look; then another one may begin.
    fn ends(&mut self) -> bool {
        let mut activity = lock(&self.activity);
        if !activity.has_changed {
            activity.is_running = false;
            self.is_over = true;
        }
        self.is_over
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            lock(&self.activity).is_running = false;
        }
    }
}

async fn run(mut server: Arc<Server>) {
    let activity = Arc::clone(&server.definition_controllers.activity);
    let mut running = Running { activity, is_over: false };
    let mut news = server.state.storage.subscribe();
    let mut writes = Writes::default();
    loop {
        if *news.borrow_and_update() == News::Closed {
            return;
        }
        lock(&running.activity).has_changed = false;
        writes.make(&server).await;
        let Some(due) = writes.due() else {
            if running.ends() {
                return;
            }
            continue;
        };
        // Who waits does not keep the server.
        let waiting = Arc::downgrade(&server);
        drop(server);
        tokio::select! {
            changed = news.changed() => if changed.is_err() { return },
            () = sleep_until(due) => {}
        }
        let Some(upgraded) = waiting.upgrade() else { return };
        server = upgraded;
    }
}

/// One of the controllers. Upstream they write side by side; here in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Controller {
    Names,
    Establishing,
    Approval,
    Finalizer,
}

impl Controller {
    const ALL: [Self; 4] = [Self::Names, Self::Establishing, Self::Approval, Self::Finalizer];

    /// What it writes next of a definition, if anything.
    fn next(self, storage: &Storage, definition: &Value) -> Option<Value> {
        match self {
            Self::Names => definition_status::accept_names(definition, || {
                Names::of_group(storage, text(definition, &["spec", "group"]))
            }),
            Self::Establishing => definition_status::establish(definition),
            Self::Approval => definition_status::approve(definition),
            Self::Finalizer => definition_deletion::next(storage, definition),
        }
    }
}

/// The writes that have failed, by the names of their definitions.
#[derive(Debug, Default)]
struct Writes {
    failed: HashMap<(String, Controller), Failed>,
}

/// A write that came to nothing.
#[derive(Debug)]
struct Failed {
    /// The definition as it was then. It is tried again when that has changed.
    definition: Arc<Value>,
    times: u32,
    /// When it is tried again in any case.
    due: Option<Instant>,
}

impl Failed {
    fn waits(&self, definition: &Arc<Value>) -> bool {
        Arc::ptr_eq(&self.definition, definition) && self.due.is_none_or(|due| Instant::now() < due)
    }
}

impl Writes {
    /// When the next write is tried again.
    fn due(&self) -> Option<Instant> {
        self.failed.values().filter_map(|failed| failed.due).min()
    }

    /// Makes requests until none is left to make now.
    async fn make(&mut self, server: &Arc<Server>) {
        loop {
            let definitions = server.state.storage.list(GROUP, RESOURCE, "");
            let names: Vec<_> = definitions.iter().map(|it| metadata::text(it, "name").to_owned()).collect();
            self.failed.retain(|(name, _), _| names.contains(name));
            let mut has_changed = false;
            for name in &names {
                for controller in Controller::ALL {
                    has_changed |= self.write(server, name, controller).await;
                }
            }
            if !has_changed {
                return;
            }
        }
    }

    /// Makes the next request of a controller, if there is one; whether the definition has changed meanwhile.
    ///
    /// Source: `sync` of the controllers in apiextensions-apiserver `pkg/controller`.
    /// Rule: SCH-20.
    async fn write(&mut self, server: &Arc<Server>, name: &str, controller: Controller) -> bool {
        let storage = &server.state.storage;
        let Some(stored) = storage.get(GROUP, RESOURCE, "", name) else { return false };
        let key = (name.to_owned(), controller);
        if self.failed.get(&key).is_some_and(|failed| failed.waits(&stored)) {
            return false;
        }
        let Some(next) = controller.next(storage, &stored) else {
            self.failed.remove(&key);
            return false;
        };
        let path = format!("/apis/{GROUP}/v1/{RESOURCE}/{name}/status");
        let written = own_requests::put(server, path, &next).await;
        let now = storage.get(GROUP, RESOURCE, "", name);
        let has_changed = now.is_none_or(|now| !Arc::ptr_eq(&now, &stored));
        match written {
            Err(status) if status.reason != "Conflict" && status.reason != "NotFound" => {
                let times = self.failed.get(&key).map_or(0, |failed| failed.times);
                let delay = FIRST_DELAY.saturating_mul(1 << times.min(18)).min(LONGEST_DELAY);
                let due = Some(Instant::now() + delay);
                self.failed.insert(key, Failed { definition: stored, times: times.saturating_add(1), due });
            }
            // What has changed is looked at again anyway.
            _ if has_changed => drop(self.failed.remove(&key)),
            // A webhook has undone the write.
            _ => drop(self.failed.insert(key, Failed { definition: stored, times: 0, due: None })),
        }
        has_changed
    }
}
