//! Implements Jobs.

use crate::apimachinery::metadata;
use crate::kinds::kind::Kind;

/// The behavior of Jobs.
pub(crate) const KIND: Kind = Kind {
    group: "batch",
    resource: "jobs",
    kind: "Job",
    set_defaults: Some(crate::kinds::defaulting::workloads::job),
    prepare_create: crate::kinds::strategy::job::generate_selector,
    shares_labels: crate::kinds::strategy::create::shares_labels,
    lacks_late_default: |job| !metadata::has_labels(job),
    drop_disabled_fields: |object| {
        crate::kinds::strategy::disabled_fields::drop_of_job(object.get_mut("spec"))
    },
    orphans_dependents: true,
    deletion_warning: Some(DELETION_WARNING),
    validate: crate::kinds::validation::jobs::job,
    validate_subresources: &[("status", crate::kinds::validation::job_status::status)],
    warn: |warnings, object, old| crate::kinds::validation::warnings::job(warnings, object, old, false),
    cells: Some(crate::kinds::tables::workloads::job),
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "status.successful"]),
    stored_field: |path| (path == "status.successful").then(|| "status.succeeded".to_owned()),
    ..Kind::COUNTED
};

/// Source: kubernetes pkg/registry/batch/job/storage/storage.go, `Delete` and `DeleteCollection`.
const DELETION_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
     set propagationPolicy=Orphan to suppress this warning";
