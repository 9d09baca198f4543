//! Validates Pod updates.

use std::collections::HashMap;

use kubernetes_types::equality::same;
use kubernetes_types::json::{keep, set as put};
use kubernetes_types::quoting::encode;
use kubernetes_types::schema::Type;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text};
use crate::kinds::common::formats;
use crate::kinds::common::internal::Form;
use crate::kinds::core::pod::validation::annotations::{APP_ARMOR_PREFIX, MIRROR};
use crate::kinds::core::pod::validation::{annotations, containers, scheduling, whole};

/// The error message for a change to an immutable field.
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
pub(crate) fn of_object(errors: &mut Errors, pod: &Value, change: Change<'_>) {
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
            containers::image(errors, &path, container);
        }
    }
    if !deadline(errors, &path.child("activeDeadlineSeconds"), new, old) {
        return;
    }
    added_tolerations(errors, &path.child("tolerations"), new, old);
    removed_gates(errors, &path.child("schedulingGates"), new, old);
    if !change.is_same(&["spec"]) {
        let frozen = frozen(errors, new, old, change.of.member("spec"));
        if !same(&frozen, old, change.of.member("spec")) {
            errors.forbidden_change(&path, IMMUTABLE_FIELDS, "core.PodSpec", (old, &frozen));
        }
    }
}

/// Validates a change to `activeDeadlineSeconds`. Returns false if the other fields must not be validated.
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

/// Checks that an update only adds tolerations, and validates the tolerations.
///
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
    scheduling::tolerations(errors, path, list(new, "tolerations"));
}

/// Checks that an update only removes scheduling gates.
///
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
///
/// In a gated Pod, also validates the changes to the node selector and the node affinity.
fn frozen(errors: &mut Errors, new: &Value, old: &Value, of_spec: Type) -> Value {
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
        let of = of_spec.member("affinity").member("nodeAffinity");
        let [after, before] = [new, old].map(|spec| get(get(spec, "affinity"), "nodeAffinity"));
        if !same(after, before, of) {
            affinity_update(errors, after, before, of);
            keep_node_affinity(&mut frozen, new, old);
        }
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

/// Checks that an update of a gated Pod only adds requirements to the required terms of its node affinity.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateNodeAffinityMutation` and
/// `validateNodeSelectorTermHasOnlyAdditions`.
fn affinity_update(errors: &mut Errors, new: &Value, old: &Value, of: Type) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const TERM: &str = "core.NodeSelectorTerm";
    let path = Path::new("spec");
    let path = path.child("affinity");
    let path = path.child("nodeAffinity");
    let path = path.child(REQUIRED);
    let path = path.child("nodeSelectorTerms");
    let terms = |affinity| get(get(affinity, REQUIRED), "nodeSelectorTerms");
    let (after, before) =
        (list(get(new, REQUIRED), "nodeSelectorTerms"), list(get(old, REQUIRED), "nodeSelectorTerms"));
    if !before.is_empty() && after.len() != before.len() {
        let shown = errors.shown(Form::List, TERM, terms(new));
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.invalid(&path, shown, why);
        return;
    }
    let of = of.member(REQUIRED).member("nodeSelectorTerms").item();
    for (index, (after, before)) in after.iter().zip(before).enumerate() {
        let requirements = |term, field| list(term, field);
        let fields = ["matchExpressions", "matchFields"];
        let was_empty = fields.iter().all(|field| requirements(before, field).is_empty());
        let only_adds = fields.iter().all(|field| {
            let (after, before) = (requirements(after, field), requirements(before, field));
            let of = of.member(field).item();
            let is_kept = |(after, before): (&Value, &Value)| same(after, before, of);
            after.len() >= before.len() && after.iter().zip(before).all(is_kept)
        });
        let is_empty = fields.iter().all(|field| requirements(after, field).is_empty());
        if !only_adds || (was_empty && !is_empty) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.invalid_structure(&path.index(index), TERM, after, why);
        }
    }
}

/// Replaces the node affinity in the new spec of a gated Pod with the old node affinity.
fn keep_node_affinity(frozen: &mut Value, new: &Value, old: &Value) {
    let others = ["podAffinity", "podAntiAffinity"];
    let before = get(old, "affinity");
    match set(new, "affinity") {
        Some(affinity) if before.is_null() && others.iter().all(|field| set(affinity, field).is_none()) => {
            keep(frozen, old, "affinity");
        }
        Some(affinity) => {
            let mut affinity = affinity.clone();
            keep(&mut affinity, before, "nodeAffinity");
            put(frozen, &["affinity"], affinity);
        }
        None => {
            put(frozen, &["affinity", "nodeAffinity"], get(before, "nodeAffinity").clone());
        }
    }
}

/// Validates the annotations of a Pod and their changes.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePodSpecificAnnotationUpdates`.
pub(crate) fn of_annotations(errors: &mut Errors, pod: &Value, old: &Value) {
    let path = Path::new("metadata");
    let path = path.child("annotations");
    let of = |pod| get(get(pod, "metadata"), "annotations");
    let (new, before) = (of(pod), of(old));
    for (key, value) in before.as_object().into_iter().flatten() {
        if set(new, key) == Some(value) {
            continue;
        }
        if key.starts_with(APP_ARMOR_PREFIX) {
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
        if key.starts_with(APP_ARMOR_PREFIX) {
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
pub(crate) fn of_ephemeral_containers(errors: &mut Errors, pod: &Value, change: Change<'_>) {
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
