//! Implements `ReplicaSet` objects.

use kubernetes_types::json::{at, set};
use serde_json::Value;

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
    validate_subresources: &[("status", workloads::replica_status)],
    warn,
    fill_empty: |object| {
        set(object, &["spec", "replicas"], 0);
    },
    cells: Some(cells),
    ..Kind::COUNTED
};

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    workloads::warn_about_name_and_template(warnings, object, old, get(object, "spec"));
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
