//! Implements Services.

pub(crate) mod allocation;
pub(crate) mod columns;
pub(crate) mod defaults;
pub(crate) mod reading;
pub(crate) mod status;
pub(crate) mod strategy;
pub(crate) mod validation;
pub(crate) mod warnings;

use kubernetes_types::names;
use serde_json::Value;

use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::service;
use crate::kinds::kind::Kind;

/// The behavior of Services.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "services",
    kind: "Service",
    set_defaults: Some(service::defaults::set_defaults),
    validate_name: |name, _| names::dns1123_label(name),
    returns_deleted_object: true,
    is_created_by_update: true,
    prepare_update: service::strategy::drop_type_dependent_fields,
    validate: service::validation::service,
    validate_subresources: &[("status", service::status::validate_status)],
    warn,
    warn_status: service::warnings::balancer,
    cells: Some(service::columns::cells),
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"]),
    ..Kind::PLAIN
};

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    service::warnings::service(warnings, object);
}
