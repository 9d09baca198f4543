//! Implements `PersistentVolumeClaim` objects.

pub(crate) mod data_sources;
pub(crate) mod validation;

use kubernetes_types::json::{at, text};
use kubernetes_types::quantity;
use kubernetes_types::quoting::quote;
use serde_json::{Value, json};

use crate::kinds::common;
use crate::kinds::common::cells::{Context, age_of, amount, items, name, present_or, row};
use crate::kinds::common::defaults::{ensure, fill, resource_list};
use crate::kinds::common::fields::{Path, get, set};
use crate::kinds::common::volume_defaults::claim_spec;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{disabled_fields, preparation};
use crate::kinds::core::persistent_volume_claim;
use crate::kinds::kind::Kind;

/// The behavior of `PersistentVolumeClaim` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "persistentvolumeclaims",
    kind: "PersistentVolumeClaim",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    prepare_create,
    prepare_update: |object, old| data_sources::normalize_data_sources(object, Some(old)),
    lacks_late_default: |_| true,
    drop_disabled_fields: |object| disabled_fields::drop_all(object.get_mut("status"), &[&["healthStatus"]]),
    validate: persistent_volume_claim::validation::validate,
    validate_subresources: &[("status", persistent_volume_claim::validation::validate_status)],
    warn,
    cells: Some(cells),
    ..Kind::PLAIN
};

fn prepare_create(object: &mut Value) {
    data_sources::normalize_data_sources(object, None);
    // The phase is a default that is set when the claim is read from the storage.
    preparation::set_status(object, json!({}));
}

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    let class = "volume.beta.kubernetes.io/storage-class";
    if common::warnings::has_annotation(object, class) {
        let message = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        warnings.push(format!("metadata.annotations[{class}]: {message}"));
    }
    warn_about_spec(warnings, &Path::new("spec"), get(object, "spec"));
}

/// Sets the defaults of a `PersistentVolumeClaim`.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_PersistentVolumeClaim`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(status) = ensure(object, "status") {
        fill(status, "phase", "Pending");
        resource_list(status, "capacity");
        resource_list(status, "allocatedResources");
    }
    if let Some(spec) = ensure(object, "spec") {
        claim_spec(spec);
    }
}

/// Warns about fractional quantities in the spec of a claim.
///
/// Source: kubernetes pkg/api/persistentvolumeclaim/util.go, `GetWarningsForPersistentVolumeClaimSpec`.
pub(crate) fn warn_about_spec(warnings: &mut Warnings, path: &Path<'_>, spec: &Value) {
    let resources = path.child("resources");
    for field in ["requests", "limits"] {
        let amounts = get(get(spec, "resources"), field);
        fractional(warnings, &resources.child(field), amounts, "storage");
    }
}

/// Warns about a quantity that is a fractional number of bytes.
pub(crate) fn fractional(warnings: &mut Warnings, path: &Path<'_>, amounts: &Value, name: &str) {
    let amount = set(amounts, name).and_then(quantity::from_value);
    if let Some(amount) = amount.filter(|amount| amount.milli_value() % 1000 != 0) {
        let (path, amount) = (path.key(name), quote(&amount.to_string()));
        warnings.push(format!("{path}: fractional byte value {amount} is invalid, must be an integer"));
    }
}

/// Formats access modes with their short names, such as `RWO`.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `GetAccessModesAsString`.
pub(crate) fn access_modes(modes: &[Value]) -> String {
    const NAMES: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let known = NAMES.iter().filter(|(mode, _)| modes.iter().any(|it| it == mode));
    known.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// Returns the name of the storage class of a volume or a claim.
///
/// Source: kubernetes pkg/apis/core/helper/helpers.go, `GetPersistentVolumeClass`.
pub(crate) fn class_of(object: &Value) -> &str {
    let annotation = at(object, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    annotation.as_str().unwrap_or_else(|| text(object, &["spec", "storageClassName"]))
}

pub(crate) fn phase(object: &Value) -> &str {
    let is_deleted = !at(object, &["metadata", "deletionTimestamp"]).is_null();
    if is_deleted { "Terminating" } else { text(object, &["status", "phase"]) }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let volume = text(object, &["spec", "volumeName"]);
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        let capacity = amount(at(object, &["status", "capacity", "storage"]));
        (capacity, access_modes(items(object, &["status", "accessModes"])))
    };
    row![
        name(object),
        phase(object),
        volume,
        capacity,
        modes,
        class_of(object),
        present_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        age_of(object, context),
        present_or(object, &["spec", "volumeMode"], "<unset>"),
    ]
}
