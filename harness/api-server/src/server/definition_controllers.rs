//! Runs the definition controllers if a webhook rule matches updates of `customresourcedefinitions/status`.
//!
//! The controllers write with loopback requests. The server sends each request after it has responded to the request
//! that caused the write. Without such a rule, [`definition_status`] and [`definition_deletion`] write directly to the
//! storage.
//!
//! One task sends the requests sequentially and ends after the last write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kubernetes_admission::attributes::{GroupVersionResource, Operation};
use kubernetes_types::json::text;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use crate::apimachinery::metadata;
use crate::endpoints::context::Server;
use crate::kinds::apiextensions::definition_status::Names;
use crate::kinds::apiextensions::{definition_deletion, definition_status};
use crate::kinds::discovery::custom::{GROUP, RESOURCE};
use crate::server::loopback_requests;
use crate::storage::{ObjectReader as _, Storage, StorageEvent};

/// The first retry delay. It doubles after each failure, up to `MAX_DELAY`.
///
/// Source: client-go `util/workqueue/default_rate_limiters.go`, `DefaultTypedControllerRateLimiter`.
const BASE_DELAY: Duration = Duration::from_millis(5);
const MAX_DELAY: Duration = Duration::from_secs(1000);

/// The state of the task that runs the definition controllers. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct DefinitionControllers {
    activity: Arc<Mutex<TaskState>>,
}

#[derive(Debug, Default)]
struct TaskState {
    is_running: bool,
    /// Whether the task must read the definitions again because of a change.
    has_changed: bool,
}

fn lock(activity: &Mutex<TaskState>) -> MutexGuard<'_, TaskState> {
    activity.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DefinitionControllers {
    /// Returns whether the task updates the definitions after a change, because a webhook rule matches the updates.
    ///
    /// If true, this function also notifies the task of the change and starts the task if it is not running. Without a
    /// Tokio runtime, the result is always false.
    ///
    /// Rule: SCH-20.
    pub(crate) fn write_asynchronously(&self, server: &Arc<Server>) -> bool {
        let definitions = GroupVersionResource {
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            resource: RESOURCE.to_owned(),
        };
        if !server.registry.admission.has_rule_for(Operation::Update, &definitions, "status") {
            return false;
        }
        // Objects may be stored outside a runtime before the server runs.
        let Ok(runtime) = Handle::try_current() else { return false };
        let mut activity = lock(&self.activity);
        activity.has_changed = true;
        if !activity.is_running {
            activity.is_running = true;
            runtime.spawn(run(Arc::clone(server), Arc::clone(&self.activity)));
        }
        true
    }
}

/// Marks the task as stopped when dropped, so that a new task can start even if the runtime cancels this task.
struct TaskGuard {
    activity: Arc<Mutex<TaskState>>,
    is_over: bool,
}

impl TaskGuard {
    /// Ends the task unless there has been a change since it last read the definitions. Returns whether the task ends.
    ///
    /// After the task has ended, the next change starts a new task.
    fn ends(&mut self) -> bool {
        let mut activity = lock(&self.activity);
        if !activity.has_changed {
            activity.is_running = false;
            self.is_over = true;
        }
        self.is_over
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if !self.is_over {
            lock(&self.activity).is_running = false;
        }
    }
}

async fn run(mut server: Arc<Server>, activity: Arc<Mutex<TaskState>>) {
    let mut running = TaskGuard { activity, is_over: false };
    let mut notifications = server.registry.state.storage.subscribe();
    let mut writes = PendingWrites::default();
    loop {
        if *notifications.borrow_and_update() == StorageEvent::Closed {
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
        // A waiting task does not keep the server alive.
        let waiting = Arc::downgrade(&server);
        drop(server);
        tokio::select! {
            changed = notifications.changed() => if changed.is_err() { return },
            () = sleep_until(due) => {}
        }
        let Some(upgraded) = waiting.upgrade() else { return };
        server = upgraded;
    }
}

/// A definition controller.
///
/// In kube-apiserver, the controllers write concurrently. In admit, they write in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Controller {
    Names,
    Establishing,
    Approval,
    Finalizer,
}

impl Controller {
    const ALL: [Self; 4] = [Self::Names, Self::Establishing, Self::Approval, Self::Finalizer];

    /// Returns the definition for the controller's next write; `None` if the controller does not change the definition.
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

/// The failed writes, by definition name and controller.
#[derive(Debug, Default)]
struct PendingWrites {
    failed: HashMap<(String, Controller), FailedWrite>,
}

/// A failed write and its next retry.
#[derive(Debug)]
struct FailedWrite {
    /// The definition at the time of the failure. A change to the definition triggers a retry.
    definition: Arc<Value>,
    times: u32,
    /// The time of the next retry if the definition does not change; `None` if only a change triggers a retry.
    due: Option<Instant>,
}

impl FailedWrite {
    fn waits(&self, definition: &Arc<Value>) -> bool {
        Arc::ptr_eq(&self.definition, definition) && self.due.is_none_or(|due| Instant::now() < due)
    }
}

impl PendingWrites {
    /// Returns the time of the next retry; `None` if no retry is scheduled.
    fn due(&self) -> Option<Instant> {
        self.failed.values().filter_map(|failed| failed.due).min()
    }

    /// Sends requests until no write is due.
    async fn make(&mut self, server: &Arc<Server>) {
        loop {
            let definitions = server.registry.state.storage.list(GROUP, RESOURCE, "");
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

    /// Sends the next request of a controller, if any. Returns whether the definition has changed.
    ///
    /// Source: `sync` of the controllers in apiextensions-apiserver `pkg/controller`.
    /// Rule: SCH-20.
    async fn write(&mut self, server: &Arc<Server>, name: &str, controller: Controller) -> bool {
        let storage = &server.registry.state.storage;
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
        let written = loopback_requests::put(server, path, &next).await;
        let now = storage.get(GROUP, RESOURCE, "", name);
        let has_changed = now.is_none_or(|now| !Arc::ptr_eq(&now, &stored));
        match written {
            Err(status) if status.reason != "Conflict" && status.reason != "NotFound" => {
                let times = self.failed.get(&key).map_or(0, |failed| failed.times);
                let delay = BASE_DELAY.saturating_mul(1 << times.min(18)).min(MAX_DELAY);
                let due = Some(Instant::now() + delay);
                self.failed
                    .insert(key, FailedWrite { definition: stored, times: times.saturating_add(1), due });
            }
            // Changed definitions are processed again anyway.
            _ if has_changed => drop(self.failed.remove(&key)),
            // A webhook undid the write.
            _ => drop(self.failed.insert(key, FailedWrite { definition: stored, times: 0, due: None })),
        }
        has_changed
    }
}
