//! Warns about Jobs and `CronJob`s.

use serde_json::Value;

use crate::kinds::common::fields::{Path, get, int, text};
use crate::kinds::common::warnings::{POD_NAMES, Warnings, has_next_generation, named_as_host};
use crate::kinds::core::pod;

/// Warns about a Job or a `CronJob`.
///
/// Source: kubernetes pkg/api/job/warnings.go.
pub(crate) fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>, by_schedule: bool) {
    const COMPLETIONS: i64 = 100_000;
    const PARALLELISM: i64 = 10_000;
    let (root, of_jobs) = (Path::new("spec"), get(object, "spec"));
    let template = root.child("jobTemplate");
    let (path, spec) = if by_schedule {
        (template.child("spec"), get(get(of_jobs, "jobTemplate"), "spec"))
    } else {
        (root, of_jobs)
    };
    if old.is_none() {
        named_as_host(warnings, object, POD_NAMES);
    }
    if has_next_generation(object, old) {
        let number = |field| int(spec, field).unwrap_or(0);
        if text(spec, "completionMode") == "Indexed"
            && number("completions") > COMPLETIONS
            && number("parallelism") > PARALLELISM
        {
            warnings.push(format!(
                "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than \
                 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
            ));
        }
        pod::warnings::template(warnings, &path.child("template"), get(spec, "template"));
    }
    if by_schedule && old.is_some() && text(of_jobs, "schedule").contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
}
