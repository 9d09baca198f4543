//! Computes the table rows of Pods.
//!
//! Source: kubernetes pkg/printers/internalversion/printers.go, `printPod`.

use jiff::Timestamp;
use kubernetes_types::json::{at, text};
use serde_json::{Value, json};

use crate::kinds::common::age;
use crate::kinds::common::cells::{Context, age_of, condition, is_true, items, name, number, row, text_or};

/// Returns the row conditions of a finished Pod; `None` for other Pods.
///
/// Rule: TBL-07.
pub(crate) fn conditions(object: &Value) -> Option<Value> {
    let phase = text(object, &["status", "phase"]);
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

/// The number of container restarts and the time of the last restart.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += number(container, &["restartCount"]);
        self.last = self.last.max(age::at(at(container, &["lastState", "terminated", "finishedAt"])));
    }

    fn text(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, age::human(now.duration_since(last)))
            }
            _ => self.count.to_string(),
        }
    }
}

/// The summary of a Pod's containers.
#[derive(Default)]
struct Summary {
    ready: usize,
    reason: String,
    restarts: Restarts,
    /// The restarts of sidecar init containers.
    sidecar_restarts: Restarts,
    is_initializing: bool,
}

impl Summary {
    fn look_at_init_containers(&mut self, pod: &Value) {
        let specs = items(pod, &["spec", "initContainers"]);
        for (index, container) in items(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
            let spec = specs.iter().rev().find(|spec| name_of(spec) == name_of(container));
            let restarts_always = spec.is_some_and(is_sidecar);
            self.restarts.add(container);
            if restarts_always {
                self.sidecar_restarts.add(container);
            }
            let terminated = at(container, &["state", "terminated"]);
            let waiting = text(container, &["state", "waiting", "reason"]);
            if !terminated.is_null() && number(terminated, &["exitCode"]) == 0 {
                continue;
            }
            if restarts_always && is_true(container, &["started"]) {
                self.ready += usize::from(is_true(container, &["ready"]));
                continue;
            }
            self.reason = if !terminated.is_null() {
                format!("Init:{}", end(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", specs.len())
            };
            self.is_initializing = true;
            break;
        }
    }

    fn look_at_containers(&mut self, pod: &Value) {
        self.restarts = self.sidecar_restarts;
        let mut runs = false;
        let mut error = String::new();
        for container in items(pod, &["status", "containerStatuses"]).iter().rev() {
            self.restarts.add(container);
            let terminated = at(container, &["state", "terminated"]);
            let waiting = text(container, &["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if !terminated.is_null() {
                self.reason = end(terminated);
                if number(terminated, &["exitCode"]) != 0 {
                    error.clone_from(&self.reason);
                }
            } else if is_true(container, &["ready"]) && !at(container, &["state", "running"]).is_null() {
                runs = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            let conditions = items(pod, &["status", "conditions"]);
            let is_ready = conditions.iter().any(|condition| {
                text(condition, &["type"]) == "Ready" && text(condition, &["status"]) == "True"
            });
            if runs && is_ready {
                "Running".clone_into(&mut self.reason);
            } else if !error.is_empty() {
                self.reason = error;
            } else if runs {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }
}

fn name_of(container: &Value) -> &str {
    text(container, &["name"])
}

fn is_sidecar(container: &Value) -> bool {
    text(container, &["restartPolicy"]) == "Always"
}

/// Returns the reason, signal, or exit code of a terminated container.
fn end(terminated: &Value) -> String {
    let (reason, signal) = (text(terminated, &["reason"]), number(terminated, &["signal"]));
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", number(terminated, &["exitCode"]))
    }
}

pub(crate) fn pod(pod: &Value, context: &Context<'_>) -> Vec<Value> {
    let phase = text(pod, &["status", "phase"]);
    let conditions = items(pod, &["status", "conditions"]);
    let mut summary =
        Summary { reason: text_or(pod, &["status", "reason"], phase).to_owned(), ..Summary::default() };
    let is_gated = |condition: &Value| {
        text(condition, &["type"]) == "PodScheduled" && text(condition, &["reason"]) == "SchedulingGated"
    };
    if conditions.iter().any(is_gated) {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let sidecars = items(pod, &["spec", "initContainers"]).iter().filter(|container| is_sidecar(container));
    let total = items(pod, &["spec", "containers"]).len() + sidecars.count();
    summary.look_at_init_containers(pod);
    let initialized = condition(conditions, "Initialized");
    if !summary.is_initializing || initialized.is_some_and(|condition| text(condition, &["status"]) == "True")
    {
        summary.look_at_containers(pod);
    }
    if !at(pod, &["metadata", "deletionTimestamp"]).is_null() {
        if text(pod, &["status", "reason"]) == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    let ip = items(pod, &["status", "podIPs"]).first().map_or("", |ip| text(ip, &["ip"]));
    row![
        name(pod),
        format!("{}/{total}", summary.ready),
        summary.reason,
        summary.restarts.text(context.now),
        age_of(pod, context),
        if ip.is_empty() { "<none>" } else { ip },
        text_or(pod, &["spec", "nodeName"], "<none>"),
        text_or(pod, &["status", "nominatedNodeName"], "<none>"),
        readiness_gates(items(pod, &["spec", "readinessGates"]), conditions),
    ]
}

fn readiness_gates(gates: &[Value], conditions: &[Value]) -> String {
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let is_open = |gate: &&Value| {
        let condition = condition(conditions, text(gate, &["conditionType"]));
        condition.is_some_and(|condition| text(condition, &["status"]) == "True")
    };
    format!("{}/{}", gates.iter().filter(is_open).count(), gates.len())
}
