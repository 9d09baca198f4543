//! Implements `StorageVersionMigration` objects.

use kubernetes_types::json::at;
use kubernetes_types::schema::Type;
use kubernetes_types::{json, names};
use serde_json::Value;

use crate::kinds::common::cells::{Context, items, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::conditions;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, list, text};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `StorageVersionMigration` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storagemigration.k8s.io",
    resource: "storageversionmigrations",
    kind: "StorageVersionMigration",
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    validate,
    validate_subresources: &[("status", validate_status)],
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Validates a `StorageVersionMigration`.
///
/// Source: kubernetes pkg/apis/storagemigration/validation/validation.go, `ValidateStorageVersionMigration` and
/// `ValidateStorageVersionMigrationUpdate`.
/// Rule: VLO-48.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let (resource_path, resource) = (path.child("resource"), get(spec, "resource"));
    let (name, group) = (text(resource, "resource"), text(resource, "group"));
    let name_path = resource_path.child("resource");
    let mut joined = |path: &Path<'_>, found: &str, wrong: Vec<String>| {
        if !wrong.is_empty() {
            errors.invalid_text(path, found, wrong.join(","));
        }
    };
    if !name.is_empty() {
        joined(&name_path, name, names::dns1035_label(name));
    }
    if !group.is_empty() {
        joined(&resource_path.child("group"), group, names::dns1123_subdomain(group));
    }
    if name.is_empty() {
        errors.required(&name_path, "resource is required to be set");
    }
    if change.is_some_and(|change| !change.is_same(&["spec"])) {
        errors.invalid_structure(&path, "storagemigration.StorageVersionMigrationSpec", spec, IMMUTABLE);
    }
}

/// Validates the status of a `StorageVersionMigration`.
///
/// Source: kubernetes pkg/apis/storagemigration/validation/validation.go,
/// `ValidateStorageVersionMigrationStatusUpdate`.
/// Rule: VLO-48.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    let (path, status) = (Path::new("status"), get(object, "status"));
    let version_path = path.child("resourceVersion");
    let version = text(status, "resourceVersion");
    if !version.is_empty() && !is_version(version) {
        let why = format!("resource version is not well formed: {version}");
        errors.invalid_text(&version_path, version, why);
    }
    conditions::of_status(errors, object);
    let before = text(get(change.old, "status"), "resourceVersion");
    if !before.is_empty() && before != version {
        errors.invalid_text(&version_path, version, IMMUTABLE);
    }
    let is_true = |object: &Value, kind: &str| {
        let mut all = list(get(object, "status"), "conditions").iter();
        all.find(|condition| text(condition, "type") == kind)
            .is_some_and(|condition| text(condition, "status") == "True")
    };
    let shown = Type::for_name("storagemigration/v1.StorageVersionMigrationStatus")
        .member("conditions")
        .in_order(get(status, "conditions"));
    let conditions_path = path.child("conditions");
    let (succeeded, failed) = ("Succeeded", "Failed");
    if is_true(object, succeeded) && is_true(object, failed) {
        let why = "Both success and failed conditions cannot be true at the same time";
        errors.invalid(&conditions_path, &shown, why);
    }
    for (kind, name) in [(succeeded, "Success"), (failed, "Failed")] {
        if is_true(change.old, kind) && !is_true(object, kind) {
            let why = format!("{name} condition cannot be set to false once it is true");
            errors.invalid(&conditions_path, &shown, why);
        }
    }
}

/// Returns whether a string is a well-formed resource version.
///
/// Source: apimachinery pkg/util/resourceversion/resourceversion.go, `isWellFormed`.
fn is_version(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(crate) fn cells(object: &Value, _: &Context<'_>) -> Vec<Value> {
    let resource = at(object, &["spec", "resource"]);
    let dot = if json::text(resource, &["group"]).is_empty() { "" } else { "." };
    let conditions = items(object, &["status", "conditions"]).iter().rev();
    let mut kinds = conditions
        .filter(|condition| json::text(condition, &["status"]) == "True")
        .map(|condition| json::text(condition, &["type"]));
    let status = kinds.find(|kind| ["Running", "Failed", "Succeeded"].contains(kind));
    row![
        name(object),
        format!("{}{dot}{}", json::text(resource, &["resource"]), json::text(resource, &["group"])),
        status.unwrap_or("Unknown"),
    ]
}
