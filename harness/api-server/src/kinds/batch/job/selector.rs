//! Generates and removes the labels and selectors of Jobs.

use serde_json::{Map, Value, json};

use crate::apimachinery::metadata;

/// Returns whether the template of a new Job has a map of labels. The map may be empty.
///
/// In kube-apiserver, a Job without labels and its template share that map until the Job is copied or decoded again.
pub(crate) fn shares_labels(object: &Value) -> bool {
    let labels = object.pointer("/spec/template/metadata/labels");
    labels.is_some_and(Value::is_object)
}

/// Replaces the labels of a new Job with those of its template. [`shares_labels`] returns whether the two are shared.
///
/// Source: kubernetes pkg/apis/batch/v1/defaults.go, `SetDefaults_Job`; pkg/registry/batch/job/strategy.go.
/// Rule: KND-03.
pub(crate) fn share_labels(object: &mut Value) {
    if let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned() {
        metadata::set(object, "labels", labels);
    }
}

const JOB_NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

const LEGACY_CONTROLLER_UID: &str = "controller-uid";

/// Adds labels with the name and UID of a new Job to its pod template and selects Pods by UID.
///
/// Does not change a Job with `manualSelector`. Does not replace existing values. Validation checks them later.
///
/// Source: kubernetes pkg/registry/batch/job/strategy.go, `generateSelectorIfNeeded`.
pub(crate) fn generate_selector(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (name, uid) = (metadata::text(job, "name").to_owned(), metadata::text(job, "uid").to_owned());
    let Some(spec) = job.get_mut("spec") else { return };
    if let Some(labels) = object_at(spec, &["template", "metadata", "labels"]) {
        for (key, value) in JOB_NAME
            .into_iter()
            .map(|key| (key, &name))
            .chain([LEGACY_CONTROLLER_UID, CONTROLLER_UID].map(|key| (key, &uid)))
        {
            labels.entry(key).or_insert_with(|| value.as_str().into());
        }
    }
    if let Some(selected) = object_at(spec, &["selector", "matchLabels"]) {
        selected.entry(CONTROLLER_UID).or_insert_with(|| uid.into());
    }
}

/// Removes the labels and the selector that [`generate_selector`] adds, so that the Job can be created again.
pub fn forget_selector(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    if let Some(labels) = job.pointer_mut("/spec/template/metadata/labels").and_then(Value::as_object_mut) {
        let generated = JOB_NAME.into_iter().chain([LEGACY_CONTROLLER_UID, CONTROLLER_UID]);
        generated.for_each(|label| {
            labels.remove(label);
        });
    }
    if let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("selector");
    }
}

/// Returns the object at `path`; creates it if absent. Returns `None` if the value is not an object.
fn object_at<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut value = value;
    for step in path {
        value = value.as_object_mut()?.entry(*step).or_insert(Value::Null);
        if value.is_null() {
            *value = json!({});
        }
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: &Value, expected: &Value) {
        let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": spec});
        generate_selector(&mut job);
        assert_eq!(job["spec"], *expected);
    }

    #[test]
    fn job_selects_its_own_pods() {
        let labels = json!({
            "a": "b", "job-name": "other", "batch.kubernetes.io/job-name": "j", "controller-uid": "u",
            "batch.kubernetes.io/controller-uid": "u",
        });
        let given = json!({"a": "b", "job-name": "other"});
        check(
            &json!({"template": {"metadata": {"labels": given}}}),
            &json!({
                "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
                "template": {"metadata": {"labels": labels}},
            }),
        );
        let manual = json!({"manualSelector": true, "template": {}});
        check(&manual, &manual);
    }
}
