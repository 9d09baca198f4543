//! Implements Pods.

use crate::kinds::common::addresses;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::fields::{Path, get, list, text};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::{Kind, StatusKeeps};
use serde_json::Value;

/// The behavior of Pods.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "pods",
    kind: "Pod",
    set_defaults: Some(crate::kinds::defaulting::pod::pod),
    returns_deleted_object: true,
    apply_annotations: crate::kinds::strategy::app_armor::apply_app_armor_annotations,
    prepare_create: crate::kinds::strategy::pod::prepare_for_create,
    prepare_status: crate::kinds::strategy::update::keep_in_status_of_pod,
    prepare_subresources: &[
        ("ephemeralcontainers", crate::kinds::strategy::pod::keep_all_but_ephemeral_containers),
        ("resize", crate::kinds::strategy::pod::keep_all_but_resources),
    ],
    drop_disabled_fields: crate::kinds::strategy::disabled_fields::drop_of_pod_object,
    status_keeps: StatusKeeps::Fields(&["ownerReferences", "deletionTimestamp"]),
    reset_fields: &[(
        "status",
        &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
    )],
    validate: validate,
    validate_subresources: &[
        ("status", crate::kinds::validation::pod::status::of_status),
        ("ephemeralcontainers", crate::kinds::validation::pod::update::of_ephemeral_containers),
        ("resize", crate::kinds::validation::pod::resize::of_resize),
    ],
    warn: warn,
    warn_status: warn_status,
    grace_period: Some(crate::kinds::deletion::grace_of_pod),
    cells: Some(crate::kinds::tables::pods::pod),
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
    row_conditions: crate::kinds::tables::pods::conditions,
    ..Kind::COUNTED
};

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    match change {
        None => crate::kinds::validation::pod::new(errors, object),
        Some(change) => crate::kinds::validation::pod::update::of_object(errors, object, change),
    }
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if old.is_none() {
        crate::kinds::common::warnings::named_as_host(warnings, object, "the Pod's hostname");
        crate::kinds::validation::warnings::pod::pod(warnings, object);
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
