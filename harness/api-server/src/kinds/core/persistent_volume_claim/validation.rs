//! Validates `PersistentVolumeClaim`s.

use kubernetes_types::equality::same;
use kubernetes_types::json::keep;
use kubernetes_types::quantity;
use kubernetes_types::quantity::Quantity;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{
    Errors, IMMUTABLE, NOT_POSITIVE, Path, entries, get, list, set, text, texts, word,
};
use crate::kinds::common::{formats, resources, selectors};

pub(crate) const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Validates the metadata in a claim template.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateTemplateObjectMeta`.
pub(crate) fn template_metadata(errors: &mut Errors, path: &Path<'_>, metadata: &Value) {
    formats::annotations(errors, &path.child("annotations"), get(metadata, "annotations"));
    formats::labels(errors, &path.child("labels"), get(metadata, "labels"));
    // The names of the other fields, and their spelling in messages.
    for (field, shown) in [
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("selfLink", "selfLink"),
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
        ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
        ("managedFields", "managedFields"),
    ] {
        let is_pointer = field == "deletionGracePeriodSeconds";
        let is_zero = |found: &Value| *found == "" || (*found == 0 && !is_pointer);
        if set(metadata, field).is_some_and(|found| !is_zero(found)) {
            errors.forbidden(&path.child(shown), "cannot be set");
        }
    }
}

/// Validates the spec of a claim.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePersistentVolumeClaimSpec`.
/// Rule: VLO-19.
pub(crate) fn claim_spec(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let modes_path = path.child("accessModes");
    if list(spec, "accessModes").is_empty() {
        errors.required(&modes_path, "at least 1 access mode is required");
    }
    selectors::label_selector(errors, &path.child("selector"), get(spec, "selector"));
    for mode in texts(spec, "accessModes") {
        errors.one_of(&modes_path, Some(mode), &ACCESS_MODES);
    }
    let has = |alone: bool| {
        texts(spec, "accessModes")
            .any(|mode| ACCESS_MODES.contains(&mode) && (mode == "ReadWriteOncePod") == alone)
    };
    if has(true) && has(false) {
        errors.forbidden(&modes_path, "may not use ReadWriteOncePod with other access modes");
    }
    let of_resources = path.child("resources");
    let size_path = of_resources.key("storage");
    match set(get(get(spec, "resources"), "requests"), "storage").map(quantity::from_value) {
        None => errors.required(&size_path, ""),
        Some(Some(size)) if size <= Quantity::ZERO => {
            errors.invalid_text(&size_path, &size.to_string(), NOT_POSITIVE);
        }
        Some(Some(size)) => resources::amount(errors, &size_path, "storage", &size),
        // The quantity has too many digits to be compared.
        Some(None) => {}
    }
    let mut class = |field: &str| {
        if let Some(name) = word(spec, field).filter(|name| !name.is_empty()) {
            formats::dns_subdomain(errors, &path.child(field), name);
        }
    };
    class("storageClassName");
    errors.one_of(&path.child("volumeMode"), word(spec, "volumeMode"), &["Block", "Filesystem"]);
    for field in ["dataSource", "dataSourceRef"] {
        if let Some(source) = set(spec, field) {
            data_source(errors, &path.child(field), source);
        }
    }
    if let Some(name) = word(spec, "volumeAttributesClassName").filter(|name| !name.is_empty()) {
        formats::dns_subdomain(errors, &path.child("volumeAttributesClassName"), name);
    }
}

/// Validates the data source of a claim.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateDataSource` and `validateDataSourceRef`.
fn data_source(errors: &mut Errors, path: &Path<'_>, source: &Value) {
    let of = |field| text(source, field);
    for field in ["name", "kind"] {
        if of(field).is_empty() {
            errors.required(&path.child(field), "");
        }
    }
    let group = of("apiGroup");
    if group.is_empty() {
        if of("kind") != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.invalid_text(path, of("kind"), why);
        }
    } else {
        formats::dns_subdomain(errors, &path.child("apiGroup"), group);
    }
    if !of("namespace").is_empty() {
        formats::dns_label(errors, &path.child("namespace"), of("namespace"));
    }
}

/// Validates the immutable fields in an update of a claim.
fn unchanged(errors: &mut Errors, claim: &Value, new: &Value, old: &Value, change: Change<'_>) {
    const IMMUTABLE_FIELDS: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    let (mut before, mut now) = (old.clone(), new.clone());
    if text(old, "volumeName").is_empty() {
        keep(&mut before, new, "volumeName");
    }
    if is_class_set_later(claim, change.old) {
        keep(&mut now, old, "storageClassName");
    }
    if text(get(claim, "status"), "phase") == "Bound" {
        keep(&mut now, old, "volumeAttributesClassName");
        if let Some(requests) = now.pointer_mut("/resources/requests") {
            keep(requests, get(get(old, "resources"), "requests"), "storage");
        }
    }
    if !same(&now, &before, change.of.member("spec")) {
        let path = Path::new("spec");
        errors.forbidden_change(&path, IMMUTABLE_FIELDS, "core.PersistentVolumeClaimSpec", (&before, &now));
    }
}

/// The annotation that contained the storage class of a claim before `storageClassName` existed.
///
/// Source: api core/v1/types.go, `BetaStorageClassAnnotation`.
const BETA_STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

