//! Implements Deployments.

use kubernetes_types::json::{at, set};
use serde_json::{Value, json};

use crate::kinds::common;
use crate::kinds::common::cells::{Context, age_of, containers, items, name, number, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill};
use crate::kinds::common::fields::{Errors, Path, get, int, text};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{fields, formats};
use crate::kinds::core::workloads;
use crate::kinds::core::workloads::{
    ready, rolling_update, selector, selector_stays, template_of_replica_set, unknown_strategy, with_template,
};
use crate::kinds::kind::{Changes, Kind, StatusKeeps};

/// The behavior of Deployments.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "deployments",
    kind: "Deployment",
    set_defaults: Some(set_defaults),
    drop_disabled_fields: workloads::drop_of_template,
    next_generation: Changes::Of(&[&["spec"], &["metadata", "annotations"]]),
    status_keeps: StatusKeeps::Fields(&["labels"]),
    reset_fields: &[("status", &[&["spec"], &["metadata", "labels"]])],
    validate,
    validate_subresources: &[("status", validate_status)],
    warn,
    fill_empty: |object| {
        set(object, &["spec", "replicas"], 0);
    },
    cells: Some(cells),
    ..Kind::COUNTED
};

const COUNTERS: [&str; 8] = [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
];

const PARTS: [&str; 3] = ["updatedReplicas", "readyReplicas", "availableReplicas"];

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    workloads::counters(errors, object, change, &COUNTERS, &PARTS, "");
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    workloads::warn_about_name_and_template(warnings, object, old, get(object, "spec"));
}

/// Sets the defaults of a Deployment.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_Deployment`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "status");
    let Some(spec) = with_template(object) else { return };
    fill(spec, "replicas", 1);
    if let Some(strategy) = ensure(spec, "strategy") {
        rolling_update(strategy, &json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
}

/// Validates a Deployment.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateDeployment` and `ValidateDeploymentUpdate`.
/// Rule: VLO-13, VLO-14, VLO-15.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    errors.none_negative(&path, spec, &["replicas"]);
    selector(errors, &path, spec, "deployment");
    template_of_replica_set(errors, &path, spec);
    deployment_strategy(errors, &path.child("strategy"), get(spec, "strategy"));
    errors.none_negative(
        &path,
        spec,
        &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
    );
    let ready = int(spec, "minReadySeconds").unwrap_or(0);
    if let Some(deadline) = int(spec, "progressDeadlineSeconds").filter(|deadline| *deadline <= ready) {
        let why = "must be greater than minReadySeconds";
        errors.invalid(&path.child("progressDeadlineSeconds"), deadline, why);
    }
    if let Some(change) = change {
        selector_stays(errors, spec, change);
    }
}

fn deployment_strategy(errors: &mut Errors, path: &Path<'_>, strategy: &Value) {
    let rolling_path = path.child("rollingUpdate");
    let rolling = fields::set(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "Recreate" => {
            if rolling.is_some() {
                errors.forbidden(&rolling_path, "may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else {
                errors.required(&rolling_path, "this should be defaulted and never be nil");
                return;
            };
            let (unavailable, surge) = (get(rolling, "maxUnavailable"), get(rolling, "maxSurge"));
            let unavailable_path = rolling_path.child("maxUnavailable");
            formats::number_or_percent(errors, &unavailable_path, unavailable);
            formats::number_or_percent(errors, &rolling_path.child("maxSurge"), surge);
            if formats::amount(unavailable) == 0 && formats::amount(surge) == 0 {
                errors.invalid(&unavailable_path, unavailable, "may not be 0 when `maxSurge` is 0");
            }
            formats::at_most_all(errors, &unavailable_path, unavailable);
        }
        _ => unknown_strategy(errors, path, strategy, &["Recreate", "RollingUpdate"]),
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let (names, images) = containers(items(object, &["spec", "template", "spec", "containers"]));
    row![
        name(object),
        ready(object),
        number(object, &["status", "updatedReplicas"]),
        number(object, &["status", "availableReplicas"]),
        age_of(object, context),
        names,
        images,
        common::cells::selector(at(object, &["spec", "selector"])).unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}
