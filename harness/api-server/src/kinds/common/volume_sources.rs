//! Validates the volume sources that Pods and `PersistentVolume`s share: network storage and cloud disks.

use serde_json::Value;

use crate::kinds::common::fields::{Errors, Path, entries, flag, int, list, set, text, texts, word};
use crate::kinds::common::formats;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    Pod,
    /// A `PersistentVolume`; its name is empty for an inline volume.
    PersistentVolume {
        name: &'a str,
    },
}

/// Returns the path segment of a volume source. Upstream uses a different spelling for `gcePersistentDisk`.
pub(crate) fn member(kind: &str) -> &str {
    if kind == "gcePersistentDisk" { "persistentDisk" } else { kind }
}

/// Validates a volume source whose field is `kind`; ignores other kinds.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateVolumeSource` and
/// `ValidatePersistentVolumeSpec`.
/// Rule: VLO-49.
pub(crate) fn of_kind(errors: &mut Errors, path: &Path<'_>, kind: &str, source: &Value, owner: Owner<'_>) {
    match kind {
        "awsElasticBlockStore" => {
            errors.all_required(path, source, &["volumeID"]);
            partition(errors, path, source);
        }
        "azureDisk" => azure_disk(errors, path, source),
        "azureFile" => {
            errors.all_required(path, source, &["secretName", "shareName"]);
            if matches!(owner, Owner::PersistentVolume { .. })
                && word(source, "secretNamespace").is_some_and(str::is_empty)
            {
                errors.required(&path.child("secretNamespace"), "");
            }
        }
        "cephfs" => monitors(errors, path, source),
        "cinder" => {
            errors.all_required(path, source, &["volumeID"]);
            secret(errors, path, source, owner);
        }
        "fc" => fibre_channel(errors, path, source),
        "flexVolume" => flex_volume(errors, path, source),
        "flocker" => flocker(errors, path, source),
        "gcePersistentDisk" => {
            errors.all_required(path, source, &["pdName"]);
            partition(errors, path, source);
        }
        "glusterfs" => {
            errors.all_required(path, source, &["endpoints", "path"]);
            if matches!(owner, Owner::PersistentVolume { .. }) {
                endpoints_namespace(errors, &path.child("endpointsNamespace"), source);
            }
        }
        "iscsi" => iscsi(errors, path, source, owner),
        "nfs" => {
            errors.all_required(path, source, &["server", "path"]);
            let target = text(source, "path");
            if !target.starts_with('/') {
                errors.invalid_text(&path.child("path"), target, "must be an absolute path");
            }
        }
        "photonPersistentDisk" => errors.all_required(path, source, &["pdID"]),
        "portworxVolume" => errors.all_required(path, source, &["volumeID"]),
        "quobyte" => quobyte(errors, path, source),
        "rbd" => {
            monitors(errors, path, source);
            errors.all_required(path, source, &["image"]);
        }
        "scaleIO" => errors.all_required(path, source, &["gateway", "system", "volumeName"]),
        "storageos" => {
            let (name_path, name) = (path.child("volumeName"), text(source, "volumeName"));
            if name.is_empty() {
                errors.required(&name_path, "");
            } else {
                formats::dns_label(errors, &name_path, name);
            }
            let namespace = text(source, "volumeNamespace");
            if !namespace.is_empty() {
                formats::dns_label(errors, &path.child("volumeNamespace"), namespace);
            }
            secret(errors, path, source, owner);
        }
        "vsphereVolume" => errors.all_required(path, source, &["volumePath"]),
        _ => {}
    }
}

fn monitors(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    if list(source, "monitors").is_empty() {
        errors.required(&path.child("monitors"), "");
    }
}

/// Validates a Secret reference. A reference in a Pod does not have a namespace.
fn secret(errors: &mut Errors, path: &Path<'_>, source: &Value, owner: Owner<'_>) {
    let Some(secret) = set(source, "secretRef") else { return };
    let fields: &[&str] = match owner {
        Owner::Pod => &["name"],
        Owner::PersistentVolume { .. } => &["name", "namespace"],
    };
    errors.all_required(&path.child("secretRef"), secret, fields);
}

fn partition(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    if let Some(partition) = int(source, "partition").filter(|partition| !(0..=255).contains(partition)) {
        errors.invalid(&path.child("partition"), partition, formats::between(1, 255));
    }
}

