//! Validation of Pod updates.

use std::collections::HashMap;

use kubernetes_types::equality::same;
use kubernetes_types::json::keep;
use kubernetes_types::quoting::encode;
use serde_json::Value;

use super::super::fields::{Errors, Path, get, int, list, set, text};
use super::super::{Change, formats};
use super::{MIRROR, annotations, whole};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The message for a change of an immutable field.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `updatablePodSpecFields`.
const IMMUTABLE_FIELDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                      existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                      previously negative)";

/// Validates an update of a Pod, not of a subresource.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodUpdate`.
/// Rule: VLO-18.
pub(in super::super) fn of_object(errors: &mut Errors, pod: &Value, change: Change<'_>) {
    whole(errors, pod);
    of_annotations(errors, pod, change.old);
    let path = Path::new("spec");
    let (new, old) = (get(pod, "spec"), get(change.old, "spec"));
    for field in ["containers", "initContainers"] {
        let path = path.child(field);
        if list(new, field).len() != list(old, field).len() {
            errors.forbidden(&path, "pod updates may not add or remove containers");
            return;
        }
        for (index, container) in list(new, field).iter().enumerate() {
            let path = path.index(index);
            if text(container, "image").is_empty() {
                errors.required(&path.child("image"), "");
            }
            super::containers::image(errors, &path, container);
        }
    }
    if !deadline(errors, &path.child("activeDeadlineSeconds"), new, old) {
        return;
    }
    added_tolerations(errors, &path.child("tolerations"), new, old);
    removed_gates(errors, &path.child("schedulingGates"), new, old);
    if !change.is_same(&["spec"]) {
        let frozen = frozen(errors, new, old);
        if !same(&frozen, old, change.of.member("spec")) {
            errors.forbidden_change(&path, IMMUTABLE_FIELDS, "core.PodSpec", (old, &frozen));
        }
    }
}

/// Validates a change of `activeDeadlineSeconds`. Returns whether validation continues.
fn deadline(errors: &mut Errors, path: &Path<'_>, new: &Value, old: &Value) -> bool {
    let of = |spec| int(spec, "activeDeadlineSeconds");
    let most = i64::from(i32::MAX);
    match (of(new), of(old)) {
        (Some(new), _) if !(0..=most).contains(&new) => {
            errors.invalid(path, new, formats::between(0, most));
            false
        }
        (Some(new), Some(old)) if old < new => {
            errors.invalid(path, new, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            errors.invalid(path, "null", "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateOnlyAddedTolerations`.
fn added_tolerations(errors: &mut Errors, path: &Path<'_>, new: &Value, old: &Value) {
    let key = |toleration: &Value| -> [String; 4] {
        ["key", "operator", "value", "effect"].map(|field| text(toleration, field).to_owned())
    };
    let kept: std::collections::HashSet<[String; 4]> = list(new, "tolerations").iter().map(key).collect();
    if list(old, "tolerations").iter().any(|toleration| !kept.contains(&key(toleration))) {
        errors.forbidden(path, "existing toleration can not be modified except its tolerationSeconds");
        return;
    }
    super::scheduling::tolerations(errors, path, list(new, "tolerations"));
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateOnlyDeletedSchedulingGates`.
fn removed_gates(errors: &mut Errors, path: &Path<'_>, new: &Value, old: &Value) {
    let before: std::collections::HashSet<&str> =
        list(old, "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    for (index, gate) in list(new, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !before.contains(name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&path.index(index).child("name"), why);
        }
    }
}

/// Returns the new spec with the old values of the mutable fields.
fn frozen(errors: &mut Errors, new: &Value, old: &Value) -> Value {
    let mut frozen = new.clone();
    let mut keep = |field: &str| keep(&mut frozen, old, field);
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(field);
    }
    let of = |spec| int(spec, "terminationGracePeriodSeconds");
    if of(old).is_some_and(|seconds| seconds < 0) && of(new) == Some(1) {
        keep("terminationGracePeriodSeconds");
    }
    if !list(old, "schedulingGates").is_empty() {
        let (before, now) = (get(old, "nodeSelector"), get(new, "nodeSelector"));
        let mut labels = before.as_object().into_iter().flatten();
        if labels.any(|(key, value)| now.get(key) != Some(value)) {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            let path = Path::new("spec");
            errors.invalid(&path.child("nodeSelector"), encode(now), why);
        }
        keep("nodeSelector");
        // The node affinity may also change.
        keep("affinity");
    }
    for field in ["containers", "initContainers"] {
        let containers = frozen.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(list(old, field)) {
            if let (Some(container), Some(image)) = (container.as_object_mut(), before.get("image")) {
                container.insert("image".to_owned(), image.clone());
            }
        }
    }
    frozen
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodSpecificAnnotationUpdates`.
pub(super) fn of_annotations(errors: &mut Errors, pod: &Value, old: &Value) {
    let path = Path::new("metadata");
    let path = path.child("annotations");
    let of = |pod| get(get(pod, "metadata"), "annotations");
    let (new, before) = (of(pod), of(old));
    for (key, value) in before.as_object().into_iter().flatten() {
        if set(new, key) == Some(value) {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&path.key(key), "may not remove or update AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&path.key(key), "may not remove or update mirror pod annotation");
        }
    }
    for (key, _) in new.as_object().into_iter().flatten() {
        if set(before, key).is_some() {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&path.key(key), "may not add AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&path.key(key), "may not add mirror pod annotation");
        }
    }
    annotations(errors, &path, get(pod, "metadata"), get(pod, "spec"));
}

/// Validates an update of `pods/ephemeralcontainers`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodEphemeralContainersUpdate`.
/// Rule: VLO-18.
pub(in super::super) fn of_ephemeral_containers(errors: &mut Errors, pod: &Value, change: Change<'_>) {
    if set(get(get(change.old, "metadata"), "annotations"), MIRROR).is_some() {
        errors.forbidden(&Path::new("[]"), "static pods do not support ephemeral containers");
        return;
    }
    whole(errors, pod);
    of_annotations(errors, pod, change.old);
    let (new, old) = (get(pod, "spec"), get(change.old, "spec"));
    let path = Path::new("spec");
    let path = path.child("ephemeralContainers");
    let now: HashMap<&str, &Value> = list(new, "ephemeralContainers")
        .iter()
        .map(|container| (text(container, "name"), container))
        .collect();
    let of = change.of.member("spec").member("ephemeralContainers").item();
    for before in list(old, "ephemeralContainers") {
        let name = text(before, "name");
        let quoted = kubernetes_types::quoting::quote(name);
        match now.get(name) {
            None => {
                let why = format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.forbidden(&path, why);
            }
            Some(container) if !same(container, before, of) => {
                let why = format!("existing ephemeral containers {quoted} may not be changed");
                errors.forbidden_change(&path, &why, "core.EphemeralContainer", (before, container));
            }
            Some(_) => {}
        }
    }
}
