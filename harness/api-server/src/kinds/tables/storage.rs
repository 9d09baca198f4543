//! Computes the table rows of volumes and storage resources.
//!
//! Source: kubernetes pkg/printers/internalversion/printers.go.

use std::sync::Arc;

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::kinds::common::cells::{
    Context, age_of, amount, created, is_true, items, joined, name, present_or, row,
};

/// Formats access modes with their short names, such as `RWO`.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `GetAccessModesAsString`.
fn access_modes(modes: &[Value]) -> String {
    const NAMES: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let known = NAMES.iter().filter(|(mode, _)| modes.iter().any(|it| it == mode));
    known.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// Returns the name of the storage class of a volume or a claim.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `GetPersistentVolumeClass`.
fn class_of(object: &Value) -> &str {
    let annotation = at(object, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    annotation.as_str().unwrap_or_else(|| text(object, &["spec", "storageClassName"]))
}

fn phase(object: &Value) -> &str {
    let is_deleted = !at(object, &["metadata", "deletionTimestamp"]).is_null();
    if is_deleted { "Terminating" } else { text(object, &["status", "phase"]) }
}

pub(crate) fn volume(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let claim = at(object, &["spec", "claimRef"]);
    let claim = if claim.is_null() {
        String::new()
    } else {
        format!("{}/{}", text(claim, &["namespace"]), text(claim, &["name"]))
    };
    row![
        name(object),
        amount(at(object, &["spec", "capacity", "storage"])),
        access_modes(items(object, &["spec", "accessModes"])),
        text(object, &["spec", "persistentVolumeReclaimPolicy"]),
        phase(object),
        claim,
        class_of(object),
        present_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        text(object, &["status", "reason"]),
        age_of(object, context),
        present_or(object, &["spec", "volumeMode"], "<unset>"),
    ]
}

pub(crate) fn claim(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let volume = text(object, &["spec", "volumeName"]);
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let capacity = amount(at(object, &["status", "capacity", "storage"]));
        (capacity, access_modes(items(object, &["status", "accessModes"])))
    };
    row![
        name(object),
        phase(object),
        volume,
        capacity,
        modes,
        class_of(object),
        present_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        age_of(object, context),
        present_or(object, &["spec", "volumeMode"], "<unset>"),
    ]
}

pub(crate) fn class(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let is_default = !context.default_class.is_empty() && context.default_class == name(object);
    let default = if is_default { " (default)" } else { "" };
    row![
        format!("{}{default}", name(object)),
        text(object, &["provisioner"]),
        present_or(object, &["reclaimPolicy"], "Delete"),
        present_or(object, &["volumeBindingMode"], "Immediate"),
        is_true(object, &["allowVolumeExpansion"]),
        age_of(object, context),
    ]
}

/// Returns the name of the default storage class: the newest class that is marked as the default.
///
/// Source: `getEffectiveDefaultStorageClass`.
/// Rule: TBL-08.
pub(crate) fn default_class(classes: &[Arc<Value>]) -> String {
    let says_so = |class: &&Arc<Value>| {
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|annotation| text(class, &["metadata", "annotations", annotation]) == "true")
    };
    let by_age = |one: &&Arc<Value>, other: &&Arc<Value>| {
        created(one).cmp(created(other)).then_with(|| name(other).cmp(name(one)))
    };
    let youngest = classes.iter().filter(says_so).max_by(by_age);
    youngest.map_or_else(String::new, |class| name(class).to_owned())
}

pub(crate) fn attributes_class(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), text(object, &["driverName"]), age_of(object, context)]
}

pub(crate) fn attachment(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, &["spec", "attacher"]),
        text(object, &["spec", "source", "persistentVolumeName"]),
        text(object, &["spec", "nodeName"]),
        is_true(object, &["status", "attached"]),
        age_of(object, context),
    ]
}

pub(crate) fn csi_node(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), items(object, &["spec", "drivers"]).len(), age_of(object, context)]
}

pub(crate) fn csi_driver(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let truth = |field, default| at(object, &["spec", field]).as_bool().unwrap_or(default);
    let tokens = at(object, &["spec", "tokenRequests"]).as_array();
    let modes = joined(items(object, &["spec", "volumeLifecycleModes"]), &[]);
    row![
        name(object),
        truth("attachRequired", true),
        truth("podInfoOnMount", false),
        truth("storageCapacity", false),
        tokens.map_or_else(|| "<unset>".to_owned(), |tokens| joined(tokens, &["audience"])),
        truth("requiresRepublish", false),
        if modes.is_empty() { "<none>".to_owned() } else { modes },
        age_of(object, context),
    ]
}
