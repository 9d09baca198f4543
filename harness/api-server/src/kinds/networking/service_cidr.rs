//! Implements `ServiceCIDR` objects.

use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::common::addresses;
use crate::kinds::common::cells::{Context, age_of, items, joined, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, list, texts};
use crate::kinds::kind::{Kind, StatusKeeps};

/// The behavior of `ServiceCIDR` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "servicecidrs",
    kind: "ServiceCIDR",
    status_keeps: StatusKeeps::Metadata,
    validate,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Validates a `ServiceCIDR`.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateServiceCIDR` and
/// `ValidateServiceCIDRUpdate`.
/// Rule: VLO-44.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), joined(items(object, &["spec", "cidrs"]), &[]), age_of(object, context)]
}
