//! Sets the defaults of the kinds that create Pods.

use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{each, ensure, fill, fill_pointer, has, is_empty, text, with};
use crate::kinds::defaulting::{core, pod};

/// Sets the defaults of a Deployment.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_Deployment`.
pub(crate) fn deployment(object: &mut Value) {
    ensure(object, "status");
    let Some(spec) = with_template(object) else { return };
    fill(spec, "replicas", 1);
    if let Some(strategy) = ensure(spec, "strategy") {
        rolling_update(strategy, &json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
}

/// Sets the defaults of a `ReplicaSet`.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_ReplicaSet`.
pub(crate) fn replica_set(object: &mut Value) {
    counted_status(object, &["replicas"]);
    if let Some(spec) = with_template(object) {
        fill(spec, "replicas", 1);
    }
}

/// Sets the defaults of a `StatefulSet`.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_StatefulSet`.
pub(crate) fn stateful_set(object: &mut Value) {
    counted_status(object, &["replicas", "availableReplicas"]);
    let Some(spec) = with_template(object) else { return };
    fill(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = ensure(spec, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            fill(strategy, "type", "RollingUpdate");
            ensure(strategy, "rollingUpdate");
        }
        if text(strategy, "type") == "RollingUpdate" {
            with(strategy, "rollingUpdate", |update| {
                fill(update, "partition", 0);
                fill(update, "maxUnavailable", 1);
            });
        }
    }
    if let Some(policy) = ensure(spec, "persistentVolumeClaimRetentionPolicy") {
        fill(policy, "whenDeleted", "Retain");
        fill(policy, "whenScaled", "Retain");
    }
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    each(spec, "volumeClaimTemplates", core::persistent_volume_claim);
}

/// Sets the defaults of a `DaemonSet`.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_DaemonSet`.
pub(crate) fn daemon_set(object: &mut Value) {
    counted_status(
        object,
        &["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"],
    );
    let Some(spec) = with_template(object) else { return };
    if let Some(strategy) = ensure(spec, "updateStrategy") {
        rolling_update(strategy, &json!({"maxUnavailable": 1, "maxSurge": 0}));
    }
    fill(spec, "revisionHistoryLimit", 10);
}

/// Sets the defaults of a `ReplicationController`: its labels and selector default to the labels of its template.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_ReplicationController`.
pub(crate) fn replication_controller(object: &mut Value) {
    counted_status(object, &["replicas"]);
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    if let Some(labels) = labels.filter(Value::is_object) {
        if let Some(spec) = ensure(object, "spec")
            && is_empty(spec, "selector")
        {
            set(spec, &["selector"], labels.clone());
        }
        labels_of_template(object, labels);
    }
    ensure(object, "metadata");
    let Some(spec) = ensure(object, "spec") else { return };
    fill(spec, "replicas", 1);
    with(spec, "template", pod::template);
}

/// Sets the defaults of a Job.
///
/// Source: kubernetes pkg/apis/batch/v1/defaults.go, `SetDefaults_Job`.
pub(crate) fn job(object: &mut Value) {
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

/// Sets the defaults of a `CronJob`.
///
/// The job template gets the defaults of its pod template, but not the defaults of a Job.
///
/// Source: kubernetes pkg/apis/batch/v1/defaults.go, `SetDefaults_CronJob`.
pub(crate) fn cron_job(object: &mut Value) {
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

/// Sets the defaults of the pod template in `spec`, and returns `spec`.
fn with_template(object: &mut Value) -> Option<&mut Value> {
    ensure(object, "metadata");
    let spec = ensure(object, "spec")?;
    if let Some(template) = ensure(spec, "template") {
        pod::template(template);
    }
    Some(spec)
}

/// Sets the defaults of a `PodTemplate`.
///
/// Source: kubernetes `pkg/apis/core/v1/zz_generated.defaults.go`, `SetObjectDefaults_PodTemplate`.
pub(crate) fn pod_template(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(template) = ensure(object, "template") {
        pod::template(template);
    }
}

/// Sets absent status counters to zero. Clients receive these counters even if they are zero.
fn counted_status(object: &mut Value, counters: &[&str]) {
    if let Some(status) = ensure(object, "status") {
        for counter in counters {
            fill(status, counter, 0);
        }
    }
}

fn rolling_update(strategy: &mut Value, defaults: &Value) {
    fill(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate"
        && let Some(update) = ensure(strategy, "rollingUpdate")
    {
        for (field, value) in defaults.as_object().into_iter().flatten() {
            fill_pointer(update, field, value.clone());
        }
    }
}

fn labels_of_template(object: &mut Value, labels: Value) {
    if let Some(metadata) = ensure(object, "metadata")
        && is_empty(metadata, "labels")
    {
        set(metadata, &["labels"], labels);
    }
}

fn pod_failure_policy(spec: &mut Value) {
    with(spec, "podFailurePolicy", |policy| {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |condition| fill(condition, "status", "True"));
        });
    });
}
