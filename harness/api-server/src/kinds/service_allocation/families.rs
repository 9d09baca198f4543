//! Completes the IP families of a Service. The server supports only IPv4.

use std::net::IpAddr;

use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use super::HEADLESS;
use super::spec::Spec;

const SINGLE: &str = "SingleStack";
const PREFERRED: &str = "PreferDualStack";
const REQUIRED: &str = "RequireDualStack";
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const SERVER_FAMILY: &str = "IPv4";

/// Sets the IP families and their policy.
///
/// # Errors
/// Returns 422 if the server does not support the families, or if the fields conflict.
///
/// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `initIPFamilyFields`.
pub(super) fn complete(spec: &mut Spec, old: Option<&Spec>, name: &str) -> Result<(), Box<Status>> {
    if spec.is_external_name() {
        return Ok(());
    }
    let is_free = spec.cluster_ip == HEADLESS && !spec.has_selector;
    if spec.ip_family_policy.is_empty() {
        let kept = old.map(|old| old.ip_family_policy.clone()).filter(|policy| !policy.is_empty());
        spec.ip_family_policy = kept.unwrap_or_else(|| if is_free { REQUIRED } else { SINGLE }.to_owned());
    }
    refuse(&validate(spec), name)?;
    let is_single = spec.ip_family_policy == SINGLE;
    let mut errors = Vec::new();
    if let Some(old) = old {
        if is_single && old.ip_families == spec.ip_families {
            spec.ip_families.truncate(1);
        }
        let is_reduced = old.ip_families.len() == 2
            && spec.ip_families.len() == 1
            && old.ip_families.first() == spec.ip_families.first();
        if !is_single && is_reduced {
            errors.push(policy_error(spec, "must be 'SingleStack' to release the secondary IP family"));
        }
    }
    for (count, what) in [(spec.cluster_ips.len(), "cluster IPs"), (spec.ip_families.len(), "IP families")] {
        if is_single && count == 2 {
            let why =
                format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(policy_error(spec, &why));
        }
    }
    let addresses = spec.cluster_ips.iter().enumerate().take_while(|(_, address)| *address != HEADLESS);
    for (index, address) in addresses.skip(spec.ip_families.len()) {
        if is_version_6(address) {
            let all = Value::from(spec.cluster_ips.as_slice());
            let field = format!("spec.clusterIPs[{index}]");
            errors.push(FieldError::invalid(field, all, "IPv6 is not configured on this cluster"));
        } else {
            spec.ip_families.push(SERVER_FAMILY.to_owned());
        }
    }
    refuse(&errors, name)?;
    if is_free {
        // Without a selector, the endpoints are not managed by Kubernetes and may have addresses of both families.
        if spec.ip_families.is_empty() {
            spec.ip_families.push(SERVER_FAMILY.to_owned());
        }
        if !is_single && let [only] = spec.ip_families.as_slice() {
            let other = FAMILIES.into_iter().find(|family| family != only).unwrap_or(SERVER_FAMILY);
            spec.ip_families.push(other.to_owned());
        }
        return Ok(());
    }
    let mut errors = Vec::new();
    if spec.ip_family_policy == REQUIRED {
        errors.push(policy_error(spec, "this cluster is not configured for dual-stack services"));
    }
    for (index, family) in spec.ip_families.iter().enumerate().filter(|(_, family)| *family != SERVER_FAMILY)
    {
        let field = format!("spec.ipFamilies[{index}]");
        errors.push(FieldError::invalid(
            field,
            Value::from(family.as_str()),
            "not configured on this cluster",
        ));
    }
    refuse(&errors, name)?;
    if spec.ip_families.is_empty() {
        spec.ip_families.push(SERVER_FAMILY.to_owned());
    }
    Ok(())
}

/// Validates the cluster IPs of a Service and the fields that relate to them.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateServiceClusterIPsRelatedFields`.
fn validate(spec: &Spec) -> Vec<FieldError> {
    const FIELD: &str = "spec.clusterIPs";
    let all = || Value::from(spec.cluster_ips.as_slice());
    let mut errors = Vec::new();
    match spec.cluster_ips.first() {
        Some(_) if spec.cluster_ip.is_empty() => {
            errors.push(FieldError::invalid(FIELD, all(), "must be empty when `clusterIP` is not specified"));
        }
        Some(first) if *first != spec.cluster_ip => {
            errors.push(FieldError::invalid(FIELD, all(), "first value must match `clusterIP`"));
        }
        None if !spec.cluster_ip.is_empty() => errors.push(FieldError::required(FIELD, "")),
        Some(_) | None => {}
    }
    for (index, family) in spec.ip_families.iter().enumerate() {
        let (field, value) = (format!("spec.ipFamilies[{index}]"), Value::from(family.as_str()));
        if !FAMILIES.contains(&family.as_str()) {
            errors.push(FieldError::not_supported(field.as_str(), &value, "\"IPv4\", \"IPv6\""));
        }
        if spec.ip_families.iter().take(index).any(|before| before == family) {
            errors.push(FieldError::duplicate(field, &value));
        }
    }
    if ![SINGLE, PREFERRED, REQUIRED].contains(&spec.ip_family_policy.as_str()) {
        let supported = "\"PreferDualStack\", \"RequireDualStack\", \"SingleStack\"";
        let value = Value::from(spec.ip_family_policy.as_str());
        errors.push(FieldError::not_supported("spec.ipFamilyPolicy", value, supported));
    }
    if spec.is_headless() && spec.cluster_ips.len() > 1 {
        errors.push(FieldError::invalid(FIELD, all(), "'None' must be the first and only value"));
    }
    let is_address = |address: &str| address.parse::<IpAddr>().is_ok();
    let addresses = spec.cluster_ips.iter().enumerate();
    for (index, address) in addresses.filter(|(index, address)| *index > 0 || *address != HEADLESS) {
        if !is_address(address) {
            let field = format!("{FIELD}[{index}]");
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(FieldError::invalid(field, Value::from(address.as_str()), why));
        }
    }
    errors
}

fn is_version_6(address: &str) -> bool {
    address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6())
}

fn policy_error(spec: &Spec, why: &str) -> FieldError {
    FieldError::invalid("spec.ipFamilyPolicy", Value::from(spec.ip_family_policy.as_str()), why)
}

fn refuse(errors: &[FieldError], name: &str) -> Result<(), Box<Status>> {
    if errors.is_empty() { Ok(()) } else { Err(Box::new(Status::invalid("", "Service", name, errors))) }
}
