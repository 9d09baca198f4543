//! Implements `StatefulSet` objects.

use std::collections::HashSet;

use kubernetes_types::json::set;
use kubernetes_types::names;
use serde_json::{Value, json};

use crate::kinds::common;
use crate::kinds::common::cells::{Context, age_of, containers, items, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{each, ensure, fill, with};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, text, word};
use crate::kinds::common::internal::Form;
use crate::kinds::common::warnings::{Warnings, has_next_generation};
use crate::kinds::common::{fields, formats, selectors};
use crate::kinds::core::persistent_volume_claim::warn_about_spec;
use crate::kinds::core::workloads::{
    counted_status, keeps_running, labels_match, ready, selector, warn_about_template, with_template,
};
use crate::kinds::core::{persistent_volume_claim, pod, workloads};
use crate::kinds::kind::Kind;

/// The behavior of `StatefulSet` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "statefulsets",
    kind: "StatefulSet",
    set_defaults: Some(set_defaults),
    through_internal: Some(through_internal),
    validate_name: |name, _| {
        if name.contains('.') { vec!["must not contain dots".to_owned()] } else { names::dns1123_label(name) }
    },
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

const COUNTERS: [&str; 7] = [
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
];

const PARTS: [&str; 4] = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    workloads::counters(errors, object, change, &COUNTERS, &PARTS, "status.");
}

/// Source: `Convert_v1_StatefulSetSpec_To_apps_StatefulSetSpec` and back.
pub(crate) fn through_internal(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    each(spec, "volumeClaimTemplates", |claim| {
        set(claim, &["apiVersion"], "v1");
        set(claim, &["kind"], "PersistentVolumeClaim");
    });
}

/// Sets the defaults of a `StatefulSet`.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_StatefulSet`.
pub(crate) fn set_defaults(object: &mut Value) {
    counted_status(object, &["replicas", "availableReplicas"]);
    let Some(spec) = with_template(object) else { return };
    fill(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = ensure(spec, "updateStrategy") {
        if common::defaults::text(strategy, "type").is_empty() {
            fill(strategy, "type", "RollingUpdate");
            ensure(strategy, "rollingUpdate");
        }
        if common::defaults::text(strategy, "type") == "RollingUpdate" {
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
    each(spec, "volumeClaimTemplates", persistent_volume_claim::set_defaults);
}

pub(crate) fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let spec = get(object, "spec");
    if has_next_generation(object, old) {
        warn_about_template(warnings, spec);
    }
    let path = Path::new("spec");
    let path = path.child("volumeClaimTemplates");
    for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let item = path.index(index);
        // The path is also spelled differently in an update.
        let path = if old.is_some() { item.child("Spec") } else { item };
        warn_about_spec(warnings, &path, get(claim, "spec"));
    }
    if int(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        let message = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(format!("spec.revisionHistoryLimit: {message}"));
    }
}

/// Validates a `StatefulSet`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateStatefulSet` and `ValidateStatefulSetUpdate`.
/// Rule: VLO-13, VLO-14, VLO-15.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let policy_path = path.child("podManagementPolicy");
    match text(spec, "podManagementPolicy") {
        "" => errors.required(&policy_path, ""),
        "OrderedReady" | "Parallel" => {}
        other => errors.invalid_text(&policy_path, other, "must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_set_strategy(errors, &path.child("updateStrategy"), get(spec, "updateStrategy"));
    let retention = path.child("persistentVolumeClaimRetentionPolicy");
    if let Some(policy) = fields::set(spec, "persistentVolumeClaimRetentionPolicy") {
        for field in ["whenDeleted", "whenScaled"] {
            errors.one_of(&retention.child(field), Some(text(policy, field)), &["Retain", "Delete"]);
        }
    }
    let claims = path.child("volumeClaimTemplates");
    // Claim templates are immutable, so an update does not validate them again.
    let new_claims = if change.is_none() { list(spec, "volumeClaimTemplates") } else { &[] };
    for (index, claim) in new_claims.iter().enumerate() {
        persistent_volume_claim::validation::claim_spec(
            errors,
            &claims.index(index).child("spec"),
            get(claim, "spec"),
        );
    }
    errors.none_negative(&path, spec, &["replicas", "minReadySeconds"]);
    errors.not_negative(&path.child("ordinals.start"), int(get(spec, "ordinals"), "start"));
    if let Some(name) = word(spec, "serviceName").filter(|name| !name.is_empty())
        && change.is_none()
    {
        formats::dns_label(errors, &path.child("serviceName"), name);
    }
    selector(errors, &path, spec, "statefulset");
    let (selector, template) = (get(spec, "selector"), get(spec, "template"));
    if selectors::picks(selector, template).is_none() {
        errors.invalid(&path.child("selector"), selectors::shown(selector), "");
    } else {
        labels_match(errors, &path, selector, template);
        // Each Pod has a volume for each claim template.
        let mut seen = HashSet::new();
        let volumes: Vec<Value> = list(spec, "volumeClaimTemplates")
            .iter()
            .map(|claim| text(get(claim, "metadata"), "name"))
            .filter(|name| seen.insert(*name))
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
            .collect();
        let path = path.child("template");
        pod::validation::template(errors, &path, template, Some(&volumes));
    }
    keeps_running(errors, &path, template, "StatefulSet");
    let Some(change) = change else { return };
    for field in ["selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy"] {
        if change.is_same(&["spec", field]) {
            continue;
        }
        let path = path.child(field);
        match field {
            "selector" => errors.invalid(&path, selectors::shown(get(spec, field)), IMMUTABLE),
            "volumeClaimTemplates" => {
                let claims = errors.shown(Form::List, "core.PersistentVolumeClaim", get(spec, field));
                errors.invalid(&path, claims, IMMUTABLE);
            }
            _ => errors.invalid_text(&path, text(spec, field), IMMUTABLE),
        }
    }
}

fn stateful_set_strategy(errors: &mut Errors, path: &Path<'_>, strategy: &Value) {
    let rolling_path = path.child("rollingUpdate");
    let rolling = fields::set(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "" => errors.required(path, ""),
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let (of, why) = (
                    "apps.RollingUpdateStatefulSetStrategy",
                    "only allowed for updateStrategy 'RollingUpdate'",
                );
                errors.invalid_structure(&rolling_path, of, rolling, why);
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            errors.none_negative(&rolling_path, rolling, &["partition"]);
            let path = rolling_path.child("maxUnavailable");
            if let Some(unavailable) = fields::set(rolling, "maxUnavailable") {
                formats::number_or_percent(errors, &path, unavailable);
                if formats::amount(unavailable) == 0 {
                    errors.invalid(&path, unavailable, "cannot be 0");
                }
                formats::at_most_all(errors, &path, unavailable);
            }
        }
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.invalid_structure(path, "apps.StatefulSetUpdateStrategy", strategy, why);
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let (names, images) = containers(items(object, &["spec", "template", "spec", "containers"]));
    row![name(object), ready(object), age_of(object, context), names, images]
}
