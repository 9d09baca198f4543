//! Validates status updates of Jobs.

use std::collections::HashSet;

use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::batch::job::policies::{intervals, number_of_indexes};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, flag, get, int, list, set, text, texts, word};

/// The spec and the status of a Job.
#[derive(Clone, Copy)]
struct Job<'a> {
    spec: &'a Value,
    status: &'a Value,
}

impl<'a> Job<'a> {
    fn new(object: &'a Value) -> Self {
        Self { spec: get(object, "spec"), status: get(object, "status") }
    }

    fn has(self, condition: &str, value: &str) -> bool {
        let is_it = |found: &&Value| text(found, "type") == condition;
        list(self.status, "conditions").iter().find(is_it).is_some_and(|found| text(found, "status") == value)
    }

    fn is(self, condition: &str) -> bool {
        self.has(condition, "True")
    }

    fn is_finished(self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn is_indexed(self) -> bool {
        text(self.spec, "completionMode") == "Indexed"
    }

    fn count(self, field: &str) -> i64 {
        int(self.status, field).unwrap_or(0)
    }
}

/// Validates an update of the status of a Job.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `ValidateJobStatusUpdate`;
/// pkg/registry/batch/job/strategy.go, `getStatusValidationOptions`: most rules apply only if their fields have
/// changed.
/// Rule: VLO-39.
pub(crate) fn status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    let (new, old) = (Job::new(object), Job::new(change.old));
    let path = Path::new("status");
    let conditions = path.child("conditions");
    errors.none_negative(&path, new.status, &["active", "succeeded", "failed", "ready", "terminating"]);
    uncounted(errors, &path.child("uncountedTerminatedPods"), new.status);
    let changed = |field: &str| !change.is_same(&["status", field]);
    let becomes = |condition: &str| new.is(condition) != old.is(condition);
    let (complete, failed) = (becomes("Complete"), becomes("Failed"));
    let finished = new.is_finished() != old.is_finished();
    if (complete || failed) && new.is("Complete") && new.is("Failed") {
        errors.invalid_unshown(&conditions, "cannot set Complete=True and Failed=true conditions");
    }
    if (complete || becomes("FailureTarget")) && new.is("Complete") && new.is("FailureTarget") {
        errors.invalid_unshown(&conditions, "cannot set Complete=True and FailureTarget=true conditions");
    }
    times(errors, &path, new, complete, &changed);
    if (failed || changed("failedIndexes")) && new.is("Failed") && !new.is("FailureTarget") {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        errors.invalid_unshown(&conditions, why);
    }
    let met = "SuccessCriteriaMet";
    if (complete || becomes(met)) && new.is("Complete") && !new.is(met) {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        errors.invalid_unshown(&conditions, why);
    }
    if (finished || changed("active")) && new.count("active") > 0 && new.is_finished() {
        let why = "active>0 is invalid for finished job";
        errors.invalid(&path.child("active"), new.count("active"), why);
    }
    let is_empty = flag(new.spec, "suspend") && int(new.spec, "completions") == Some(0);
    let starts = finished || changed("startTime");
    if starts && !is_empty && set(new.status, "startTime").is_none() && new.is_finished() {
        errors.required(&path.child("startTime"), "startTime is required for finished job");
    }
    let pods = get(new.status, "uncountedTerminatedPods");
    let has_uncounted = ["succeeded", "failed"].iter().any(|field| !list(pods, field).is_empty());
    if (finished || changed("uncountedTerminatedPods")) && new.is_finished() && has_uncounted {
        // The value has the form of the internal Go type.
        let [succeeded, failed] = ["succeeded", "failed"].map(|field| encode(get(pods, field)));
        let shown = format!("{{\"Succeeded\":{succeeded},\"Failed\":{failed}}}");
        errors.invalid(&path.child("uncountedTerminatedPods"), shown, "must be empty for finished job");
    }
    indexes(errors, &path, new, changed("completedIndexes"), changed("failedIndexes"));
    if (finished || changed("terminating")) && new.count("terminating") > 0 && new.is_finished() {
        let why = "terminating>0 is invalid for finished job";
        errors.invalid(&path.child("terminating"), new.count("terminating"), why);
    }
    let ready = int(new.status, "ready");
    if let Some(ready) = ready.filter(|ready| *ready > new.count("active"))
        && (changed("ready") || changed("active"))
    {
        errors.invalid(&path.child("ready"), ready, "cannot set more ready pods than active");
    }
    for other in ["Failed", "FailureTarget"].into_iter().filter(|other| new.is(met) && new.is(other)) {
        let why = format!("cannot set SuccessCriteriaMet=True and {other}=true conditions");
        errors.invalid_unshown(&conditions, why);
    }
    if set(new.spec, "successPolicy").is_some() && !new.is(met) && new.is("Complete") {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        errors.invalid_unshown(&conditions, why);
    }
    since(errors, &path, new, old, &changed);
}

/// Validates `uncountedTerminatedPods` in the status.
fn uncounted(errors: &mut Errors, path: &Path<'_>, status: &Value) {
    let mut seen = HashSet::new();
    for field in ["succeeded", "failed"] {
        let path = path.child(field);
        for (index, uid) in texts(get(status, "uncountedTerminatedPods"), field).enumerate() {
            let path = path.index(index);
            if uid.is_empty() {
                errors.invalid_text(&path, uid, "must not be empty");
            } else if !seen.insert(uid) {
                errors.duplicate(&path, uid);
            }
        }
    }
}

