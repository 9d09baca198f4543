//! Implements `CronJob` objects.

use crate::kinds::kind::Kind;

/// The behavior of `CronJob` objects.
pub(crate) const KIND: Kind = Kind {
    group: "batch",
    resource: "cronjobs",
    kind: "CronJob",
    set_defaults: Some(crate::kinds::defaulting::workloads::cron_job),
    drop_disabled_fields: |object| {
        crate::kinds::strategy::disabled_fields::drop_of_job(object.pointer_mut("/spec/jobTemplate/spec"))
    },
    validate: crate::kinds::validation::jobs::cron_job,
    warn: |warnings, object, old| crate::kinds::validation::warnings::job(warnings, object, old, true),
    cells: Some(crate::kinds::tables::workloads::cron_job),
    ..Kind::COUNTED
};
