//! Volumes, and what containers mount of them.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::fields::{Errors, Path, flag, get, int, list, set, text, word};
use super::super::formats;
use super::super::storage;
use super::environment::{Into, field_reference, resource_reference};

/// The volumes that are in order, by name.
pub(super) type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// Source: kubernetes pkg/apis/core/validation/validation.go, `fileModeErrorMsg`.
const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// The fields of a volume that say what it is, in the order in which they are looked at.
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

/// Volumes of a Pod with the name `pod`, which is empty in a template. Returns those that are in order: containers may use
/// no other.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateVolumes`.
/// Rule: VLO-09.
pub(super) fn volumes<'a>(
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
    for field in SOURCES {
        let Some(source) = set(volume, field) else { continue };
        if found && field != "emptyDir" {
            // Upstream writes these two otherwise.
            let field = match field {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI",
                field => field,
            };
            errors.forbidden(&path.child(field), "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        of_type(
            errors,
            &path.child(if field == "gcePersistentDisk" { "persistentDisk" } else { field }),
            field,
            source,
        );
        if field == "ephemeral" && !pod.is_empty() && !text(volume, "name").is_empty() {
            let name = text(volume, "name");
            let claim = format!("{pod}-{name}");
            for why in kubernetes_types::names::dns1123_subdomain(&claim) {
                let why = format!("PVC name {}: {why}", kubernetes_types::quoting::quote(&claim));
                errors.invalid_text(&path.child("name"), name, why);
            }
        }
    }
    if !found {
        errors.required(path, "must specify a volume type");
    }
}

fn of_type(errors: &mut Errors, path: &Path<'_>, kind: &str, source: &Value) {
    let mut required = |field: &str| {
        if text(source, field).is_empty() {
            errors.required(&path.child(field), "");
        }
    };
    match kind {
        "emptyDir" => empty_dir(errors, path, source),
        "hostPath" => host_path(errors, path, source),
        "gitRepo" => {
            required("repository");
            formats::descending_path(errors, &path.child("directory"), text(source, "directory"));
        }
        "gcePersistentDisk" => {
            required("pdName");
            partition(errors, path, source);
        }
        "awsElasticBlockStore" => {
            required("volumeID");
            partition(errors, path, source);
        }
        "secret" => {
            required("secretName");
            files(errors, path, source);
        }
        "configMap" => {
            required("name");
            files(errors, path, source);
        }
        "nfs" => nfs(errors, path, source),
        "persistentVolumeClaim" => required("claimName"),
        "downwardAPI" => {
            mode(errors, &path.child("defaultMode"), int(source, "defaultMode"));
            for item in list(source, "items") {
                pod_file(errors, path, item);
            }
        }
        "projected" => projected(errors, path, source),
        "csi" => {
            storage::driver_name(errors, &path.child("driver"), text(source, "driver"));
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
                    storage::template_metadata(errors, &path.child("metadata"), metadata);
                    storage::claim_spec(errors, &path.child("spec"), get(template, "spec"));
                }
            }
        }
        "image" => {
            required("reference");
            pull_policy(errors, &path.child("pullPolicy"), text(source, "pullPolicy"));
        }
        _ => {}
    }
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePullPolicy`.
pub(super) fn pull_policy(errors: &mut Errors, path: &Path<'_>, policy: &str) {
    errors.required_one_of(path, policy, &["Always", "IfNotPresent", "Never"]);
}

fn empty_dir(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    let limit = set(source, "sizeLimit").and_then(kubernetes_types::quantity::of);
    if limit.is_some_and(|limit| limit.sign() < 0) {
        errors.forbidden(&path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
    }
}

pub(in super::super) fn host_path(errors: &mut Errors, path: &Path<'_>, source: &Value) {
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

pub(in super::super) fn nfs(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    if text(source, "server").is_empty() {
        errors.required(&path.child("server"), "");
    }
    let target = text(source, "path");
    if target.is_empty() {
        errors.required(&path.child("path"), "");
    }
    if !target.starts_with('/') {
        errors.invalid_text(&path.child("path"), target, "must be an absolute path");
    }
}

fn partition(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    if let Some(partition) = int(source, "partition").filter(|partition| !(0..=255).contains(partition)) {
        errors.invalid(&path.child("partition"), partition, formats::between(1, 255));
    }
}

fn mode(errors: &mut Errors, path: &Path<'_>, mode: Option<i64>) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(path, mode, MODE);
    }
}

fn files(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    mode(errors, &path.child("defaultMode"), int(source, "defaultMode"));
    let path = path.child("items");
    for (index, item) in list(source, "items").iter().enumerate() {
        key_to_path(errors, &path.index(index), item);
    }
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateKeyToPath`.
fn key_to_path(errors: &mut Errors, path: &Path<'_>, item: &Value) {
    for field in ["key", "path"] {
        if text(item, field).is_empty() {
            errors.required(&path.child(field), "");
        }
    }
    formats::unreserved_path(errors, &path.child("path"), text(item, "path"));
    mode(errors, &path.child("mode"), int(item, "mode"));
}

