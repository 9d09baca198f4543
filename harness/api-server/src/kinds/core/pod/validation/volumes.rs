//! Validates volumes and volume mounts.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, flag, get, list, set, text, word};
use crate::kinds::common::volume_sources::Owner;
use crate::kinds::common::{formats, volume_sources};
use crate::kinds::core::persistent_volume_claim;
use crate::kinds::core::pod::validation::files;

/// The valid volumes, by name.
pub(crate) type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// The volume source fields, in the order in which they are validated.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateVolumeSource`.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Validates the volumes of a Pod. Returns the valid volumes by name.
///
/// `pod` is the name of the Pod; empty for a template.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateVolumes`.
/// Rule: VLO-09.
pub(crate) fn volumes<'a>(
    errors: &mut Errors,
    path: &Path<'_>,
    volumes: &[&'a Value],
    pod: &str,
) -> Volumes<'a> {
    let mut sound = Volumes::new();
    let claims: HashSet<String> = volumes
        .iter()
        .filter(|volume| !pod.is_empty() && set(volume, "ephemeral").is_some())
        .map(|volume| format!("{pod}-{}", text(volume, "name")))
        .collect();
    for (index, volume) in volumes.iter().copied().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        let name = text(volume, "name");
        let before = errors.len();
        source(errors, &path, volume, pod);
        if name.is_empty() {
            errors.required(&name_path, "");
        } else {
            formats::dns_label(errors, &name_path, name);
        }
        if sound.contains_key(name) {
            errors.duplicate(&name_path, name);
        }
        if errors.len() == before {
            sound.insert(name, volume);
        }
        let claim = text(get(volume, "persistentVolumeClaim"), "claimName");
        if claims.contains(claim) {
            let path = path.child("persistentVolumeClaim");
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid_text(&path.child("claimName"), claim, why);
        }
    }
    sound
}

fn source(errors: &mut Errors, path: &Path<'_>, volume: &Value, pod: &str) {
    let mut found = false;
    let (name_path, name) = (path.child("name"), text(volume, "name"));
    for field in SOURCES {
        let Some(source) = set(volume, field) else { continue };
        let is_further = found && field != "emptyDir";
        if is_further {
            // Upstream spells these two fields differently.
            let field = match field {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI",
                field => field,
            };
            errors.forbidden(&path.child(field), "may not specify more than 1 volume type");
        } else {
            found = true;
            of_type(errors, &path.child(volume_sources::member(field)), field, source);
        }
        if field == "iscsi" {
            volume_sources::initiator_length(errors, &name_path, name, name, source);
        }
        if field == "ephemeral" && !is_further && !pod.is_empty() && !name.is_empty() {
            let claim = format!("{pod}-{name}");
            for why in kubernetes_types::names::dns1123_subdomain(&claim) {
                let why = format!("PVC name {}: {why}", kubernetes_types::quoting::quote(&claim));
                errors.invalid_text(&name_path, name, why);
            }
        }
    }
    if !found {
        errors.required(path, "must specify a volume type");
    }
}

fn of_type(errors: &mut Errors, path: &Path<'_>, kind: &str, source: &Value) {
    let mut required = |field: &str| errors.all_required(path, source, &[field]);
    match kind {
        "emptyDir" => empty_dir(errors, path, source),
        "hostPath" => host_path(errors, path, source),
        "gitRepo" => {
            required("repository");
            formats::descending_path(errors, &path.child("directory"), text(source, "directory"));
        }
        "secret" => {
            required("secretName");
            files::of_keys(errors, path, source);
        }
        "configMap" => {
            required("name");
            files::of_keys(errors, path, source);
        }
        "persistentVolumeClaim" => required("claimName"),
        "downwardAPI" => files::of_fields(errors, path, source),
        "projected" => files::projected(errors, path, source),
        "csi" => {
            formats::driver_name(errors, &path.child("driver"), text(source, "driver"));
            if let Some(secret) = set(source, "nodePublishSecretRef") {
                let name = text(secret, "name");
                if name.is_empty() {
                    errors.required(&path.child("nodePublishSecretRef").child("name"), "");
                } else {
                    formats::dns_subdomain(errors, &path.child("name"), name);
                }
            }
        }
        "ephemeral" => {
            let path = path.child("volumeClaimTemplate");
            match set(source, "volumeClaimTemplate") {
                None => errors.required(&path, ""),
                Some(template) => {
                    let metadata = get(template, "metadata");
                    persistent_volume_claim::validation::template_metadata(
                        errors,
                        &path.child("metadata"),
                        metadata,
                    );
                    persistent_volume_claim::validation::claim_spec(
                        errors,
                        &path.child("spec"),
                        get(template, "spec"),
                    );
                }
            }
        }
        "image" => {
            required("reference");
            pull_policy(errors, &path.child("pullPolicy"), text(source, "pullPolicy"));
        }
        _ => volume_sources::of_kind(errors, path, kind, source, Owner::Pod),
    }
}

