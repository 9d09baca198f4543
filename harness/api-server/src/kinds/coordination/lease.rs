//! Implements Leases.

use kubernetes_types::json::text;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::ensure;
use crate::kinds::common::disabled_fields;
use crate::kinds::common::fields::{Errors, Path, get, int};
use crate::kinds::kind::Kind;

/// The behavior of Leases.
pub(crate) const KIND: Kind = Kind {
    group: "coordination.k8s.io",
    resource: "leases",
    kind: "Lease",
    set_defaults: Some(set_defaults),
    has_core_finalizers: false,
    requires_resource_version: true,
    is_created_by_update: true,
    drop_disabled_fields,
    validate,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Removes the fields of the feature gate `CoordinatedLeaderElection`.
fn drop_disabled_fields(object: &mut Value) {
    disabled_fields::drop_all(object.get_mut("spec"), &[&["strategy"], &["preferredHolder"]]);
}

pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "spec");
}

/// Validates a Lease.
///
/// Source: kubernetes pkg/apis/coordination/validation/validation.go, `ValidateLeaseSpec`.
/// Rule: VLO-34.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.invalid(&path.child("leaseDurationSeconds"), seconds, "must be greater than 0");
    }
    // The strategy and the preferred holder are not validated: they are dropped because coordinated leader election is
    // off.
    errors.none_negative(&path, spec, &["leaseTransitions"]);
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), text(object, &["spec", "holderIdentity"]), age_of(object, context)]
}
