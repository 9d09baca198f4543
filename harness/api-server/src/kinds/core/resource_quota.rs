//! Implements `ResourceQuota` objects.

use crate::kinds::kind::Kind;

/// The behavior of `ResourceQuota` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "resourcequotas",
    kind: "ResourceQuota",
    set_defaults: Some(crate::kinds::defaulting::core::resource_quota),
    returns_deleted_object: true,
    validate: crate::kinds::validation::quotas::quota,
    validate_subresources: &[("status", crate::kinds::validation::quotas::quota_status)],
    warn: crate::kinds::validation::warnings::quota,
    cells: Some(crate::kinds::tables::cluster::quota),
    ..Kind::PLAIN
};
