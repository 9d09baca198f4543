//! Implements `CronJob` objects.

pub(crate) mod schedule;

use jiff::tz::TimeZoneDatabase;
use kubernetes_types::json;
use kubernetes_types::json::at;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::kinds::batch::job;
use crate::kinds::batch::job::defaults::pod_failure_policy;
use crate::kinds::batch::job::validation::job_spec;
use crate::kinds::common::cells::{
    Context, age_of, containers, count, items, label_selector, name, present_or, row,
};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill};
use crate::kinds::common::fields::{Errors, Path, flag, get, set, text, word};
use crate::kinds::common::{age, selectors};
use crate::kinds::core::workloads::with_template;
use crate::kinds::kind::Kind;

/// The behavior of `CronJob` objects.
pub(crate) const KIND: Kind = Kind {
    group: "batch",
    resource: "cronjobs",
    kind: "CronJob",
    set_defaults: Some(set_defaults),
    drop_disabled_fields: |object| job::drop_of_job(object.pointer_mut("/spec/jobTemplate/spec")),
    validate,
    warn: |warnings, object, old| job::warnings::warn(warnings, object, old, true),
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the defaults of a `CronJob`.
///
/// The job template gets the defaults of its pod template, but not the defaults of a Job.
///
/// Source: kubernetes pkg/apis/batch/v1/defaults.go, `SetDefaults_CronJob`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "status");
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    if let Some(job) = ensure(spec, "jobTemplate")
        && let Some(job_spec) = with_template(job)
    {
        pod_failure_policy(job_spec);
    }
}

/// Validates the time zone of a `CronJob`.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateTimeZone`; Go's time, `LoadLocation`.
fn time_zone(errors: &mut Errors, path: &Path<'_>, zone: &str) {
    const MAX_PART_LENGTH: usize = 14;
    if zone.is_empty() {
        errors.invalid_text(path, zone, "timeZone must be nil or non-empty string");
        return;
    }
    let unknown = format!("unknown time zone {zone}");
    let is_part = |part: &str| {
        let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte));
        letters
            && (1..=MAX_PART_LENGTH).contains(&part.len())
            && ![".", ".."].contains(&part)
            && !part.starts_with('-')
    };
    if !zone.split('/').all(is_part) {
        errors.invalid_text(path, zone, unknown);
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid_text(path, zone, why);
    }
    let zones = TimeZoneDatabase::bundled();
    let is_known = zones.get(zone).is_ok_and(|found| found.iana_name() == Some(zone));
    if is_known || ["UTC", "Local"].contains(&zone) {
        return;
    }
    // kube-apiserver loads time zones from files, so the prefix of a name can be a directory.
    let folder = format!("{zone}/");
    let is_folder = zones.available().any(|zone| zone.as_str().starts_with(&folder));
    errors.invalid_text(path, zone, if is_folder { "is a directory" } else { &unknown });
}

/// Validates a `CronJob`.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `ValidateCronJobCreate` and `ValidateCronJobUpdate`;
/// `pkg/apis/batch/v1/zz_generated.validations.go`.
/// Rule: VLO-17.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    /// The maximum length of the name of a `CronJob`. The names of created Jobs are eleven characters longer.
    const MAX_NAME_LENGTH: usize = 52;
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let schedule = text(spec, "schedule");
    let had_zone = change.is_some_and(|change| text(get(change.old, "spec"), "schedule").contains("TZ"));
    if !schedule.is_empty() && !had_zone {
        let path = path.child("schedule");
        if let Err(why) = schedule::parse(schedule) {
            errors.invalid_text(&path, schedule, why);
        }
        if schedule.contains("TZ") {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.invalid_text(&path, schedule, why);
        }
    }
    errors.none_negative(&path, spec, &["startingDeadlineSeconds"]);
    if let Some(zone) = word(spec, "timeZone")
        && change.is_none_or(|change| !change.is_same(&["spec", "timeZone"]))
    {
        time_zone(errors, &path.child("timeZone"), zone);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    errors.required_one_of(&path.child("concurrencyPolicy"), text(spec, "concurrencyPolicy"), &policies);
    let template = path.child("jobTemplate");
    let of_job = get(get(spec, "jobTemplate"), "spec");
    let of_template = template.child("spec");
    job_spec(errors, &of_template, of_job);
    if let Some(selector) = set(of_job, "selector") {
        let shown = selectors::shown(selector);
        errors.invalid(&of_template.child("selector"), shown, "`selector` will be auto-generated");
    }
    if flag(of_job, "manualSelector") {
        let field = of_template.child("manualSelector").to_string();
        errors.push(FieldError::not_supported(field, true, "\"nil\", \"false\""));
    }
    errors.none_negative(&path, spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]);
    let name = text(get(object, "metadata"), "name");
    if change.is_none() && name.len() > MAX_NAME_LENGTH {
        let path = Path::new("metadata");
        errors.invalid_text(&path.child("name"), name, "must be no more than 52 characters");
    }
    if schedule.is_empty() {
        errors.required(&path.child("schedule"), "");
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let job = at(object, &["spec", "jobTemplate", "spec"]);
    let (names, images) = containers(items(job, &["template", "spec", "containers"]));
    let last = at(object, &["status", "lastScheduleTime"]);
    let suspend = match at(object, &["spec", "suspend"]).as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    row![
        name(object),
        json::text(object, &["spec", "schedule"]),
        present_or(object, &["spec", "timeZone"], "<none>"),
        suspend,
        count(at(object, &["status", "active"])),
        if last.is_null() { "<none>".to_owned() } else { age::since(context.now, last) },
        age_of(object, context),
        names,
        images,
        label_selector(at(job, &["selector"])),
    ]
}
