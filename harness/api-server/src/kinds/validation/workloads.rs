//! Validates workloads: Deployments and similar kinds.

use std::collections::HashSet;

use kubernetes_types::quoting::encode;
use serde_json::{Value, json};

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, NEGATIVE, Path, get, int, list, map, set, text, word};
use crate::kinds::common::internal::Form;
use crate::kinds::common::{formats, selectors};
use crate::kinds::validation::{pod, storage};

const SELECTOR_MISMATCH: &str = "`selector` does not match template `labels`";

/// Validates that the selector of a workload matches the labels of its template.
fn labels_match(errors: &mut Errors, path: &Path<'_>, selector: &Value, template: &Value) {
    if selectors::picks(selector, template) == Some(false) {
        let labels = get(get(template, "metadata"), "labels");
        let path = path.child("template");
        let path = path.child("metadata");
        errors.invalid(&path.child("labels"), encode(labels), SELECTOR_MISMATCH);
    }
}

/// Validates the restart policy and the deadline in the pod template of a long-running workload.
fn keeps_running(errors: &mut Errors, path: &Path<'_>, template: &Value, kind: &str) {
    let spec = get(template, "spec");
    let path = path.child("template");
    let path = path.child("spec");
    errors.one_of(&path.child("restartPolicy"), Some(text(spec, "restartPolicy")), &["Always"]);
    if set(spec, "activeDeadlineSeconds").is_some() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&path.child("activeDeadlineSeconds"), why);
    }
}

/// Validates the required selector of a workload.
fn selector(errors: &mut Errors, path: &Path<'_>, spec: &Value, kind: &str) {
    let path = path.child("selector");
    let Some(selector) = set(spec, "selector") else {
        errors.required(&path, "");
        return;
    };
    selectors::label_selector(errors, &path, selector);
    if selectors::is_empty(selector) {
        errors.invalid(&path, "{}", format!("empty selector is invalid for {kind}"));
    }
}

/// Validates that an update does not change the selector.
fn selector_stays(errors: &mut Errors, spec: &Value, change: Change<'_>) {
    if !change.is_same(&["spec", "selector"]) {
        let path = Path::new("spec");
        let shown = selectors::shown(get(spec, "selector"));
        errors.invalid(&path.child("selector"), shown, IMMUTABLE);
    }
}

/// Validates the template of a `ReplicaSet`, or of a Deployment, because a Deployment creates `ReplicaSet`s.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidatePodTemplateSpecForReplicaSet`.
fn template_of_replica_set(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let (selector, template) = (get(spec, "selector"), get(spec, "template"));
    if selectors::picks(selector, template).is_none() {
        errors.invalid(&path.child("selector"), selectors::shown(selector), "invalid label selector");
        return;
    }
    labels_match(errors, path, selector, template);
    pod::template(errors, &path.child("template"), template, None);
    keeps_running(errors, path, template, "ReplicaSet");
}