/// Validates the pull policy of an image.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePullPolicy`.
pub(crate) fn pull_policy(errors: &mut Errors, path: &Path<'_>, policy: &str) {
    errors.required_one_of(path, policy, &["Always", "IfNotPresent", "Never"]);
}

fn empty_dir(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    let limit = set(source, "sizeLimit").and_then(kubernetes_types::quantity::from_value);
    if limit.is_some_and(|limit| limit.sign() < 0) {
        errors.forbidden(&path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
    }
}

pub(crate) fn host_path(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    let target = text(source, "path");
    if target.is_empty() {
        errors.required(&path.child("path"), "");
        return;
    }
    formats::no_backsteps(errors, &path.child("path"), target);
    errors.one_of(&path.child("type"), word(source, "type"), &TYPES);
}

/// Validates the volume mounts of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateVolumeMounts`.
/// Rule: VLO-09.
pub(crate) fn mounts(errors: &mut Errors, path: &Path<'_>, container: &Value, volumes: &Volumes<'_>) {
    let devices = || list(container, "volumeDevices").iter();
    let device_names: HashSet<&str> = devices().map(|device| text(device, "name")).collect();
    let device_paths: HashSet<&str> = devices().map(|device| text(device, "devicePath")).collect();
    let mut seen = HashSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let item = path.index(index);
        let (name_path, mount_path) = (item.child("name"), item.child("mountPath"));
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.required(&name_path, "");
        }
        if !volumes.contains_key(name) {
            errors.not_found(&name_path, name);
        }
        if target.is_empty() {
            errors.required(&mount_path, "");
        }
        if !seen.insert(target) {
            errors.invalid_text(&mount_path, target, "must be unique");
        }
        if device_names.contains(name) {
            errors.invalid_text(&name_path, name, "must not already exist in volumeDevices");
        }
        if device_paths.contains(target) {
            errors.invalid_text(&mount_path, target, "must not already exist as a path in volumeDevices");
        }
        let (below, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !below.is_empty() {
            formats::descending_path(errors, &path.child("subPath"), below);
        }
        if !expression.is_empty() {
            if !below.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                errors.invalid_text(&item.child("subPathExpr"), expression, why);
            }
            formats::descending_path(errors, &path.child("subPathExpr"), expression);
        }
        let propagation = word(mount, "mountPropagation");
        let supported = ["Bidirectional", "HostToContainer", "None"];
        errors.one_of(&path.child("mountPropagation"), propagation, &supported);
        if propagation == Some("Bidirectional") && !flag(get(container, "securityContext"), "privileged") {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.forbidden(&path.child("mountPropagation"), why);
        }
        recursive_read_only(errors, &path.child("recursiveReadOnly"), mount);
    }
}

fn recursive_read_only(errors: &mut Errors, path: &Path<'_>, mount: &Value) {
    let found = word(mount, "recursiveReadOnly");
    if matches!(found, Some("Enabled" | "IfPossible")) {
        if !flag(mount, "readOnly") {
            errors.forbidden(path, "may only be specified when readOnly is true");
        }
        if word(mount, "mountPropagation").is_some_and(|propagation| propagation != "None") {
            errors.forbidden(path, "may only be specified when mountPropagation is None or not specified");
        }
    }
    errors.one_of(path, found, &["Disabled", "Enabled", "IfPossible"]);
}

/// Validates the volume devices of a container.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateVolumeDevices`.
pub(crate) fn devices(errors: &mut Errors, path: &Path<'_>, container: &Value, volumes: &Volumes<'_>) {
    let mounts = || list(container, "volumeMounts").iter();
    let mount_names: HashSet<&str> = mounts().map(|mount| text(mount, "name")).collect();
    let mount_paths: HashSet<&str> = mounts().map(|mount| text(mount, "mountPath")).collect();
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let item = path.index(index);
        let (name_path, device_path) = (item.child("name"), item.child("devicePath"));
        let (name, target) = (text(device, "name"), text(device, "devicePath"));
        let volume = volumes.get(name);
        if name.is_empty() {
            errors.required(&name_path, "");
        }
        if names.contains(name) {
            errors.invalid_text(&name_path, name, "must be unique");
        }
        let is_claim = |volume: &&Value| {
            set(volume, "persistentVolumeClaim").is_some() || set(volume, "ephemeral").is_some()
        };
        match volume {
            None => errors.not_found(&name_path, name),
            Some(volume) if !is_claim(volume) => {
                let why =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid_text(&name_path, name, why);
            }
            Some(_) => {}
        }
        if target.is_empty() {
            errors.required(&device_path, "");
        }
        if paths.contains(target) {
            errors.invalid_text(&device_path, target, "must be unique");
        }
        if formats::has_backsteps(target) {
            errors.invalid_text(&device_path, target, "can not contain backsteps ('..')");
        } else {
            paths.insert(target);
        }
        if mount_names.contains(name) {
            errors.invalid_text(&name_path, name, "must not already exist in volumeMounts");
        }
        if mount_paths.contains(target) {
            errors.invalid_text(&device_path, target, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
