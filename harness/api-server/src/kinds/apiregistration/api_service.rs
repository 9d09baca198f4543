//! Implements `APIService` objects.

use crate::apimachinery::metadata;
use crate::kinds::kind::{Kind, StatusKeeps};
use serde_json::Value;
use serde_json::json;

/// The behavior of `APIService` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apiregistration.k8s.io",
    resource: "apiservices",
    kind: "APIService",
    set_defaults: Some(crate::kinds::defaulting::extensions::api_service),
    validate_name: crate::kinds::object_names::api_service,
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    has_status_table: false,
    prepare_create: set_available,
    validate: crate::kinds::validation::api_services::service,
    validate_subresources: &[("status", crate::kinds::validation::api_services::status)],
    cells: Some(crate::kinds::tables::cluster::api_service),
    columns: Some(|| &crate::kinds::tables::cluster::API_SERVICE_COLUMNS),
    ..Kind::PLAIN
};

/// Source: kube-aggregator pkg/registry/apiservice/strategy.go, `PrepareForCreate`.
fn set_available(object: &mut Value) {
    if object.pointer("/spec/service").is_none() {
        let available = json!({
            "type": "Available", "status": "True", "lastTransitionTime": metadata::now(), "reason": "Local",
            "message": "Local APIServices are always available",
        });
        crate::kinds::strategy::create::set_status(object, json!({"conditions": [available]}));
    }
}