/// Validates an Azure disk.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateAzureDisk`.
fn azure_disk(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    const MANAGED_DISK_FORM: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB_DISK_FORM: &str =
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    errors.all_required(path, source, &["diskName", "diskURI"]);
    errors.one_of(
        &path.child("cachingMode"),
        word(source, "cachingMode"),
        &["None", "ReadOnly", "ReadWrite"],
    );
    let kind = word(source, "kind");
    errors.one_of(&path.child("kind"), kind, &["Dedicated", "Managed", "Shared"]);
    let (prefix, form) = match kind {
        None => return,
        Some("Managed") => ("/subscriptions/", MANAGED_DISK_FORM),
        Some(_) => ("https://", BLOB_DISK_FORM),
    };
    let uri = text(source, "diskURI");
    if !uri.starts_with(prefix) {
        errors.unsupported(&path.child("diskURI"), uri, &[form]);
    }
}

/// Validates a Fibre Channel volume.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateFCVolumeSource`.
fn fibre_channel(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    let (targets_path, lun) = (path.child("targetWWNs"), path.child("lun"));
    let has = |field| !list(source, field).is_empty();
    if !has("targetWWNs") && !has("wwids") {
        errors.required(&targets_path, "must specify either targetWWNs or wwids, but not both");
    }
    if has("targetWWNs") && has("wwids") {
        let targets: Value = texts(source, "targetWWNs").collect();
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&targets_path, kubernetes_types::quoting::encode(&targets), why);
    }
    if !has("targetWWNs") {
        return;
    }
    match int(source, "lun") {
        None => errors.required(&lun, "lun is required if targetWWNs is specified"),
        Some(number) => unit(errors, &lun, number),
    }
}

/// Validates a logical unit number.
fn unit(errors: &mut Errors, path: &Path<'_>, number: i64) {
    if !(0..=255).contains(&number) {
        errors.invalid(path, number, formats::between(0, 255));
    }
}

