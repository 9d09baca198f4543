//! Implements Jobs.

pub(crate) mod columns;
pub(crate) mod defaults;
pub(crate) mod policies;
pub(crate) mod selector;
pub(crate) mod status;
pub(crate) mod validation;
pub(crate) mod warnings;

use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::batch::job;
use crate::kinds::common::disabled_fields::drop_at;
use crate::kinds::core::pod::disabled_fields::drop_of_pod;
use crate::kinds::kind::Kind;

/// The behavior of Jobs.
pub(crate) const KIND: Kind = Kind {
    group: "batch",
    resource: "jobs",
    kind: "Job",
    set_defaults: Some(job::defaults::set_defaults),
    prepare_create: selector::generate_selector,
    shares_labels: selector::shares_labels,
    lacks_late_default: |job| !metadata::has_labels(job),
    drop_disabled_fields: |object| drop_of_job(object.get_mut("spec")),
    orphans_dependents: true,
    deletion_warning: Some(DELETION_WARNING),
    validate: job::validation::validate,
    validate_subresources: &[("status", job::status::status)],
    warn: |warnings, object, old| job::warnings::warn(warnings, object, old, false),
    cells: Some(job::columns::cells),
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "status.successful"]),
    stored_field: |path| (path == "status.successful").then(|| "status.succeeded".to_owned()),
    ..Kind::COUNTED
};

/// Source: kubernetes pkg/registry/batch/job/storage/storage.go, `Delete` and `DeleteCollection`.
const DELETION_WARNING: &str = "child pods are preserved by default when jobs are deleted; set \
     propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// Removes the Job fields that belong to the feature gate `WorkloadWithJob`.
pub(crate) fn drop_of_job(spec: Option<&mut Value>) {
    let Some(spec) = spec else { return };
    drop_at(spec, &["scheduling"]);
    drop_of_pod(spec.pointer_mut("/template/spec"));
}
