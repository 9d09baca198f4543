//! Implements `ReplicaSet` objects.

use kubernetes_types::json::{at, set};
use serde_json::Value;

use crate::kinds::common;
use crate::kinds::common::cells::{Context, label_selector};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::fill;
use crate::kinds::common::fields::{Errors, Path, get};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::workloads;
use crate::kinds::core::workloads::{
    counted_status, replicated, selector, selector_stays, template_of_replica_set, with_template,
};
use crate::kinds::kind::Kind;

/// The behavior of `ReplicaSet` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "replicasets",
    kind: "ReplicaSet",
    set_defaults: Some(set_defaults),
    drop_disabled_fields: workloads::drop_of_template,
    validate,
    validate_subresources: &[("status", validate_status)],
    warn,
    fill_empty: |object| {
        set(object, &["spec", "replicas"], 0);
    },
    cells: Some(cells),
    ..Kind::COUNTED
};

const COUNTERS: [&str; 6] = [
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
];

const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    workloads::counters(errors, object, change, &COUNTERS, &PARTS, "");
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    if common::warnings::has_next_generation(object, old) {
        if old.is_none() {
            common::warnings::named_as_host(warnings, object, common::warnings::POD_NAMES);
        }
        workloads::warn_about_template(warnings, get(object, "spec"));
    }
}

/// Sets the defaults of a `ReplicaSet`.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_ReplicaSet`.
pub(crate) fn set_defaults(object: &mut Value) {
    counted_status(object, &["replicas"]);
    if let Some(spec) = with_template(object) {
        fill(spec, "replicas", 1);
    }
}

/// Validates a `ReplicaSet`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateReplicaSet` and `ValidateReplicaSetUpdate`.
/// Rule: VLO-13, VLO-14.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    errors.none_negative(&path, spec, &["replicas", "minReadySeconds"]);
    selector(errors, &path, spec, "deployment");
    template_of_replica_set(errors, &path, spec);
    if let Some(change) = change {
        selector_stays(errors, spec, change);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    replicated(object, context, label_selector(at(object, &["spec", "selector"])))
}