/// Validates a `FlexVolume`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateFlexVolumeSource`.
fn flex_volume(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    errors.all_required(path, source, &["driver"]);
    let path = path.child("options");
    for (key, _) in entries(source, "options") {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            errors.invalid_text(&path.key(key), key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

/// Validates a Flocker volume.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateFlockerVolumeSource`.
fn flocker(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.required(path, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.invalid_text(path, "resource", why);
    }
    if name.contains('/') {
        errors.invalid_text(&path.child("datasetName"), name, "must not contain '/'");
    }
}

/// Validates the namespace of the Endpoints of a `GlusterFS` volume.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateGlusterfsPersistentVolumeSource`.
fn endpoints_namespace(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    match word(source, "endpointsNamespace") {
        None => {}
        Some("") => {
            let why = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.invalid_text(path, "", why);
        }
        Some(namespace) => formats::dns_label(errors, path, namespace),
    }
}

/// Validates an iSCSI volume.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateISCSIVolumeSource` and
/// `validateISCSIPersistentVolumeSource`.
fn iscsi(errors: &mut Errors, path: &Path<'_>, source: &Value, owner: Owner<'_>) {
    let wrong_kind = match owner {
        Owner::Pod => "must be valid format starting with iqn, eui, or naa",
        Owner::PersistentVolume { .. } => INVALID_NAME,
    };
    errors.all_required(path, source, &["targetPortal"]);
    if let Owner::PersistentVolume { name } = owner {
        let portal = text(source, "targetPortal");
        initiator_length(errors, &path.child("targetportal"), portal, name, source);
    }
    let (name_path, name) = (path.child("iqn"), text(source, "iqn"));
    if name.is_empty() {
        errors.required(&name_path, "");
    } else {
        iscsi_name(errors, &name_path, name, wrong_kind);
    }
    unit(errors, &path.child("lun"), int(source, "lun").unwrap_or(0));
    let secret_path = path.child("secretRef");
    match (set(source, "secretRef"), owner) {
        (None, _) if flag(source, "chapAuthDiscovery") || flag(source, "chapAuthSession") => {
            errors.required(&secret_path, "");
        }
        (Some(secret), Owner::PersistentVolume { .. }) => {
            errors.all_required(&secret_path, secret, &["name"]);
        }
        (None, _) | (Some(_), Owner::Pod) => {}
    }
    if let Some(initiator) = word(source, "initiatorName") {
        iscsi_name(errors, &path.child("initiatorname"), initiator, wrong_kind);
    }
}

/// Reports that a volume name and a portal are too long together. Applies to an iSCSI source with an initiator name.
///
/// The error contains `shown`.
pub(crate) fn initiator_length(
    errors: &mut Errors,
    path: &Path<'_>,
    shown: &str,
    name: &str,
    source: &Value,
) {
    const MAX_NAME_AND_PORTAL_LENGTH: usize = 64;
    let length = name.len() + 1 + text(source, "targetPortal").len();
    if word(source, "initiatorName").is_some() && length > MAX_NAME_AND_PORTAL_LENGTH {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                   iscsi.initiatorName is specified.";
        errors.invalid_text(path, shown, why);
    }
}

const INVALID_NAME: &str = "must be valid format";

fn iscsi_name(errors: &mut Errors, path: &Path<'_>, name: &str, wrong_kind: &str) {
    let is_valid = if name.starts_with("iqn") {
        is_qualified(name)
    } else if let Some(rest) = name.strip_prefix("eui") {
        is_numbered(rest, 16)
    } else if let Some(rest) = name.strip_prefix("naa") {
        is_numbered(rest, 32)
    } else {
        errors.invalid_text(path, name, wrong_kind);
        return;
    };
    if !is_valid {
        errors.invalid_text(path, name, INVALID_NAME);
    }
}

/// Returns whether a string consists of an arbitrary character and `count` letters and digits.
fn is_numbered(rest: &str, count: usize) -> bool {
    let mut all = rest.chars();
    all.next().is_some_and(|first| first != '\n')
        && all.as_str().len() == count
        && all.all(|one| one.is_ascii_alphanumeric())
}

/// Returns whether a string ends in `iqn.YEAR-MONTH.DOMAIN:NAME`.
fn is_qualified(text: &str) -> bool {
    let is_name = |byte: u8| !b",;*&$|\t\n\x0c\r ".contains(&byte);
    let is_domain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    text.match_indices("iqn.").filter_map(|(at, found)| text.as_bytes().get(at + found.len()..)).any(|rest| {
        let Some((date, rest)) = rest.split_first_chunk::<8>() else { return false };
        let is_date = date.iter().enumerate().all(|(at, byte)| match at {
            4 => *byte == b'-',
            7 => *byte == b'.',
            _ => byte.is_ascii_digit(),
        });
        let domain = rest.iter().take_while(|byte| is_domain(**byte)).count();
        let name = rest.get(domain..).and_then(|rest| rest.strip_prefix(b":"));
        is_date
            && domain > 0
            && name.is_some_and(|name| !name.is_empty() && name.iter().all(|byte| is_name(*byte)))
    })
}

/// Validates a Quobyte volume.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateQuobyteVolumeSource`.
fn quobyte(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    const INVALID_REGISTRY: &str = "must be a host:port pair or multiple pairs separated by commas";
    const MAX_TENANT_LENGTH: usize = 64;
    let (registry_path, registry) = (path.child("registry"), text(source, "registry"));
    if registry.is_empty() {
        errors.required(&registry_path, INVALID_REGISTRY);
    } else if text(source, "tenant").len() > MAX_TENANT_LENGTH {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&path.child("tenant"), why);
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.invalid_text(&registry_path, registry, INVALID_REGISTRY);
        }
    }
    errors.all_required(path, source, &["volume"]);
}

/// Returns whether a string is a host and a port.
///
/// Source: Go net/ipsock.go, `SplitHostPort`.
fn is_host_and_port(text: &str) -> bool {
    const BRACKETS: [char; 2] = ['[', ']'];
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']'),
        None => Some(host).filter(|host| !host.contains(':')),
    };
    host.is_some_and(|host| !host.contains(BRACKETS)) && !port.contains(BRACKETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iscsi_names_have_three_forms() {
        let is_valid = |name: &str| {
            let mut errors = Errors::default();
            iscsi_name(&mut errors, &Path::new("iqn"), name, INVALID_NAME);
            errors.len() == 0
        };
        for name in [
            "iqn.2001-04.com.example:storage.disk1",
            "iqniqn.2001-04.a:b",
            "iqn.2001-04.a-b.:b:c",
            "eui.0123456789abcdef",
            "euix0123456789ABCDEF",
            "naa.0123456789abcdef0123456789abcdef",
        ] {
            assert!(is_valid(name), "{name}");
        }
        for name in [
            "iqn.2001-04.com.example",
            "iqn.2001-4.com.example:a",
            "iqn.200104.com.example:ab",
            "iqn.2001-04.:a",
            "iqn.2001-04.a:",
            "iqn.2001-04.a:b c",
            "iqn.2001-04.a_b:c",
            "iqn",
            "eui.0123456789abcde",
            "eui\n0123456789abcdef",
            "naa.0123456789abcdef",
            "disk",
        ] {
            assert!(!is_valid(name), "{name}");
        }
    }

    #[test]
    fn host_requires_a_port() {
        for pair in ["a:1", ":", "a:", "[::1]:80", "[]:1"] {
            assert!(is_host_and_port(pair), "{pair}");
        }
        for pair in ["", "a", "[::1]", "::1:80", "[::1:80", "::1]:80", "[[a]:1", "a:[1", "[a]b:1", "[a]]:1"] {
            assert!(!is_host_and_port(pair), "{pair}");
        }
    }
}
