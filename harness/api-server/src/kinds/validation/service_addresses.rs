//! Validates `ServiceCIDR`s and `IPAddress` objects.

use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, list, set, text, texts};
use crate::kinds::common::{addresses, formats};

/// Validates a `ServiceCIDR`.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateServiceCIDR` and
/// `ValidateServiceCIDRUpdate`.
/// Rule: VLO-44.
pub(crate) fn range(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let path = path.child("cidrs");
    let Some(change) = change else {
        return ranges(errors, &path, spec);
    };
    let new: Vec<&str> = texts(spec, "cidrs").collect();
    let old: Vec<&str> = texts(get(change.old, "spec"), "cidrs").collect();
    let becomes_dual = (old.len(), new.len()) == (1, 2);
    if old.len() != new.len() && !becomes_dual {
        errors.invalid(&path, encode(get(spec, "cidrs")), IMMUTABLE);
        return;
    }
    for (index, (new, _)) in new.iter().zip(&old).enumerate().filter(|(_, (new, old))| new != old) {
        errors.invalid_text(&path.index(index), new, IMMUTABLE);
    }
    if becomes_dual {
        ranges(errors, &path, spec);
    }
}

/// Validates the CIDRs of a `ServiceCIDR`.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `validateServiceCIDRSpec`.
fn ranges(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    match list(spec, "cidrs").len() {
        0 => return errors.required(path, "at least one CIDR required"),
        1 | 2 => {}
        _ => {
            let why = "may only hold up to 2 values";
            return errors.invalid_structure(path, "networking.ServiceCIDRSpec", spec, why);
        }
    }
    for (index, range) in texts(spec, "cidrs").enumerate() {
        addresses::canonical_range(errors, &path.index(index), range);
    }
    let families: Vec<Option<bool>> = texts(spec, "cidrs").map(addresses::is_range_of_version_4).collect();
    if matches!(families.as_slice(), [Some(first), Some(second)] if first == second) {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(path, encode(get(spec, "cidrs")), why);
    }
}

/// Validates an `IPAddress`.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateIPAddress` and `ValidateIPAddressUpdate`;
/// `pkg/apis/networking/v1/zz_generated.validations.go`.
/// Rule: VLO-44.
pub(crate) fn address(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let path = Path::new("spec");
    let path = path.child("parentRef");
    let is_changed = change.is_some_and(|change| !change.is_same(&["spec", "parentRef"]));
    match set(get(object, "spec"), "parentRef") {
        None => errors.required_by_type(&path),
        Some(parent) => {
            let group = text(parent, "group");
            if !group.is_empty() {
                formats::dns_subdomain(errors, &path.child("group"), group);
            }
            for field in ["resource", "name"] {
                let (path, name) = (path.child(field), text(parent, field));
                if !name.is_empty() {
                    formats::path_segment(errors, &path, name);
                } else if is_changed {
                    errors.required(&path, "");
                } else {
                    errors.required_by_type(&path);
                }
            }
            formats::path_segment(errors, &path.child("namespace"), text(parent, "namespace"));
        }
    }
    if is_changed {
        errors.invalid_by_type(&path, "null", IMMUTABLE);
    }
}
