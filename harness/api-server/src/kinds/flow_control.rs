//! Creates the initial objects of API Priority and Fairness and updates the condition of `FlowSchema`s.
//!
//! admit stores these objects, but does not use them to limit requests.

use kubernetes_types::json::{at, text};
use kubernetes_types::quoting::quote;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::server_writes;
use crate::storage::{Key, ObjectReader as _, Storage};

pub(crate) const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The `PriorityLevelConfiguration`s and `FlowSchema`s of kube-apiserver. `tools/flow_control.sh` records them.
const INITIAL: &str = include_str!("flow-control.json");

/// The field managers of the initial objects (`PRODUCER`) and of their conditions (`CONSUMER`).
///
/// Source: kubernetes `pkg/registry/flowcontrol/rest/storage_flowcontrol.go`; apiserver
/// `pkg/util/flowcontrol/apf_filter.go`.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";

const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The priority levels that exist even if they are not stored.
///
/// Source: apiserver `pkg/util/flowcontrol/apf_controller.go`, `imaginePL`.
const MANDATORY: [&str; 2] = ["catch-all", "exempt"];

/// Returns the initial objects.
pub(crate) fn initial() -> Vec<Value> {
    let objects: Vec<Value> = match serde_json::from_str(INITIAL) {
        Ok(objects) => objects,
        Err(error) => unreachable!("flow-control.json is part of the program: {error}"),
    };
    let create = |object: Value| {
        let mut object = server_writes::made_by(object, PRODUCER);
        if object.get("kind").is_some_and(|kind| kind == "FlowSchema") {
            object = with_condition(&object, &condition(level(&object), true));
        }
        object
    };
    objects.into_iter().map(create).collect()
}

/// Sets the condition `Dangling` of the stored `FlowSchema`s whose condition is outdated.
///
/// Source: apiserver `pkg/util/flowcontrol/apf_controller.go`, `presyncFlowSchemaStatus`.
pub(crate) fn reconcile(storage: &Storage) {
    for stored in storage.list(GROUP, "flowschemas", "") {
        let level = level(&stored);
        let exists = MANDATORY.contains(&level)
            || storage.get(GROUP, "prioritylevelconfigurations", "", level).is_some();
        let wanted = condition(level, exists);
        let conditions = at(&stored, &["status", "conditions"]).as_array().map(Vec::as_slice);
        let known = conditions.unwrap_or_default().iter().find(|known| known["type"] == "Dangling");
        let is_current = known.is_some_and(|known| {
            ["status", "reason", "message"].iter().all(|field| known.get(field) == wanted.get(field))
        });
        if is_current {
            continue;
        }
        let key = Key::cluster_scoped(GROUP, "flowschemas", metadata::text(&stored, "name"));
        // If another write came first, that write also sets the condition.
        let _ = storage.replace(&key, Some(&stored), with_condition(&stored, &wanted));
    }
}

/// Returns the name of the priority level of a `FlowSchema`.
fn level(schema: &Value) -> &str {
    text(schema, &["spec", "priorityLevelConfiguration", "name"])
}

/// Returns the condition of a `FlowSchema` with this priority level.
fn condition(level: &str, exists: bool) -> Value {
    let (status, reason, end) = if exists {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    json!({
        "type": "Dangling",
        "status": status,
        "lastTransitionTime": metadata::now(),
        "reason": reason,
        "message": format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {} {end}",
            quote(level)
        ),
    })
}

fn with_condition(schema: &Value, condition: &Value) -> Value {
    let fields = json!({
        "apiVersion": schema["apiVersion"],
        "kind": schema["kind"],
        "metadata": {"name": metadata::text(schema, "name")},
        "status": {"conditions": [condition]},
    });
    server_writes::applied_to(schema, "status", &fields, CONSUMER)
}
