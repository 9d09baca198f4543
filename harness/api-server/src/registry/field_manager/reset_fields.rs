//! The fields that requests cannot set, because the server discards them.

use kubernetes_managed_fields::{Filter, Set};

use super::ResetFields;
use crate::kinds::discovery::{Resource, Resources};
use crate::kinds::strategy;

/// Returns the reset fields of a resource or a subresource, by version.
///
/// Source: `GetResetFields` in kubernetes `pkg/registry/*/*/strategy.go`; apiextensions-apiserver
/// `pkg/apiserver/customresource_handler.go`, `getStatusResetFields`.
/// Rule: APY-13.
pub(super) fn for_resource(resource: &Resource, subresource: &str, resources: &Resources) -> ResetFields {
    let fields = strategy::reset_fields(resource, subresource);
    if fields.is_empty() {
        return ResetFields::new();
    }
    let is_own = |other: &Resource| {
        let is_of_kind = (&other.kind.group, &other.kind.kind) == (&resource.kind.group, &resource.kind.kind);
        // For a custom resource itself, each version has only its own reset fields.
        let is_same = resource.custom.is_none() || !subresource.is_empty() || other.kind == resource.kind;
        is_of_kind && is_same
    };
    let versions = resources.all().iter().filter(|other| is_own(other));
    versions.map(|other| (other.kind.api_version(), Filter::Exclude(Set::from_fields(fields)))).collect()
}
