//! Implements `CSIDriver` objects.

use crate::kinds::common::fields::get;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::{Changes, Kind};
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::schema::Type;
use serde_json::Value;

/// The behavior of `CSIDriver` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csidrivers",
    kind: "CSIDriver",
    set_defaults: Some(crate::kinds::defaulting::storage::csi_driver),
    returns_deleted_object: true,
    requires_resource_version: true,
    next_generation: Changes::Of(&[&["spec"]]),
    validate: crate::kinds::validation::drivers::driver,
    warn: warn,
    cells: Some(crate::kinds::tables::storage::csi_driver),
    ..Kind::PLAIN
};

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let kind = GroupVersionKind::new("storage.k8s.io", "v1", "CSIDriver");
    let of = Type::for_kind(&kind).member("spec").member("tokenRequests");
    crate::kinds::validation::warnings::storage::driver(
        warnings,
        get(object, "spec"),
        old.map(|old| get(old, "spec")),
        of,
    );
}
