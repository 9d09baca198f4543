//! Validates updates of `pods/resize`.

use std::collections::BTreeSet;

use kubernetes_types::equality::same;
use kubernetes_types::json::{keep, set as put};
use kubernetes_types::schema::Type;
use serde_json::{Map, Value};

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, set, text};
use crate::kinds::core::pod::pod_resources::quality_of_service;
use crate::kinds::core::pod::validation::annotations::MIRROR;
use crate::kinds::core::pod::validation::whole;

const MUTABLE: &str = "only cpu and memory resources are mutable";

/// Validates an update of `pods/resize`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodResize`.
/// Rule: VLO-18.
pub(crate) fn of_resize(errors: &mut Errors, pod: &Value, change: Change<'_>) {
    let old_pod = change.old;
    let nothing = Path::new("[]");
    for (is_unsupported, which) in [
        (set(get(get(old_pod, "metadata"), "annotations"), MIRROR).is_some(), "static"),
        (text(get(get(old_pod, "spec"), "os"), "name") == "windows", "windows"),
    ] {
        if is_unsupported {
            errors.forbidden(&nothing, format!("{which} pods cannot be resized"));
            return;
        }
    }
    whole(errors, pod);
    let path = Path::new("spec");
    let (new, old, of) = (get(pod, "spec"), get(old_pod, "spec"), change.of.member("spec"));
    let class = Some(text(get(old_pod, "status"), "qosClass")).filter(|class| !class.is_empty());
    if class.unwrap_or_else(|| quality_of_service(old_pod)) != quality_of_service(pod) {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.invalid_text(&path, text(get(pod, "status"), "qosClass"), why);
    }
    let statuses = list(get(old_pod, "status"), "containerStatuses");
    let running = statuses.iter().find(|status| set(get(status, "state"), "running").is_some());
    if running.is_some_and(|status| set(status, "resources").is_none()) {
        errors.forbidden(&path, "Pod running on node without support for resize");
    }
    if [old, new].into_iter().any(has_resources) {
        of_pod_level(errors, &path, new, old, of);
    }
    if !is_in_order(errors, &path, new, old) {
        return;
    }
    for field in ["initContainers", "containers"] {
        let path = path.child(field);
        for (index, (container, before)) in list(new, field).iter().zip(list(old, field)).enumerate() {
            let path = path.index(index);
            let path = path.child("resources");
            for amounts in ["requests", "limits"] {
                if is_removed(get(container, "resources"), get(before, "resources"), amounts) {
                    let why = format!("resource {amounts} cannot be removed");
                    errors.forbidden(&path.child(amounts), why);
                }
            }
        }
    }
    let of_container = of.member("containers").item();
    for (container, before) in list(new, "containers").iter().zip(list(old, "containers")) {
        if !same(&with_old_amounts(container, before), before, of_container) {
            errors.forbidden(&path, MUTABLE);
        }
    }
    let path = path.child("initContainers");
    let containers = list(new, "initContainers").iter().zip(list(old, "initContainers"));
    for (index, (container, before)) in containers.enumerate() {
        if !same(&with_old_amounts(container, before), before, of_container) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.forbidden(&path.index(index), why);
        }
        if !same(container, before, of_container) && text(container, "restartPolicy") != "Always" {
            let policies = list(container, "resizePolicy").iter();
            for _ in policies.filter(|policy| text(policy, "restartPolicy") == "RestartContainer") {
                let why =
                    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                errors.forbidden(&path.index(index), why);
            }
        }
    }
}

fn has_resources(spec: &Value) -> bool {
    let resources = get(spec, "resources");
    ["requests", "limits"].iter().any(|field| !names(resources, field).is_empty())
}

/// Validates a change to the Pod-level resources.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodLevelResourcesResize`.
fn of_pod_level(errors: &mut Errors, path: &Path<'_>, new: &Value, old: &Value, of: Type) {
    let resources = path.child("resources");
    let (given, before) = (set(new, "resources"), set(old, "resources"));
    if let Some(before) = before {
        let Some(given) = given else {
            errors.forbidden(&resources, "pod-level resources cannot be removed");
            return;
        };
        for amounts in ["requests", "limits"] {
            if is_removed(given, before, amounts) {
                let why = format!("pod-level resource {amounts} cannot be removed");
                errors.forbidden(&resources.child(amounts), why);
            }
        }
    }
    let frozen = given.map(|given| with_old_lists(given, before.unwrap_or(&Value::Null)));
    let is_same = match (&frozen, before) {
        (Some(frozen), Some(before)) => same(frozen, before, of.member("resources")),
        (Some(frozen), None) => {
            ["requests", "limits"].iter().all(|field| names(frozen, field).is_empty())
                && list(frozen, "claims").is_empty()
        }
        (None, before) => before.is_none(),
    };
    if !is_same {
        errors.forbidden(path, "only cpu and memory resources are mutable at pod-level");
    }
}

/// Reports containers that are added, removed, renamed, or reordered. Returns true if there are none.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePodResizeContainerOrdering`.
fn is_in_order(errors: &mut Errors, path: &Path<'_>, new: &Value, old: &Value) -> bool {
    let before = errors.len();
    for field in ["containers", "initContainers"] {
        let path = path.child(field);
        if list(new, field).len() != list(old, field).len() {
            errors.forbidden(&path, format!("{field} may not be added or removed on resize"));
            continue;
        }
        for (index, (container, before)) in list(new, field).iter().zip(list(old, field)).enumerate() {
            if text(container, "name") != text(before, "name") {
                let why = format!("{field} may not be renamed or reordered on resize");
                errors.forbidden(&path.index(index).child("name"), why);
            }
        }
    }
    errors.len() == before
}

fn names<'a>(resources: &'a Value, field: &str) -> BTreeSet<&'a str> {
    get(resources, field).as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Returns whether a resize removes requests or limits.
fn is_removed(new: &Value, old: &Value, field: &str) -> bool {
    !names(new, field).is_superset(&names(old, field))
}

/// Returns the container with the old quantities of CPU and memory.
fn with_old_amounts(container: &Value, before: &Value) -> Value {
    let mut container = container.clone();
    let resources = with_old_lists(get(&container, "resources"), get(before, "resources"));
    put(&mut container, &["resources"], resources);
    container
}

/// Returns the resources with the old quantities of CPU and memory.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `dropCPUMemoryUpdates`.
fn with_old_lists(resources: &Value, before: &Value) -> Value {
    let mut resources = if resources.is_object() { resources.clone() } else { Map::new().into() };
    for field in ["requests", "limits"] {
        let mut amounts =
            get(&resources, field).as_object().cloned().map_or_else(|| Map::new().into(), Value::Object);
        for name in ["cpu", "memory"] {
            keep(&mut amounts, get(before, field), name);
        }
        put(&mut resources, &[field], amounts);
    }
    resources
}
