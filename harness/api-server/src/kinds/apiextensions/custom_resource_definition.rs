//! Implements `CustomResourceDefinition` objects.

use crate::apimachinery::metadata;
use crate::kinds::kind::{DeleteEffect, Kind};

/// The behavior of `CustomResourceDefinition` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    has_core_finalizers: false,
    requires_resource_version: true,
    set_defaults: Some(crate::kinds::defaulting::extensions::custom_resource_definition),
    through_internal: Some(crate::kinds::defaulting::internal::custom_resource_definition),
    has_status_table: false,
    prepare_create: crate::kinds::apiextensions::custom_resources::begin,
    prepare_update: |object, _| crate::kinds::apiextensions::definition_update::note_storage_version(object),
    canonicalize: crate::kinds::apiextensions::definitions::coerce_defaults,
    cells: Some(crate::kinds::tables::cluster::definition),
    columns: Some(|| &crate::kinds::tables::cluster::DEFINITION_COLUMNS),
    is_definition: true,
    failed_precondition: [Some("precondition failed"), None],
    has_uid_precondition: [true, false],
    delete: |stored, _, by_name| {
        let is_marked = by_name && !metadata::is_deleting(stored);
        is_marked.then(|| DeleteEffect::Changed {
            object: crate::kinds::apiextensions::definition_deletion::mark(stored),
            gone: false,
        })
    },
    ..Kind::COUNTED
};
