//! Checks preconditions: the `uid` and the `resourceVersion` of the stored object.

use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::apimachinery::options::RequestOptions;
use crate::kinds::discovery::Resource;
use crate::kinds::discovery::custom;
use crate::kinds::strategy;
use crate::storage::Key;

const OBJECT_MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Checks the preconditions in delete options. Reports a failure with the message of kube-apiserver's cache.
///
/// Source: apiserver pkg/registry/rest/delete.go, `BeforeDelete`.
pub(crate) fn check_delete(
    stored: &Value,
    options: &Value,
    group: &str,
    kind: &str,
    name: &str,
) -> Result<(), Box<Status>> {
    let wanted = |field: &str| options.pointer(&format!("/preconditions/{field}")).and_then(Value::as_str);
    let (uid, resource_version) = (metadata::text(stored, "uid"), metadata::text(stored, "resourceVersion"));
    let why = match (wanted("uid"), wanted("resourceVersion")) {
        (Some(wanted), _) if wanted != uid => format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        ),
        (_, Some(wanted)) if wanted != resource_version => format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({resource_version}). The object might have been modified"
        ),
        _ => return Ok(()),
    };
    Err(Box::new(Status::conflict(group, kind, name, &why)))
}

/// Checks the preconditions for kinds whose storage checks preconditions itself; `failed` is the prefix of the message.
///
/// Source: kubernetes pkg/registry/core/namespace/storage/storage.go and apiextensions-apiserver
/// pkg/registry/customresourcedefinition/etcd.go, `Delete`.
pub(crate) fn check_delete_by_kind(
    stored: &Value,
    options: &Value,
    resource: &Resource,
    failed: &str,
) -> Result<(), Box<Status>> {
    for (field, shown) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let wanted = options.pointer(&format!("/preconditions/{field}")).and_then(Value::as_str);
        let found = metadata::text(stored, field);
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            let why = format!("{failed}: {shown} in precondition: {wanted}, {shown} in object meta: {found}");
            let (gvr, name) = (&resource.gvr, metadata::text(stored, "name"));
            return Err(Box::new(Status::conflict(&gvr.group, &gvr.resource, name, &why)));
        }
    }
    Ok(())
}

/// Checks the preconditions in delete options against the stored object.
pub(crate) fn check_stored(
    stored: &Value,
    options: &RequestOptions,
    resource: &Resource,
    key: &Key,
) -> Result<(), Box<Status>> {
    let wanted =
        |field: &str| options.document.pointer(&format!("/preconditions/{field}")).and_then(Value::as_str);
    check_versions(stored, wanted("uid"), wanted("resourceVersion"), options.dry_run, resource, key)
}

/// Checks that a stored object has the required `uid` and `resourceVersion`.
///
/// Source: apiserver pkg/storage/interfaces.go, `Preconditions.Check`.
pub(crate) fn check_versions(
    stored: &Value,
    uid: Option<&str>,
    resource_version: Option<&str>,
    dry_run: bool,
    resource: &Resource,
    key: &Key,
) -> Result<(), Box<Status>> {
    for (wanted, shown, found) in [
        (uid, "UID", metadata::text(stored, "uid")),
        (resource_version, "ResourceVersion", metadata::text(stored, "resourceVersion")),
    ] {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            return Err(wrong_precondition(resource, key, dry_run, shown, wanted, found));
        }
    }
    Ok(())
}

/// Checks the `resourceVersion` of an update against the stored object. Some resources require it.
///
/// Rule: CFG-09, CHN-03.
pub(crate) fn check_update(
    new: &Value,
    old: &Value,
    resource: &Resource,
    is_scale: bool,
) -> Result<(), Box<Status>> {
    let (group, name) = (&resource.gvr.group, metadata::text(old, "name"));
    let wanted = metadata::text(new, "resourceVersion");
    if wanted.is_empty() || wanted == "0" {
        let is_unconditional = strategy::allows_unconditional_update(resource);
        if is_unconditional || (is_scale && wanted.is_empty()) {
            return Ok(());
        }
        let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(Box::new(Status::invalid(group, &resource.gvr.resource, name, &[error])));
    }
    if wanted.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {}: invalid syntax", Value::from(wanted));
        return Err(Box::new(Status::failure(500, "", message)));
    }
    if wanted == metadata::text(old, "resourceVersion") {
        return Ok(());
    }
    Err(Box::new(Status::conflict(group, &resource.gvr.resource, name, OBJECT_MODIFIED)))
}

/// Builds the 409 for a PUT with a `uid` that differs from that of the stored object, or without a stored object.
pub(crate) fn wrong_uid(
    resource: &Resource,
    key: &Key,
    dry_run: bool,
    wanted: &str,
    found: &str,
) -> Box<Status> {
    wrong_precondition(resource, key, dry_run, "UID", wanted, found)
}

/// Builds the 409 for a precondition that does not hold. A dry run reports the key relative to the storage root.
///
/// Source: apiserver pkg/storage/errors.go, `StorageError`, pkg/storage/interfaces.go, `Preconditions.Check`, and
/// pkg/registry/generic/registry/dryrun.go.
fn wrong_precondition(
    resource: &Resource,
    key: &Key,
    dry_run: bool,
    field: &str,
    wanted: &str,
    found: &str,
) -> Box<Status> {
    let why =
        format!("Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}");
    invalid_object(resource, key, dry_run, &why)
}

/// Returns the prefix of storage keys for resources that are not stored by their own name.
///
/// Source: kubernetes `pkg/kubeapiserver/default_storage_factory_builder.go`, `specialDefaultResourcePrefixes`.
fn storage_prefix(resource: &str) -> Option<&'static str> {
    Some(match resource {
        "replicationcontrollers" => "controllers",
        "endpoints" => "services/endpoints",
        "nodes" => "minions",
        "services" => "services/specs",
        "ingresses.networking.k8s.io" => "ingress",
        _ => return None,
    })
}

/// Builds the 409 for a stored object in the wrong state.
///
/// Source: apiserver pkg/storage/errors.go, `NewInvalidObjError`.
pub(crate) fn invalid_object(resource: &Resource, key: &Key, dry_run: bool, why: &str) -> Box<Status> {
    let gvr = &resource.gvr;
    let root = if dry_run { "" } else { "/registry" };
    let has_group = resource.custom.is_some() || gvr.group == custom::GROUP;
    let group = if has_group { format!("{}/", gvr.group) } else { String::new() };
    let place = storage_prefix(&gvr.group_resource()).unwrap_or(&gvr.resource);
    let namespace = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {root}/{group}{place}/{namespace}{}, ResourceVersion: 0, \
         AdditionalErrorMsg: {why}",
        key.name
    );
    Box::new(Status::conflict(&gvr.group, &gvr.resource, &key.name, &why))
}
