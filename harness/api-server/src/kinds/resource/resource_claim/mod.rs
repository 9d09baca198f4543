//! Implements `ResourceClaim` objects.

pub(crate) mod status;

use std::collections::HashSet;
use std::sync::Arc;

use kubernetes_types::json::at;
use kubernetes_types::status::{FieldError, Unsupported};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, items, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{each, with};
use crate::kinds::common::disabled_fields::{Path, drop_all};
use crate::kinds::common::fields;
use crate::kinds::common::fields::{Errors, IMMUTABLE, flag, get, list, text};
use crate::kinds::kind::{Kind, StatusKeeps};
use crate::kinds::resource::defaults::{claim_spec, tolerations};
use crate::kinds::resource::{devices, resource_claim};

/// The behavior of `ResourceClaim` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "resourceclaims",
    kind: "ResourceClaim",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    status_keeps: StatusKeeps::Metadata,
    has_status_table: false,
    prepare_status: drop_deallocated_devices,
    drop_disabled_fields: drop_of_claim,
    validate: |errors, object, change| {
        let result = validate_claim(errors, object, change);
        errors.note(result);
    },
    validate_subresources: &[("status", resource_claim::status::validate_status)],
    cells: Some(cells),
    admin_access,
    ..Kind::PLAIN
};

/// Sets the defaults of a `ResourceClaim`.
///
/// Source: kubernetes `pkg/apis/resource/v1/zz_generated.defaults.go`, `SetObjectDefaults_ResourceClaim`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", claim_spec);
    with(object, "status", |status| {
        with(status, "allocation", |allocation| {
            with(allocation, "devices", |devices| each(devices, "results", tolerations));
        });
    });
}

/// The `ResourceClaim` fields that belong to the feature gate `DRADerivedAttributes`.
pub(crate) const OF_CLAIMS: &[Path] = &[
    &["devices", "requests", "*", "exactly", "derivedAttributes"],
    &["devices", "requests", "*", "firstAvailable", "*", "derivedAttributes"],
];

/// Removes the disabled fields from a `ResourceClaim`.
///
/// Source: kubernetes pkg/api/resourceclaimspec/util.go, `DropDisabledFields`;
/// pkg/registry/resource/resourceclaim/strategy.go, `dropDisabledFields`.
pub(crate) fn drop_of_claim(object: &mut Value) {
    drop_all(object.get_mut("spec"), OF_CLAIMS);
    let results = &["allocation", "devices", "results", "*", "skipNodeOperations"];
    drop_all(object.get_mut("status"), &[results]);
}

/// Removes the status of devices that are no longer allocated.
///
/// Source: kubernetes pkg/registry/resource/resourceclaim/strategy.go, `dropDeallocatedStatusDevices`.
/// Rule: VLO-47.
pub(crate) fn drop_deallocated_devices(claim: &mut Value, old: &Value) {
    let allocated = |claim: &Value| -> HashSet<[String; 4]> {
        let results = claim.pointer("/status/allocation/devices/results").and_then(Value::as_array);
        let id = |result| resource_claim::status::device_id(result).map(str::to_owned);
        results.into_iter().flatten().map(id).collect()
    };
    let (before, now) = (allocated(old), allocated(claim));
    let Some(status) = claim.get_mut("status").and_then(Value::as_object_mut) else { return };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else { return };
    devices.retain(|device| {
        let id = resource_claim::status::device_id(device).map(str::to_owned);
        !before.contains(&id) || now.contains(&id)
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

/// Validates a `ResourceClaim`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateResourceClaim` and
/// `ValidateResourceClaimUpdate`; `pkg/apis/resource/v1/zz_generated.validations.go`.
/// Rule: VLO-45.
///
/// # Errors
/// Returns an error for a construct that admit cannot validate as kube-apiserver does.
pub(crate) fn validate_claim(
    errors: &mut Errors,
    object: &Value,
    change: Option<Change<'_>>,
) -> Result<(), Unsupported> {
    let path = fields::Path::new("spec");
    match change {
        None => devices::claim_spec(errors, &path, get(object, "spec")),
        Some(change) => {
            if !change.is_same(&["spec"]) {
                errors.generated(FieldError::invalid(path.to_string(), "null", IMMUTABLE));
            }
            Ok(())
        }
    }
}

/// Rejects admin access in a new claim or its status if the namespace does not allow admin access.
///
/// Source: kubernetes pkg/registry/resource/utils.go, `AuthorizedForAdmin` and `AuthorizedForAdminStatus`.
/// Rule: VLO-45.
pub(crate) fn admin_access(
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    let results = |object| first_admin(resource_claim::status::results(get(object, "status")).iter());
    match (subresource, old) {
        ("", None) => admin_access_of(object, get(object, "spec"), namespace),
        ("status", Some(old)) if results(old).is_none() => {
            let index = results(object)?;
            forbidden_admin(object, "status.allocation.devices.results", index, namespace)
        }
        _ => None,
    }
}

pub(crate) fn admin_access_of(
    object: &Value,
    claim: &Value,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    let requests = list(get(claim, "devices"), "requests").iter();
    let index = first_admin(requests.map(|request| get(request, "exactly")))?;
    forbidden_admin(object, "spec.devices.requests", index, namespace)
}

fn first_admin<'a>(mut items: impl Iterator<Item = &'a Value>) -> Option<usize> {
    items.position(|item| flag(item, "adminAccess"))
}

fn forbidden_admin(
    object: &Value,
    list: &str,
    index: usize,
    namespace: &dyn Fn(&str) -> Option<Arc<Value>>,
) -> Option<FieldError> {
    const LABEL: &str = "resource.kubernetes.io/admin-access";
    let namespace = namespace(text(get(object, "metadata"), "namespace"));
    let is_theirs =
        namespace.is_some_and(|found| text(get(get(&found, "metadata"), "labels"), LABEL) == "true");
    let why =
        format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
    (!is_theirs).then(|| FieldError::forbidden(format!("{list}[{index}].adminAccess"), why))
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let is_deleted = !at(object, &["metadata", "deletionTimestamp"]).is_null();
    let is_allocated = !at(object, &["status", "allocation"]).is_null();
    let is_reserved = is_allocated && !items(object, &["status", "reservedFor"]).is_empty();
    let states = [
        (is_deleted, "deleted"),
        (!is_deleted && !is_allocated, "pending"),
        (is_allocated, "allocated"),
        (is_reserved, "reserved"),
    ];
    let states: Vec<&str> = states.into_iter().filter(|(is, _)| *is).map(|(_, state)| state).collect();
    row![name(object), states.join(","), age_of(object, context)]
}
