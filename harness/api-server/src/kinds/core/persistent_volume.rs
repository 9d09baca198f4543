//! Implements `PersistentVolume` objects.

use kubernetes_types::equality::same;
use kubernetes_types::json::at;
use kubernetes_types::quantity::Quantity;
use kubernetes_types::{json, quantity};
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::common::cells::{Context, age_of, amount, items, name, present_or, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill, fill_pointer, resource_list};
use crate::kinds::common::fields::{
    Errors, IMMUTABLE, NOT_POSITIVE, Path, entries, get, list, map, set, text, texts, word,
};
use crate::kinds::common::volume_sources::Owner;
use crate::kinds::common::warnings::{Warnings, has_annotation};
use crate::kinds::common::{formats, preparation, volume_defaults, volume_sources};
use crate::kinds::core::persistent_volume_claim::validation::ACCESS_MODES;
use crate::kinds::core::persistent_volume_claim::{class_of, phase};
use crate::kinds::core::pod::validation::{scheduling, volumes};
use crate::kinds::core::{persistent_volume_claim, pod};
use crate::kinds::kind::Kind;

/// The behavior of `PersistentVolume` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "persistentvolumes",
    kind: "PersistentVolume",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    prepare_create,
    prepare_status: set_transition_time,
    validate,
    warn: |warnings, object, _| warn_about_volume(warnings, object),
    cells: Some(cells),
    ..Kind::PLAIN
};

const LAST_PHASE_TRANSITION_TIME: &str = "lastPhaseTransitionTime";

fn prepare_create(object: &mut Value) {
    preparation::set_status(object, json!({"phase": "Pending", "lastPhaseTransitionTime": metadata::now()}));
}

/// Sets the time of the last change of the phase.
fn set_transition_time(object: &mut Value, old: &Value) {
    let status = |object: &Value, field: &str| object["status"].get(field).cloned().unwrap_or_default();
    let is_same = |field: &str| status(object, field) == status(old, field);
    let since = status(object, LAST_PHASE_TRANSITION_TIME);
    let kept = if !is_same("phase") && (since.is_null() || is_same(LAST_PHASE_TRANSITION_TIME)) {
        metadata::now().into()
    } else if is_same("phase") && since.is_null() {
        status(old, LAST_PHASE_TRANSITION_TIME)
    } else {
        return;
    };
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        && !kept.is_null()
    {
        status.insert(LAST_PHASE_TRANSITION_TIME.to_owned(), kept);
    }
}

/// Sets the defaults of a `PersistentVolume`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PersistentVolume`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        fill(status, "phase", "Pending");
    }
    if let Some(spec) = ensure(object, "spec") {
        resource_list(spec, "capacity");
        fill(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill_pointer(spec, "volumeMode", "Filesystem");
        volume_defaults::persistent_source(spec);
    }
}

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
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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
    formats::driver_name(errors, &path.child("driver"), text(source, "driver"));
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

/// Warns about a `PersistentVolume`.
///
/// Source: kubernetes pkg/api/persistentvolume/util.go, `GetWarningsForPersistentVolume`.
pub(crate) fn warn_about_volume(warnings: &mut Warnings, object: &Value) {
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
        pod::warnings::node_selector_term(warnings, &path.index(index), term, false);
    }
    for (field, message) in REMOVED.into_iter().filter(|(field, _)| set(spec, field).is_some()) {
        let field = if field == "storageos" { "storageOS" } else { field };
        warnings.push(format!("spec.{field}: {message}"));
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let claim = at(object, &["spec", "claimRef"]);
    let claim = if claim.is_null() {
        String::new()
    } else {
        format!("{}/{}", json::text(claim, &["namespace"]), json::text(claim, &["name"]))
    };
    row![
        name(object),
        amount(at(object, &["spec", "capacity", "storage"])),
        persistent_volume_claim::access_modes(items(object, &["spec", "accessModes"])),
        json::text(object, &["spec", "persistentVolumeReclaimPolicy"]),
        phase(object),
        claim,
        class_of(object),
        present_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        json::text(object, &["status", "reason"]),
        age_of(object, context),
        present_or(object, &["spec", "volumeMode"], "<unset>"),
    ]
}
