//! Sets the defaults of Jobs.

use serde_json::Value;

use crate::kinds::common::defaults::{each, ensure, fill, fill_pointer, has, with};
use crate::kinds::core::workloads::{labels_of_template, with_template};

/// Sets the defaults of a Job.
///
/// Source: kubernetes pkg/apis/batch/v1/defaults.go, `SetDefaults_Job`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "status");
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(Value::is_object) {
        labels_of_template(object, labels);
    }
    let Some(spec) = with_template(object) else { return };
    if !has(spec, "completions") && !has(spec, "parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let backoff_limit = if has(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", backoff_limit);
    fill_pointer(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill_pointer(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
    pod_failure_policy(spec);
}

pub(crate) fn pod_failure_policy(spec: &mut Value) {
    with(spec, "podFailurePolicy", |policy| {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |condition| fill(condition, "status", "True"));
        });
    });
}
