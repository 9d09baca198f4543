//! Implements Services.

use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::Kind;
use kubernetes_types::names;
use serde_json::Value;

/// The behavior of Services.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "services",
    kind: "Service",
    set_defaults: Some(crate::kinds::defaulting::core::service),
    validate_name: |name, _| names::dns1123_label(name),
    returns_deleted_object: true,
    is_created_by_update: true,
    prepare_update: crate::kinds::strategy::service::drop_type_dependent_fields,
    validate: crate::kinds::validation::services::service,
    validate_subresources: &[("status", crate::kinds::validation::statuses::service)],
    warn: warn,
    warn_status: crate::kinds::validation::warnings::balancer,
    cells: Some(crate::kinds::tables::network::service),
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"]),
    ..Kind::PLAIN
};

fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    crate::kinds::validation::warnings::service(warnings, object);
}