/// Validates a Deployment.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateDeployment` and `ValidateDeploymentUpdate`.
/// Rule: VLO-13, VLO-14, VLO-15.
pub(crate) fn deployment(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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
    let rolling = set(strategy, "rollingUpdate");
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

/// Reports an unknown strategy type. The error contains the strategy as a value of the internal Go type.
fn unknown_strategy(errors: &mut Errors, path: &Path<'_>, strategy: &Value, supported: &[&str]) {
    let rolling = set(strategy, "rollingUpdate");
    let member = |name: &str, field: &str| {
        let rolling = rolling?;
        Some(format!("{}:{}", Value::from(name), set(rolling, field).unwrap_or(&json!(0))))
    };
    let members: Vec<String> = [member("MaxUnavailable", "maxUnavailable"), member("MaxSurge", "maxSurge")]
        .into_iter()
        .flatten()
        .collect();
    let rolling = if rolling.is_some() { format!("{{{}}}", members.join(",")) } else { "null".to_owned() };
    let shown = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", encode(get(strategy, "type")));
    let supported: Vec<String> = supported.iter().map(|text| Value::from(*text).to_string()).collect();
    errors.push(kubernetes_types::status::FieldError::not_supported(
        path.to_string(),
        shown,
        supported.join(", "),
    ));
}

/// Validates a `ReplicaSet`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateReplicaSet` and `ValidateReplicaSetUpdate`.
/// Rule: VLO-13, VLO-14.
pub(crate) fn replica_set(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    errors.none_negative(&path, spec, &["replicas", "minReadySeconds"]);
    selector(errors, &path, spec, "deployment");
    template_of_replica_set(errors, &path, spec);
    if let Some(change) = change {
        selector_stays(errors, spec, change);
    }
}

/// Validates a `ReplicationController`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateReplicationControllerSpec`;
/// `pkg/apis/core/v1/zz_generated.validations.go`.
/// Rule: VLO-13, VLO-14.
pub(crate) fn replication_controller(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let labels = get(spec, "selector");
    let selector = json!({"matchLabels": labels});
    if selectors::is_empty(&selector) {
        errors.required(&path.child("selector"), "");
    }
    match set(spec, "template") {
        None => errors.required(&path.child("template"), ""),
        Some(template) => {
            // This selector is a plain map with arbitrary values.
            let template_labels = get(get(template, "metadata"), "labels");
            let is_picked = map(spec, "selector").is_none_or(|labels| {
                labels.iter().all(|(name, value)| template_labels.get(name) == Some(value))
            });
            if !is_picked {
                let path = path.child("template");
                let path = path.child("metadata");
                errors.invalid(&path.child("labels"), encode(template_labels), SELECTOR_MISMATCH);
            }
            pod::template(errors, &path.child("template"), template, None);
            keeps_running(errors, &path, template, "ReplicationController");
        }
    }
    // These rules are from generated validation.
    formats::name_by_type(errors, object);
    for field in ["replicas", "minReadySeconds"] {
        if let Some(number) = int(spec, field).filter(|number| *number < 0) {
            errors.invalid_by_type(&path.child(field), &number.to_string(), NEGATIVE);
        }
    }
}

/// Validates a `DaemonSet`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateDaemonSet` and `ValidateDaemonSetUpdate`;
/// pkg/registry/apps/daemonset/strategy.go, `ValidateUpdate`.
/// Rule: VLO-13, VLO-14, VLO-15.
pub(crate) fn daemon_set(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let (selector, template) = (get(spec, "selector"), get(spec, "template"));
    if let Some(change) = change {
        selector_stays(errors, spec, change);
    }
    selectors::label_selector(errors, &path.child("selector"), selector);
    labels_match(errors, &path, selector, template);
    if !selector.is_null() && selectors::is_empty(selector) {
        errors.invalid(&path.child("selector"), "{}", "empty selector is invalid for daemonset");
    }
    pod::template(errors, &path.child("template"), template, None);
    keeps_running(errors, &path, template, "DaemonSet");
    errors.none_negative(&path, spec, &["minReadySeconds"]);
    daemon_set_strategy(errors, &path.child("updateStrategy"), get(spec, "updateStrategy"));
    errors.none_negative(&path, spec, &["revisionHistoryLimit"]);
}

fn daemon_set_strategy(errors: &mut Errors, path: &Path<'_>, strategy: &Value) {
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let Some(rolling) = set(strategy, "rollingUpdate") else {
                errors.required(&path, "");
                return;
            };
            let fields = ["maxUnavailable", "maxSurge"];
            for field in fields {
                formats::number_or_percent(errors, &path.child(field), get(rolling, field));
            }
            for field in fields {
                formats::at_most_all(errors, &path.child(field), get(rolling, field));
            }
            match fields.map(|field| formats::amount(get(rolling, field)) != 0) {
                [true, true] => {
                    let surge = get(rolling, "maxSurge");
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.invalid(&path.child("maxSurge"), surge, why);
                }
                [false, false] => {
                    errors.required(&path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0");
                }
                [true, false] | [false, true] => {}
            }
        }
        _ => unknown_strategy(errors, path, strategy, &["RollingUpdate", "OnDelete"]),
    }
}

/// Validates a `StatefulSet`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateStatefulSet` and `ValidateStatefulSetUpdate`.
/// Rule: VLO-13, VLO-14, VLO-15.
pub(crate) fn stateful_set(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let policy_path = path.child("podManagementPolicy");
    match text(spec, "podManagementPolicy") {
        "" => errors.required(&policy_path, ""),
        "OrderedReady" | "Parallel" => {}
        other => errors.invalid_text(&policy_path, other, "must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_set_strategy(errors, &path.child("updateStrategy"), get(spec, "updateStrategy"));
    let retention = path.child("persistentVolumeClaimRetentionPolicy");
    if let Some(policy) = set(spec, "persistentVolumeClaimRetentionPolicy") {
        for field in ["whenDeleted", "whenScaled"] {
            errors.one_of(&retention.child(field), Some(text(policy, field)), &["Retain", "Delete"]);
        }
    }
    let claims = path.child("volumeClaimTemplates");
    // Claim templates are immutable, so an update does not validate them again.
    let new_claims = if change.is_none() { list(spec, "volumeClaimTemplates") } else { &[] };
    for (index, claim) in new_claims.iter().enumerate() {
        storage::claim_spec(errors, &claims.index(index).child("spec"), get(claim, "spec"));
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
        pod::template(errors, &path, template, Some(&volumes));
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

/// Validates a `ControllerRevision`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateControllerRevisionCreate` and
/// `ValidateControllerRevisionUpdate`.
/// Rule: VLO-42.
pub(crate) fn controller_revision(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    errors.not_negative(&Path::new("revision"), int(object, "revision"));
    let (path, data) = (Path::new("data"), get(object, "data"));
    match change {
        None if data.is_null() => errors.required(&path, "data is mandatory"),
        None if !data.is_object() => errors.required(&path, "data must be a valid JSON object"),
        Some(change) if !change.is_same(&["data"]) => errors.invalid(&path, encode(data), IMMUTABLE),
        None | Some(_) => {}
    }
}

fn stateful_set_strategy(errors: &mut Errors, path: &Path<'_>, strategy: &Value) {
    let rolling_path = path.child("rollingUpdate");
    let rolling = set(strategy, "rollingUpdate");
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
            if let Some(unavailable) = set(rolling, "maxUnavailable") {
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
