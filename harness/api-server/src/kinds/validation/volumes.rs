//! Validates `PersistentVolume`s.

use kubernetes_types::equality::same;
use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{
    Errors, IMMUTABLE, NOT_POSITIVE, Path, entries, get, list, map, set, text, texts, word,
};
use crate::kinds::common::volume_sources::Owner;
use crate::kinds::common::{formats, volume_sources};
use crate::kinds::validation::pod::{scheduling, volumes};
use crate::kinds::validation::storage;
use crate::kinds::validation::storage::ACCESS_MODES;

/// The volume source fields, in the order in which they are validated.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// The sources that do not support the mount options annotation.
const SOURCES_WITHOUT_MOUNT_OPTIONS: [&str; 9] =
    ["hostPath", "flocker", "fc", "flexVolume", "portworxVolume", "scaleIO", "local", "storageos", "csi"];

/// Validates the inline volume of a volume attachment.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePersistentVolumeSpec`.
/// Rule: VLO-42.
pub(crate) fn inline(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const FORBIDDEN: &str = "may not be specified in the context of inline volumes";
    if set(spec, "claimRef").is_some() {
        errors.forbidden(&path.child("claimRef"), FORBIDDEN);
    }
    if map(spec, "capacity").is_some_and(|capacity| !capacity.is_empty()) {
        errors.forbidden(&path.child("capacity"), FORBIDDEN);
    }
    if set(spec, "csi").is_none() {
        errors.required(&path.child("csi"), "has to be specified in the context of inline volumes");
    }
    access_modes(errors, &path.child("accessModes"), spec);
    if !["", "Retain"].contains(&text(spec, "persistentVolumeReclaimPolicy")) {
        let why = "may only be Retain in the context of inline volumes";
        errors.forbidden(&path.child("persistentVolumeReclaimPolicy"), why);
    }
    if set(spec, "nodeAffinity").is_some() {
        errors.forbidden(&path.child("nodeAffinity"), FORBIDDEN);
    }
    sources(errors, path, spec, "", false);
    recycled_root(errors, path, spec);
    if !text(spec, "storageClassName").is_empty() {
        errors.forbidden(&path.child("storageClassName"), FORBIDDEN);
    }
    if word(spec, "volumeMode").is_some_and(|mode| mode != "Filesystem") {
        let why = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.forbidden(&path.child("volumeMode"), why);
    }
    attributes_class(errors, path, spec);
}

fn recycled_root(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let is_recycled = text(spec, "persistentVolumeReclaimPolicy") == "Recycle";
    if is_recycled && set(spec, "hostPath").is_some_and(|source| is_root(text(source, "path"))) {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(&path.child("persistentVolumeReclaimPolicy"), why);
    }
}

fn attributes_class(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let Some(class) = word(spec, "volumeAttributesClassName") else { return };
    let class_path = path.child("volumeAttributesClassName");
    if class.is_empty() {
        errors.required(&class_path, "an empty string is disallowed");
    } else {
        formats::dns_subdomain(errors, &class_path, class);
    }
    if set(spec, "csi").is_none() {
        errors.required(&path.child("csi"), "has to be specified when using volumeAttributesClassName");
    }
}

/// Validates a `PersistentVolume`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePersistentVolume` and
/// `ValidatePersistentVolumeUpdate`; `pkg/volume/validation/pv_validation.go`.
/// Rule: VLO-33.
pub(crate) fn volume(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const MOUNT_OPTIONS_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    access_modes(errors, &path.child("accessModes"), spec);
    capacity(errors, &path.child("capacity"), spec);
    let policies = ["Delete", "Recycle", "Retain"];
    let policy = word(spec, "persistentVolumeReclaimPolicy").filter(|policy| !policy.is_empty());
    errors.one_of(&path.child("persistentVolumeReclaimPolicy"), policy, &policies);
    let affinity = set(spec, "nodeAffinity");
    if let Some(affinity) = affinity {
        let required_path = path.child("nodeAffinity");
        let required_path = required_path.child("required");
        match set(affinity, "required") {
            Some(required) => scheduling::node_selector(errors, &required_path, required),
            None => errors.required(&required_path, "must specify required node constraints"),
        }
    }
    let name = metadata::text(object, "name");
    sources(errors, &path, spec, name, affinity.is_some());
    recycled_root(errors, &path, spec);
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        formats::dns_subdomain(errors, &path.child("storageClassName"), class);
    }
    errors.one_of(&path.child("volumeMode"), word(spec, "volumeMode"), &["Block", "Filesystem"]);
    attributes_class(errors, &path, spec);
    let metadata = get(object, "metadata");
    let has_options = get(metadata, "annotations").get(MOUNT_OPTIONS_ANNOTATION).is_some();
    let may_have =
        SOURCES.iter().any(|kind| !SOURCES_WITHOUT_MOUNT_OPTIONS.contains(kind) && set(spec, kind).is_some());
    if has_options && !may_have {
        let path = Path::new("metadata");
        let path = path.child("annotations");
        errors.forbidden(
            &path.child(MOUNT_OPTIONS_ANNOTATION),
            "may not specify mount options for this volume type",
        );
    }
    if let Some(change) = change {
        changed(errors, &path, spec, change);
    }
}