fn class_annotation(claim: &Value) -> Option<&str> {
    word(get(get(claim, "metadata"), "annotations"), BETA_STORAGE_CLASS_ANNOTATION)
}

/// Returns whether an update sets the class of a claim that had a class only in an annotation or did not have a class.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateStorageClassUpgradeFromAnnotation` and
/// `validateStorageClassUpgradeFromNil`.
fn is_class_set_later(claim: &Value, old: &Value) -> bool {
    let class = |claim| set(get(claim, "spec"), "storageClassName").and_then(Value::as_str);
    class(old).is_none()
        && class(claim).is_some_and(|class| class_annotation(old).is_none_or(|before| before == class))
}

/// Checks that an update keeps the annotation with the class, unless the update moves the class to the field.
fn class_annotation_unchanged(errors: &mut Errors, claim: &Value, old: &Value) {
    let (now, before) = (class_annotation(claim), class_annotation(old));
    let is_moved =
        before.is_some() && is_class_set_later(claim, old) && now.is_none_or(|now| Some(now) == before);
    if !is_moved && now.unwrap_or_default() != before.unwrap_or_default() {
        let path = Path::new("metadata");
        let path = path.child("annotations");
        let path = path.child(BETA_STORAGE_CLASS_ANNOTATION);
        errors.invalid_text(&path, now.unwrap_or_default(), IMMUTABLE);
    }
}

/// Checks that an update does not remove the `VolumeAttributesClass` that is applied to the volume of a claim.
fn attributes_class_kept(errors: &mut Errors, claim: &Value, old: &Value, change: Change<'_>) {
    if change.is_same(&["spec", "volumeAttributesClassName"])
        || set(get(old, "status"), "currentVolumeAttributesClassName").is_none()
    {
        return;
    }
    let to = match word(get(claim, "spec"), "volumeAttributesClassName") {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let why = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
    errors.forbidden(&Path::new("spec").child("volumeAttributesClassName"), why);
}

/// Validates a `PersistentVolumeClaim`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePersistentVolumeClaim` and
/// `ValidatePersistentVolumeClaimUpdate`.
/// Rule: VLO-19.
pub(crate) fn validate(errors: &mut Errors, claim: &Value, change: Option<Change<'_>>) {
    claim_spec(errors, &Path::new("spec"), get(claim, "spec"));
    let Some(change) = change else { return };
    let (new, old) = (get(claim, "spec"), get(change.old, "spec"));
    class_annotation_unchanged(errors, claim, change.old);
    if !change.is_same(&["spec"]) {
        unchanged(errors, claim, new, old, change);
    }
    let size = |owner: &Value, field: &str| {
        set(get(owner, field), "storage").and_then(quantity::from_value).unwrap_or(Quantity::ZERO)
    };
    let requested = |spec: &Value| size(get(spec, "resources"), "requests");
    let least = size(get(change.old, "status"), "capacity");
    if requested(new) < requested(old) && requested(new) <= least {
        let path = Path::new("spec");
        let path = path.child("resources");
        let path = path.child("requests");
        errors.forbidden(&path.child("storage"), "field can not be less than status.capacity");
    }
    if !change.is_same(&["spec", "volumeMode"]) {
        errors.invalid_text(&Path::new("volumeMode"), text(new, "volumeMode"), IMMUTABLE);
    }
    attributes_class_kept(errors, claim, change.old, change);
}

/// Validates an update of the status of a claim.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePersistentVolumeClaimStatusUpdate`.
/// Rule: VLO-19.
pub(crate) fn validate_status(errors: &mut Errors, claim: &Value, _: Change<'_>) {
    const RESIZE_STATUSES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let (path, status) = (Path::new("status"), get(claim, "status"));
    let of_capacity = path.child("capacity");
    for (name, amount) in entries(status, "capacity") {
        is_basic_quantity(errors, &of_capacity.key(name), amount);
    }
    let of_statuses = path.child("allocatedResourceStatuses");
    for (name, resize) in entries(status, "allocatedResourceStatuses") {
        is_claim_resource(errors, &of_statuses, name);
        if !resize.as_str().is_some_and(|resize| RESIZE_STATUSES.contains(&resize)) {
            errors.unsupported(&of_statuses, name, &RESIZE_STATUSES);
        }
    }
    let of_resources = path.child("allocatedResources");
    for (name, amount) in entries(status, "allocatedResources") {
        let path = of_resources.key(name);
        if is_claim_resource(errors, &of_resources, name) && is_basic_quantity(errors, &path, amount) {
            formats::quantity_not_negative(errors, &path, amount);
        }
    }
}

/// Validates a quantity that must not be negative. Returns whether it is valid.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateBasicResource`.
fn is_basic_quantity(errors: &mut Errors, path: &Path<'_>, amount: &Value) -> bool {
    let value = quantity::from_value(amount).map_or(0, |amount| amount.value());
    if value < 0 {
        errors.invalid(path, value, "must be a valid resource quantity");
    }
    value >= 0
}

/// Validates the name of a resource in the status of a claim. Returns whether it is valid.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePersistentVolumeClaimResourceKey`.
fn is_claim_resource(errors: &mut Errors, path: &Path<'_>, name: &str) -> bool {
    let before = errors.len();
    formats::qualified_name(errors, path, name);
    if errors.len() == before && resources::is_native(name) && name != "storage" {
        errors.unsupported(path, name, &["storage"]);
    }
    errors.len() == before
}
