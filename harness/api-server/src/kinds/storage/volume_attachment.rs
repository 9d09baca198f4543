//! Implements `VolumeAttachment` objects.

use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use kubernetes_types::{json, names};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, is_true, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{resource_list, with};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, map, set, text, word};
use crate::kinds::common::{formats, volume_defaults};
use crate::kinds::core::persistent_volume;
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `VolumeAttachment` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattachments",
    kind: "VolumeAttachment",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    validate,
    validate_subresources: &[("status", |errors, object, change| validate(errors, object, Some(change)))],
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Sets the defaults of a `VolumeAttachment`.
///
/// Source: kubernetes `pkg/apis/storage/v1/zz_generated.defaults.go`, `SetObjectDefaults_VolumeAttachment`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "source", |source| {
            with(source, "inlineVolumeSpec", |volume| {
                resource_list(volume, "capacity");
                volume_defaults::persistent_source(volume);
            });
        });
    });
}

/// Validates a volume attachment.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateVolumeAttachment` and
/// `ValidateVolumeAttachmentUpdate`.
/// Rule: VLO-42.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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
        (Some(inline), None) => {
            persistent_volume::inline(errors, &source_path.child("inlineVolumeSpec"), inline);
        }
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

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        json::text(object, &["spec", "attacher"]),
        json::text(object, &["spec", "source", "persistentVolumeName"]),
        json::text(object, &["spec", "nodeName"]),
        is_true(object, &["status", "attached"]),
        age_of(object, context),
    ]
}
