//! Validates CSI drivers, storage capacities, and namespaces.

use std::collections::HashSet;

use kubernetes_types::names;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, set, text, texts, word};
use crate::kinds::common::{formats, selectors};

/// Validates a `CSIDriver`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateCSIDriver` and `ValidateCSIDriverUpdate`.
/// Rule: VLO-38.
pub(crate) fn driver(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    /// The minimum token lifetime in seconds: ten minutes.
    const MIN_EXPIRATION_SECONDS: i64 = 600;
    const MAX_EXPIRATION_SECONDS: i64 = 1 << 32;
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    errors.one_of(&path.child("fsGroupPolicy"), word(spec, "fsGroupPolicy"), &policies);
    let requests = path.child("tokenRequests");
    let mut audiences = HashSet::new();
    for (index, request) in list(spec, "tokenRequests").iter().enumerate() {
        let path = requests.index(index);
        let audience = text(request, "audience");
        if !audiences.insert(audience) {
            errors.duplicate(&path.child("audience"), audience);
            continue;
        }
        let path = path.child("expirationSeconds");
        match int(request, "expirationSeconds") {
            Some(seconds) if seconds < MIN_EXPIRATION_SECONDS => {
                errors.invalid(&path, seconds, "may not specify a duration less than 10 minutes");
            }
            Some(seconds) if seconds > MAX_EXPIRATION_SECONDS => {
                errors.invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds");
            }
            _ => {}
        }
    }
    let modes = path.child("volumeLifecycleModes");
    for mode in texts(spec, "volumeLifecycleModes") {
        errors.one_of(&modes, Some(mode), &["Persistent", "Ephemeral"]);
    }
    let period = int(spec, "nodeAllocatableUpdatePeriodSeconds");
    if let Some(seconds) = period.filter(|seconds| *seconds < 10) {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.invalid(&path, seconds, "must be greater than or equal to 10 seconds");
    }
    if let Some(in_secrets) = set(spec, "serviceAccountTokenInSecrets")
        && list(spec, "tokenRequests").is_empty()
    {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&path.child("serviceAccountTokenInSecrets"), in_secrets, why);
    }
    let Some(change) = change else { return };
    for (field, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        if !change.is_same(&["spec", field]) {
            let value = kubernetes_types::quoting::encode(get(spec, field));
            errors.invalid(&path.child(shown), value, IMMUTABLE);
        }
    }
}

/// Validates a `CSIStorageCapacity`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateCSIStorageCapacity` and
/// `ValidateCSIStorageCapacityUpdate`.
/// Rule: VLO-38.
pub(crate) fn capacity(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    selectors::label_selector(errors, &Path::new("nodeTopology"), get(object, "nodeTopology"));
    let class = text(object, "storageClassName");
    formats::dns_subdomain(errors, &Path::new("storageClassName"), class);
    if let Some(capacity) = set(object, "capacity") {
        formats::quantity_not_negative(errors, &Path::new("capacity"), capacity);
    }
    let Some(change) = change else { return };
    if !change.is_same(&["nodeTopology"]) {
        let shown = selectors::shown(get(object, "nodeTopology"));
        errors.invalid(&Path::new("nodeTopology"), shown, IMMUTABLE);
    }
    if !change.is_same(&["storageClassName"]) {
        errors.invalid_text(&Path::new("storageClassName"), class, IMMUTABLE);
    }
}

/// Validates the finalizers of a namespace. In an update, errors include the index of the finalizer.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNamespace` and
/// `ValidateNamespaceFinalizeUpdate`.
/// Rule: VLO-38.
pub(crate) fn namespace(errors: &mut Errors, object: &Value, is_new: bool) {
    let path = Path::new("spec");
    let path = path.child("finalizers");
    for (index, name) in texts(get(object, "spec"), "finalizers").enumerate() {
        let path = if is_new { path } else { path.index(index) };
        errors.all_invalid(&path, name, names::label_key(name));
        if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid_text(&path, name, why);
        }
    }
}
