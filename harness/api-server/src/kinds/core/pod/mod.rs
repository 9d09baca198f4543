//! Implements Pods.

pub(crate) mod app_armor;
pub(crate) mod columns;
pub(crate) mod defaults;
pub(crate) mod deletion;
pub(crate) mod disabled_fields;
pub(crate) mod pod_resources;
pub(crate) mod strategy;
pub(crate) mod validation;
pub(crate) mod volume_warnings;
pub(crate) mod warnings;

use serde_json::Value;

use crate::kinds::common;
use crate::kinds::common::addresses;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, text};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::pod;
use crate::kinds::core::pod::validation::resize;
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of Pods.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "pods",
    kind: "Pod",
    set_defaults: Some(pod::defaults::pod),
    returns_deleted_object: true,
    apply_annotations: app_armor::apply_app_armor_annotations,
    prepare_create: pod::strategy::prepare_for_create,
    prepare_status: pod::strategy::keep_in_status_of_pod,
    prepare_subresources: &[
        ("ephemeralcontainers", pod::strategy::keep_all_but_ephemeral_containers),
        ("resize", pod::strategy::keep_all_but_resources),
    ],
    drop_disabled_fields: disabled_fields::drop_of_pod_object,
    status_keeps: StatusKeeps::Fields(&["ownerReferences", "deletionTimestamp"]),
    reset_fields: &[(
        "status",
        &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
    )],
    validate,
    validate_subresources: &[
        ("status", validation::status::of_status),
        ("ephemeralcontainers", validation::update::of_ephemeral_containers),
        ("resize", resize::of_resize),
    ],
    warn,
    warn_status,
    grace_period: Some(deletion::grace_of_pod),
    cells: Some(pod::columns::pod),
    selectable_fields: Some(&[
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "spec.host",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ]),
    stored_field: |path| (path == "spec.host").then(|| "spec.nodeName".to_owned()),
    row_conditions: pod::columns::conditions,
    ..Kind::COUNTED
};

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    match change {
        None => pod::validation::new(errors, object),
        Some(change) => validation::update::of_object(errors, object, change),
    }
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if old.is_none() {
        common::warnings::named_as_host(warnings, object, "the Pod's hostname");
        pod::warnings::pod(warnings, object);
    }
}

fn warn_status(warnings: &mut Warnings, object: &Value) {
    for field in ["podIPs", "hostIPs"] {
        let path = Path::new("status");
        let path = path.child(field);
        for (index, address) in list(get(object, "status"), field).iter().enumerate() {
            let path = path.index(index);
            addresses::unusual_ip(warnings, &path.child("ip"), text(address, "ip"));
        }
    }
}
