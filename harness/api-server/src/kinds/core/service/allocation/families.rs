//! Completes the IP families of a Service.

use std::net::IpAddr;

use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use crate::kinds::common::addresses;
use crate::kinds::core::service::allocation::spec::Spec;
use crate::kinds::core::service::allocation::{HEADLESS, range};

const SINGLE: &str = "SingleStack";

const PREFERRED: &str = "PreferDualStack";

const REQUIRED: &str = "RequireDualStack";

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

/// Sets the IP families and their policy. `configured` contains the IP families of the server, with the default first.
///
/// # Errors
/// Returns 422 if the server does not support the families, or if the fields conflict.
///
/// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `initIPFamilyFields`.
pub(crate) fn complete(
    spec: &mut Spec,
    old: Option<&Spec>,
    name: &str,
    configured: &[&str],
) -> Result<(), Box<Status>> {
    let default = configured.first().copied().unwrap_or("IPv4");
    if spec.is_external_name() || old.is_some_and(|old| is_unchanged_preference(spec, old)) {
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
        if is_single {
            if old.cluster_ips == spec.cluster_ips {
                spec.cluster_ips.truncate(1);
            }
            if old.ip_families == spec.ip_families {
                spec.ip_families.truncate(1);
            }
        } else {
            for (new, old, what) in [
                (&spec.cluster_ips, &old.cluster_ips, "cluster IP"),
                (&spec.ip_families, &old.ip_families, "IP family"),
            ] {
                if !new.is_empty() && new.len() < old.len() {
                    let why = format!("must be 'SingleStack' to release the secondary {what}");
                    errors.push(policy_error(spec, &why));
                }
            }
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
        let family = family_of(address);
        if configured.contains(&family) {
            spec.ip_families.push(family.to_owned());
        } else {
            let all = Value::from(spec.cluster_ips.as_slice());
            let why = format!("{family} is not configured on this cluster");
            errors.push(FieldError::invalid(format!("spec.clusterIPs[{index}]"), all, why));
        }
    }
    refuse(&errors, name)?;
    if !is_free {
        let mut errors = Vec::new();
        if spec.ip_family_policy == REQUIRED && configured.len() < 2 {
            errors.push(policy_error(spec, "this cluster is not configured for dual-stack services"));
        }
        for (index, family) in
            spec.ip_families.iter().enumerate().filter(|(_, family)| !configured.contains(&family.as_str()))
        {
            let field = format!("spec.ipFamilies[{index}]");
            errors.push(FieldError::invalid(
                field,
                Value::from(family.as_str()),
                "not configured on this cluster",
            ));
        }
        refuse(&errors, name)?;
    }
    if spec.ip_families.is_empty() {
        spec.ip_families.push(default.to_owned());
    }
    // Without a selector, the endpoints are not managed by Kubernetes and may have addresses of both families.
    if !is_single && (is_free || configured.len() == 2) {
        add_other_family(spec);
    }
    Ok(())
}

/// Returns whether an update keeps the preference for dual-stack, the addresses, and the IP families.
///
/// Such a Service does not get a second IP family when the server becomes dual-stack.
///
/// Source: kubernetes pkg/registry/core/service/storage/alloc.go, `isMatchingPreferDualStackClusterIPFields`.
fn is_unchanged_preference(new: &Spec, old: &Spec) -> bool {
    new.kind == old.kind
        && new.ip_family_policy == PREFERRED
        && ["", PREFERRED].contains(&old.ip_family_policy.as_str())
        && new.cluster_ips == old.cluster_ips
        && new.ip_families == old.ip_families
}

fn add_other_family(spec: &mut Spec) {
    if let [only] = spec.ip_families.as_slice()
        && let Some(other) = FAMILIES.into_iter().find(|family| family != only)
    {
        spec.ip_families.push(other.to_owned());
    }
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
    let mut are_addresses = true;
    if spec.is_headless() && spec.cluster_ips.len() > 1 {
        are_addresses = false;
        errors.push(FieldError::invalid(FIELD, all(), "'None' must be the first and only value"));
    }
    let addresses = spec.cluster_ips.iter().enumerate();
    for (index, address) in addresses.filter(|(index, address)| *index > 0 || *address != HEADLESS) {
        if let Some(why) = addresses::ip_error(address) {
            let field = format!("{FIELD}[{index}]");
            errors.push(FieldError::invalid(field, Value::from(address.as_str()), why));
            are_addresses = false;
        }
    }
    if spec.cluster_ips.len() > 2 {
        errors.push(FieldError::invalid(FIELD, all(), "may only hold up to 2 values"));
    }
    if !are_addresses {
        return errors;
    }
    if let [first, others @ ..] = spec.cluster_ips.as_slice()
        && !others.is_empty()
        && others.iter().all(|other| family_of(other) == family_of(first))
    {
        errors.push(FieldError::invalid(FIELD, all(), "may specify no more than one IP for each IP family"));
    }
    if !spec.is_headless() {
        for (index, (address, family)) in spec.cluster_ips.iter().zip(&spec.ip_families).enumerate() {
            if FAMILIES.contains(&family.as_str()) && family_of(address) != family {
                let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
                let field = format!("{FIELD}[{index}]");
                errors.push(FieldError::invalid(field, Value::from(address.as_str()), why));
            }
        }
    }
    errors
}

fn family_of(address: &str) -> &'static str {
    address.parse::<IpAddr>().map_or("IPv4", range::family)
}

fn policy_error(spec: &Spec, why: &str) -> FieldError {
    FieldError::invalid("spec.ipFamilyPolicy", Value::from(spec.ip_family_policy.as_str()), why)
}

fn refuse(errors: &[FieldError], name: &str) -> Result<(), Box<Status>> {
    if errors.is_empty() { Ok(()) } else { Err(Box::new(Status::invalid("", "Service", name, errors))) }
}