fn times(errors: &mut Errors, path: &Path<'_>, new: Job<'_>, complete: bool, changed: &dyn Fn(&str) -> bool) {
    let (end, start) = (get(new.status, "completionTime"), get(new.status, "startTime"));
    let path = path.child("completionTime");
    if complete || changed("completionTime") {
        if !end.is_null() && !new.is("Complete") {
            let why = "cannot set completionTime when there is no Complete=True condition";
            errors.invalid(&path, encode(end), why);
        }
        if end.is_null() && new.is("Complete") {
            errors.required(&path, "completionTime is required for Complete jobs");
        }
    }
    let instant = |value: &Value| value.as_str()?.parse::<jiff::Timestamp>().ok();
    if (changed("startTime") || changed("completionTime"))
        && let (Some(begun), Some(ended)) = (instant(start), instant(end))
        && ended < begun
    {
        errors.invalid(&path, encode(end), "must be equal to or after `startTime`");
    }
}

fn indexes(
    errors: &mut Errors,
    path: &Path<'_>,
    new: Job<'_>,
    completed_changed: bool,
    failed_changed: bool,
) {
    let (completed, failed) = (text(new.status, "completedIndexes"), word(new.status, "failedIndexes"));
    let (completed_path, failed_path) = (path.child("completedIndexes"), path.child("failedIndexes"));
    let has_limit = set(new.spec, "backoffLimitPerIndex").is_some();
    let completions = int(new.spec, "completions");
    if let (true, Some(completions)) = (completed_changed, completions)
        && let Err(why) = number_of_indexes(completed, completions)
    {
        errors.invalid_text(&completed_path, completed, format!("error parsing completedIndexes: {why}"));
    }
    if let (true, true, Some(completions), Some(failed)) = (failed_changed, has_limit, completions, failed)
        && let Err(why) = number_of_indexes(failed, completions)
    {
        errors.invalid_text(&failed_path, failed, format!("error parsing failedIndexes: {why}"));
    }
    if completed_changed && !completed.is_empty() && !new.is_indexed() {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.invalid_text(&completed_path, completed, why);
    }
    let Some(failed) = failed else { return };
    if failed_changed && !has_limit {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.invalid_text(&failed_path, failed, why);
    }
    if (failed_changed || completed_changed)
        && let Some(completions) = completions
        && let Some(index) = overlap(completed, failed, completions)
    {
        let why = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.invalid_text(&failed_path, failed, why);
    }
}

/// Returns the first index that is in both lists of intervals. The lists must be sorted.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateFailedIndexesNotOverlapCompleted`.
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let all = |text: &str| intervals(text, completions).filter_map(Result::ok).collect::<Vec<_>>();
    let (completed, failed) = (all(completed), all(failed));
    let (mut completed, mut failed) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some((begin, end)), Some((failed_begin, failed_end))) = (completed.peek(), failed.peek()) {
        if begin <= failed_end && failed_begin <= end {
            return Some(*begin.max(failed_begin));
        }
        if begin <= failed_begin {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

/// Validates the transition from the old status to the new status.
fn since(errors: &mut Errors, path: &Path<'_>, new: Job<'_>, old: Job<'_>, changed: &dyn Fn(&str) -> bool) {
    let conditions = path.child("conditions");
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if old.is(condition) && !new.is(condition) {
            let why = format!("cannot disable the terminal {condition}=True condition");
            errors.invalid_unshown(&conditions, why);
        }
    }
    if new.count("failed") < old.count("failed") {
        errors.invalid(&path.child("failed"), new.count("failed"), "cannot decrease the failed counter");
    }
    let is_scalable = new.is_indexed() && int(new.spec, "completions") == int(new.spec, "parallelism");
    if !is_scalable && new.count("succeeded") < old.count("succeeded") {
        let why = "cannot decrease the succeeded counter";
        errors.invalid(&path.child("succeeded"), new.count("succeeded"), why);
    }
    let both = |field| set(new.status, field).is_some() && set(old.status, field).is_some();
    if both("completionTime") && changed("completionTime") {
        let shown = encode(get(new.status, "completionTime"));
        errors.invalid(&path.child("completionTime"), shown, IMMUTABLE);
    }
    let is_resuming = old.is("Suspended") && new.has("Suspended", "False");
    let had_start = set(old.status, "startTime").is_some();
    if had_start && changed("startTime") && !is_resuming && !flag(new.spec, "suspend") {
        let shown = encode(get(new.status, "startTime"));
        let why = "field is immutable for unsuspended job once set";
        errors.invalid(&path.child("startTime"), shown, why);
    }
    let met = "SuccessCriteriaMet";
    if old.is(met) && !new.is(met) {
        errors.invalid_unshown(&conditions, "cannot disable the SuccessCriteriaMet=True condition");
    }
    if old.is("Complete") && !old.is(met) && new.is(met) {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        errors.invalid_unshown(&conditions, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_indexes_are_found() {
        assert_eq!(overlap("0,2-4", "1,5", 9), None);
        assert_eq!(overlap("0,2-4", "1,3-5", 9), Some(3));
        assert_eq!(overlap("", "1", 9), None);
        assert_eq!(overlap("a,3", "3", 9), Some(3));
    }
}