/// A file with a field of the Pod.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateDownwardAPIVolumeFile`.
fn pod_file(errors: &mut Errors, path: &Path<'_>, item: &Value) {
    let target = text(item, "path");
    if target.is_empty() {
        errors.required(&path.child("path"), "");
    }
    formats::unreserved_path(errors, &path.child("path"), target);
    match (set(item, "fieldRef"), set(item, "resourceFieldRef")) {
        (Some(field), resource) => {
            field_reference(errors, &path.child("fieldRef"), field, Into::File);
            if resource.is_some() {
                let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid_text(path, "resource", why);
            }
        }
        (None, Some(resource)) => {
            resource_reference(errors, &path.child("resourceFieldRef"), resource, Into::File);
        }
        (None, None) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    mode(errors, &path.child("mode"), int(item, "mode"));
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateProjectionSources`.
fn projected<'a>(errors: &mut Errors, path: &Path<'_>, source: &'a Value) {
    const CONFLICT: &str = "conflicting duplicate paths";
    mode(errors, &path.child("defaultMode"), int(source, "defaultMode"));
    let mut paths: HashSet<&'a str> = HashSet::new();
    let sources = path.child("sources");
    for (index, source) in list(source, "sources").iter().enumerate() {
        let item = sources.index(index);
        let mut count = 0;
        for field in ["secret", "configMap"] {
            let Some(projection) = set(source, field) else { continue };
            count += 1;
            let (of_field, name) = (item.child(field), text(projection, "name"));
            if name.is_empty() {
                errors.required(&of_field.child("name"), "");
            }
            let items = of_field.child("items");
            for (index, item) in list(projection, "items").iter().enumerate() {
                key_to_path(errors, &items.index(index), item);
                let target = text(item, "path");
                if !target.is_empty() && !paths.insert(target) {
                    errors.invalid_text(path, name, CONFLICT);
                }
            }
        }
        if let Some(projection) = set(source, "downwardAPI") {
            count += 1;
            for file in list(projection, "items") {
                pod_file(errors, &item.child("downwardAPI"), file);
                let target = text(file, "path");
                if !target.is_empty() && !paths.insert(target) {
                    errors.invalid_text(path, target, CONFLICT);
                }
            }
        }
        if let Some(token) = set(source, "serviceAccountToken") {
            count += 1;
            let of_token = item.child("serviceAccountToken");
            let seconds = of_token.child("expirationSeconds");
            match int(token, "expirationSeconds") {
                None => errors.required(&seconds, ""),
                Some(found) if found < 600 => {
                    errors.invalid(&seconds, found, "may not specify a duration less than 10 minutes");
                }
                Some(found) if found > 1 << 32 => {
                    errors.invalid(&seconds, found, "may not specify a duration larger than 2^32 seconds");
                }
                Some(_) => {}
            }
            let target = text(token, "path");
            if target.is_empty() {
                errors.required(&path.child("path"), "");
            } else {
                formats::unreserved_path(errors, &path.child("path"), target);
            }
        }
        // Those are not looked at any closer.
        count += ["clusterTrustBundle", "podCertificate"]
            .into_iter()
            .filter(|field| set(source, field).is_some())
            .count();
        if count > 1 {
            errors.forbidden(&item, "may not specify more than 1 volume type per source");
        }
    }
}

/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateVolumeMounts`.
/// Rule: VLO-09.
pub(super) fn mounts(errors: &mut Errors, path: &Path<'_>, container: &Value, volumes: &Volumes<'_>) {
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

/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateVolumeDevices`.
pub(super) fn devices(errors: &mut Errors, path: &Path<'_>, container: &Value, volumes: &Volumes<'_>) {
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