/// Returns whether a path is equivalent to `/`.
fn is_root(path: &str) -> bool {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let depth =
        parts.fold(0_usize, |depth, part| if part == ".." { depth.saturating_sub(1) } else { depth + 1 });
    path.starts_with('/') && depth == 0
}

fn access_modes(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    if list(spec, "accessModes").is_empty() {
        errors.required(path, "");
    }
    let (mut alone, mut shared) = (false, false);
    for mode in texts(spec, "accessModes") {
        errors.one_of(path, Some(mode), &ACCESS_MODES);
        alone |= mode == "ReadWriteOncePod";
        shared |= mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode);
    }
    if alone && shared {
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

fn capacity(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let count = map(spec, "capacity").map_or(0, serde_json::Map::len);
    if count == 0 {
        errors.required(path, "");
    }
    if set(get(spec, "capacity"), "storage").is_none() || count > 1 {
        let shown = match count {
            0 if get(spec, "capacity").is_null() => "null".to_owned(),
            _ => shown_amounts(get(spec, "capacity")),
        };
        let error = kubernetes_types::status::FieldError::not_supported(
            path.to_string(),
            shown,
            kubernetes_types::quoting::quote("storage"),
        );
        errors.push(error);
    }
    for (name, value) in entries(spec, "capacity") {
        let Some(value) = quantity::from_value(value) else { continue };
        let path = path.key(name);
        if value.value() < 0 {
            errors.invalid(&path, value.value(), "must be a valid resource quantity");
        }
        if value <= Quantity::ZERO {
            errors.invalid_text(&path, &value.to_string(), NOT_POSITIVE);
        }
    }
}

/// Formats quantities as JSON.
fn shown_amounts(amounts: &Value) -> String {
    let shown: serde_json::Map<String, Value> = amounts
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let value = quantity::from_value(value).map_or(Value::Null, |value| value.to_string().into());
            (name.clone(), value)
        })
        .collect();
    kubernetes_types::quoting::encode(&Value::Object(shown))
}

fn sources(errors: &mut Errors, path: &Path<'_>, spec: &Value, name: &str, has_affinity: bool) {
    let owner = Owner::PersistentVolume { name };
    let mut found = 0;
    for kind in SOURCES {
        let Some(source) = set(spec, kind) else { continue };
        if found > 0 && kind != "flexVolume" {
            let name = if kind == "cephfs" { "cephFS" } else { kind };
            errors.forbidden(&path.child(name), "may not specify more than 1 volume type");
            continue;
        }
        found += 1;
        let path_of_kind = path.child(volume_sources::member(kind));
        match kind {
            "hostPath" => volumes::host_path(errors, &path_of_kind, source),
            "local" => {
                let target = text(source, "path");
                if target.is_empty() {
                    errors.required(&path_of_kind.child("path"), "");
                } else {
                    formats::no_backsteps(errors, &path_of_kind.child("path"), target);
                }
                if !has_affinity {
                    let why = "Local volume requires node affinity";
                    errors.required(&path.child("nodeAffinity"), why);
                }
            }
            "csi" => csi(errors, &path_of_kind, source),
            _ => volume_sources::of_kind(errors, &path_of_kind, kind, source, owner),
        }
    }
    if found == 0 {
        errors.required(path, "must specify a volume type");
    }
}

fn csi(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    storage::driver_name(errors, &path.child("driver"), text(source, "driver"));
    if text(source, "volumeHandle").is_empty() {
        errors.required(&path.child("volumeHandle"), "");
    }
    let fields = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    for field in fields {
        let Some(reference) = set(source, field) else { continue };
        let path = path.child(field);
        let of = |field| text(reference, field);
        if of("name").is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            formats::dns_subdomain(errors, &path.child("name"), of("name"));
        }
        if of("namespace").is_empty() {
            errors.required(&path.child("namespace"), "");
        } else {
            formats::dns_label(errors, &path.child("namespace"), of("namespace"));
        }
    }
}

/// Validates the immutable fields in an update of a volume.
fn changed(errors: &mut Errors, path: &Path<'_>, spec: &Value, change: Change<'_>) {
    let before = get(change.old, "spec");
    if change.is_same(&["spec"]) {
        return;
    }
    let mut now = spec.clone();
    let secret = |spec| set(get(spec, "csi"), "controllerExpandSecretRef");
    // That secret may be set later.
    if set(before, "csi").is_some() && secret(before).is_none() {
        let csi = now.get_mut("csi").and_then(Value::as_object_mut);
        csi.and_then(|members| members.remove("controllerExpandSecretRef"));
    }
    let of = change.of.member("spec");
    if !SOURCES.iter().all(|kind| same(get(&now, kind), get(before, kind), of.member(kind))) {
        let path = path.child("persistentvolumesource");
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.forbidden_change(&path, why, "core.PersistentVolumeSource", (before, &now));
    }
    if !change.is_same(&["spec", "volumeMode"]) {
        errors.invalid_text(&Path::new("volumeMode"), text(spec, "volumeMode"), IMMUTABLE);
    }
    let class = |spec| set(spec, "volumeAttributesClassName").is_some();
    if class(before) && !class(spec) {
        let why = "update from non-nil value to nil is forbidden";
        errors.forbidden(&path.child("volumeAttributesClassName"), why);
    }
}
