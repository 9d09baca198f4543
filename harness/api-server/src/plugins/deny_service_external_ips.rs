//! `DenyServiceExternalIPs`: denies new external IPs of Services.

use std::collections::BTreeSet;

use kubernetes_admission::attributes::Attributes;
use kubernetes_admission::plugin::{Plugin, Remarks};
use kubernetes_types::json::at;
use kubernetes_types::status::Status;
use serde_json::Value;

use super::containers::items;
use super::forbidden;

/// Rejects Services with new external IPs.
///
/// Source: kubernetes plugin/pkg/admission/network/denyserviceexternalips/admission.go.
pub(crate) struct DenyServiceExternalIPs;

impl Plugin for DenyServiceExternalIPs {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    fn validate(&self, attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        let is_service =
            attributes.subresource.is_empty() && attributes.resource.group_resource() == "services";
        let Some(service) = attributes.object.as_ref().filter(|_| is_service && super::is_write(attributes))
        else {
            return Ok(());
        };
        let old: BTreeSet<&str> = attributes.old_object.iter().flat_map(external_addresses).collect();
        if external_addresses(service).all(|address| old.contains(address)) {
            return Ok(());
        }
        Err(forbidden(attributes, "Use of external IPs is denied by admission control"))
    }
}

fn external_addresses(service: &Value) -> impl Iterator<Item = &str> {
    items(at(service, &["spec"]), "externalIPs").filter_map(Value::as_str)
}
