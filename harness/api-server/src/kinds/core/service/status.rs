//! Validates the status of Services.

use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, text, word};
use crate::kinds::common::{addresses, formats};

/// Validates the status of a Service.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateLoadBalancerStatus`.
/// Rule: VLO-39.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    let balancers = |object| list(get(get(object, "status"), "loadBalancer"), "ingress");
    let path = Path::new("status");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    if text(get(object, "spec"), "type") != "LoadBalancer" && !balancers(object).is_empty() {
        errors.forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    let known: Vec<&str> = balancers(change.old).iter().map(|found| text(found, "ip")).collect();
    for (index, found) in balancers(object).iter().enumerate() {
        let path = path.index(index);
        let (address, host) = (text(found, "ip"), text(found, "hostname"));
        if !address.is_empty() && !known.contains(&address) {
            addresses::ip(errors, &path.child("ip"), address);
        }
        let mode_path = path.child("ipMode");
        match (word(found, "ipMode"), address.is_empty()) {
            (None, false) => errors.required(&mode_path, "must be specified when `ip` is set"),
            (Some(_), true) => {
                errors.forbidden(&mode_path, "may not be specified when `ip` is not set");
            }
            (mode, _) => errors.one_of(&mode_path, mode, &["Proxy", "VIP"]),
        }
        if !host.is_empty() {
            let path = path.child("hostname");
            formats::dns_subdomain(errors, &path, host);
            if host.parse::<std::net::IpAddr>().is_ok() {
                errors.invalid_text(&path, host, "must be a DNS name, not an IP address");
            }
        }
    }
}
