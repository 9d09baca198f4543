//! Validates volume attachments, CSI nodes, and volume attributes classes.

use std::collections::HashSet;

use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, map, set, text, texts, word};
use crate::kinds::common::formats;
use crate::kinds::validation::{storage, volumes};

/// Validates a volume attachment.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateVolumeAttachment` and
/// `ValidateVolumeAttachmentUpdate`.
/// Rule: VLO-42.
pub(crate) fn attachment(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let attacher = text(spec, "attacher");
    let (source_path, source) = (path.child("source"), get(spec, "source"));
    let volume = word(source, "persistentVolumeName");
    let volume_path = source_path.child("persistentVolumeName");
    match (set(source, "inlineVolumeSpec"), volume) {
        (None, None) => errors
            .required(&source_path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
        (Some(_), Some(_)) => errors
            .forbidden(&source_path, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
        (None, Some("")) => errors.required(&volume_path, "must specify non empty persistentVolumeName"),
        (Some(inline), None) => volumes::inline(errors, &source_path.child("inlineVolumeSpec"), inline),
        _ => {}
    }
    formats::dns_subdomain(errors, &path.child("nodeName"), text(spec, "nodeName"));
    status(errors, get(object, "status"));
    if let Some(volume) = volume {
        formats::dns_subdomain(errors, &volume_path, volume);
    }
    if let Some(change) = change
        && !change.is_same(&["spec"])
    {
        errors.invalid(&path, "null", IMMUTABLE);
    }
    generated_for_attacher(errors, &path.child("attacher"), attacher);
}

/// Validates the attacher as upstream's generated validation does.
///
/// Source: api storage/v1/types.go, `Attacher`; apimachinery pkg/api/validate/content/dns.go,
/// `IsDNS1123SubdomainCaseless`.
fn generated_for_attacher(errors: &mut Errors, path: &Path<'_>, attacher: &str) {
    const DRIVER_NAME_MAX_LENGTH: usize = 63;
    const INVALID_SUBDOMAIN: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end \
                         with an alphanumeric character (e.g. 'Example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if attacher.is_empty() {
        errors.required_by_type(path);
        return;
    }
    if attacher.len() > DRIVER_NAME_MAX_LENGTH {
        errors.generated(FieldError::too_long(path.to_string(), DRIVER_NAME_MAX_LENGTH));
    }
    if !names::dns1123_subdomain(&attacher.to_lowercase()).is_empty() {
        errors.generated(FieldError::invalid(path.to_string(), quote(attacher), INVALID_SUBDOMAIN));
    }
}

fn status(errors: &mut Errors, status: &Value) {
    const MAX_ATTACHED_VOLUME_METADATA_SIZE: usize = 256 * 1024;
    const MAX_VOLUME_ERROR_MESSAGE_SIZE: usize = 1024;
    let path = Path::new("status");
    let metadata = map(status, "attachmentMetadata").into_iter().flatten();
    let size: usize = metadata.map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
    if size > MAX_ATTACHED_VOLUME_METADATA_SIZE {
        errors.too_long(&path.child("attachmentMetadata"), MAX_ATTACHED_VOLUME_METADATA_SIZE);
    }
    for field in ["attachError", "detachError"] {
        let (path, error) = (path.child(field), get(status, field));
        if text(error, "message").len() > MAX_VOLUME_ERROR_MESSAGE_SIZE {
            errors.too_long(&path.child("message"), MAX_VOLUME_ERROR_MESSAGE_SIZE);
        }
        if let Some(code) = int(error, "errorCode").filter(|code| *code < 0) {
            errors.invalid(&path.child("errorCode"), code, "must be between 0 and 2147483647, inclusive");
        }
    }
}

/// Validates a `VolumeAttributesClass`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateVolumeAttributesClass` and
/// `ValidateVolumeAttributesClassUpdate`.
/// Rule: VLO-42.
pub(crate) fn attributes_class(errors: &mut Errors, class: &Value, change: Option<Change<'_>>) {
    if let Some(change) = change {
        for field in ["driverName", "parameters"] {
            if !change.is_same(&[field]) {
                errors.forbidden(&Path::new(field), format!("updates to {field} are forbidden."));
            }
        }
    }
    let (path, driver) = (Path::new("driverName"), text(class, "driverName").to_lowercase());
    if driver.is_empty() {
        errors.required(&path, "");
    } else {
        errors.all_invalid(&path, &driver, names::label_key(&driver));
    }
    let parameters = Path::new("parameters");
    storage::parameters(errors, &parameters, class);
    if map(class, "parameters").is_none_or(serde_json::Map::is_empty) {
        errors.required(&parameters, "must contain at least one key/value pair");
    }
}

/// Validates a `CSINode`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateCSINode` and `ValidateCSINodeUpdate`.
/// Rule: VLO-42.
pub(crate) fn node(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const CSI_NODE_ID_MAX_LENGTH: usize = 256;
    let path = Path::new("spec");
    let path = path.child("drivers");
    let drivers = list(get(object, "spec"), "drivers");
    let mut seen = HashSet::new();
    for (index, driver) in drivers.iter().enumerate() {
        let path = path.index(index);
        let name = text(driver, "name");
        storage::driver_name(errors, &path.child("name"), name);
        let (id_path, id) = (path.child("nodeID"), text(driver, "nodeID"));
        if id.is_empty() {
            errors.required(&id_path, "");
        }
        if id.len() > CSI_NODE_ID_MAX_LENGTH {
            errors.invalid_text(&id_path, id, format!("must be {CSI_NODE_ID_MAX_LENGTH} characters or less"));
        }
        let count = int(get(driver, "allocatable"), "count");
        errors.not_negative(&path.child("allocatable").child("count"), count);
        if !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        let mut keys = HashSet::new();
        for key in texts(driver, "topologyKeys") {
            if key.is_empty() {
                errors.required(&path, "");
            }
            if !keys.insert(key) {
                errors.duplicate(&path, key);
            }
            errors.all_invalid(&path, key, names::label_key(key));
        }
    }
    let Some(change) = change else { return };
    for old in list(get(change.old, "spec"), "drivers") {
        for new in drivers.iter().filter(|new| text(new, "name") == text(old, "name")) {
            let keys = |driver| texts(driver, "topologyKeys").collect::<Vec<_>>();
            if text(new, "nodeID") != text(old, "nodeID") || keys(new) != keys(old) {
                let mut driver = new.clone();
                driver.as_object_mut().and_then(|members| members.remove("allocatable"));
                errors.invalid_structure(&path, "storage.CSINodeDriver", &driver, IMMUTABLE);
            }
        }
    }
}
