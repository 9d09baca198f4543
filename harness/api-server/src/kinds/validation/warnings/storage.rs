//! Warns about volumes, claims, and node labels.

use kubernetes_types::equality::same;
use kubernetes_types::quantity;
use kubernetes_types::quoting::quote;
use kubernetes_types::schema::Type;
use serde_json::Value;

use crate::kinds::common::fields::{Path, entries, get, list, map, set, text};
use crate::kinds::common::warnings::{Warnings, has_annotation};
use crate::kinds::validation::warnings::pod;

/// Warns about a `PersistentVolume`.
///
/// Source: kubernetes pkg/api/persistentvolume/util.go, `GetWarningsForPersistentVolume`.
pub(crate) fn volume(warnings: &mut Warnings, object: &Value) {
    const ANNOTATIONS: [(&str, &str); 2] = [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];
    const REMOVED: [(&str, &str); 6] = [
        ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    for (name, message) in ANNOTATIONS.into_iter().filter(|(name, _)| has_annotation(object, name)) {
        warnings.push(format!("metadata.annotations[{name}]: {message}"));
    }
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let path = path.child("nodeAffinity");
    let path = path.child("required");
    let path = path.child("nodeSelectorTerms");
    let required = get(get(spec, "nodeAffinity"), "required");
    for (index, term) in list(required, "nodeSelectorTerms").iter().enumerate() {
        pod::node_selector_term(warnings, &path.index(index), term, false);
    }
    for (field, message) in REMOVED.into_iter().filter(|(field, _)| set(spec, field).is_some()) {
        let field = if field == "storageos" { "storageOS" } else { field };
        warnings.push(format!("spec.{field}: {message}"));
    }
}

/// Warns about fractional quantities in the spec of a claim.
///
/// Source: kubernetes pkg/api/persistentvolumeclaim/util.go, `GetWarningsForPersistentVolumeClaimSpec`.
pub(crate) fn claim_spec(warnings: &mut Warnings, path: &Path<'_>, spec: &Value) {
    let resources = path.child("resources");
    for field in ["requests", "limits"] {
        let amounts = get(get(spec, "resources"), field);
        fractional(warnings, &resources.child(field), amounts, "storage");
    }
}

/// Warns about a quantity that is a fractional number of bytes.
pub(crate) fn fractional(warnings: &mut Warnings, path: &Path<'_>, amounts: &Value, name: &str) {
    let amount = set(amounts, name).and_then(quantity::from_value);
    if let Some(amount) = amount.filter(|amount| amount.milli_value() % 1000 != 0) {
        let (path, amount) = (path.key(name), quote(&amount.to_string()));
        warnings.push(format!("{path}: fractional byte value {amount} is invalid, must be an integer"));
    }
}

/// Warns about a `CSIDriver` with token requests that does not set `serviceAccountTokenInSecrets`.
///
/// Source: kubernetes pkg/registry/storage/csidriver/strategy.go.
pub(crate) fn driver(warnings: &mut Warnings, spec: &Value, old: Option<&Value>, of: Type) {
    let requests = list(spec, "tokenRequests");
    let before = |old| get(old, "tokenRequests");
    let was_same = old.is_some_and(|old| same(get(spec, "tokenRequests"), before(old), of));
    if !requests.is_empty() && !was_same && set(spec, "serviceAccountTokenInSecrets").is_none() {
        warnings.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes"
                .to_owned(),
        );
    }
}

/// Warns about deprecated node labels in a `RuntimeClass`.
///
/// Source: kubernetes pkg/api/node/util.go.
pub(crate) fn runtime_class(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    for (label, _) in entries(get(object, "scheduling"), "nodeSelector") {
        if let Some(message) = pod::deprecated_label(label) {
            warnings.push(format!("scheduling.nodeSelector: {message}"));
        }
    }
}

/// Warns about deprecated node labels in a `StorageClass`.
///
/// Source: kubernetes pkg/api/storage/util.go.
pub(crate) fn class(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    let path = Path::new("allowedTopologies");
    for (index, topology) in list(object, "allowedTopologies").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("matchLabelExpressions");
        for (index, expression) in list(topology, "matchLabelExpressions").iter().enumerate() {
            if let Some(message) = pod::deprecated_label(text(expression, "key")) {
                let item = path.index(index);
                warnings.push(format!("{}: {message}", item.child("key")));
            }
        }
    }
}

/// Warns about deprecated node labels in a `CSIStorageCapacity`.
///
/// Source: kubernetes pkg/api/storage/util.go.
pub(crate) fn capacity(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    let (path, topology) = (Path::new("nodeTopology"), get(object, "nodeTopology"));
    pod::node_selector_term(warnings, &path, topology, false);
    let path = path.child("matchLabels");
    for label in map(topology, "matchLabels").into_iter().flatten().map(|(label, _)| label) {
        if let Some(message) = pod::deprecated_label(label) {
            warnings.push(format!("{}: {message}", path.child(label)));
        }
    }
}
