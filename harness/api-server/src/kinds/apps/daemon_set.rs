//! Implements `DaemonSet` objects.

use kubernetes_types::equality::same;
use kubernetes_types::json::{at, set};
use kubernetes_types::schema::Type;
use serde_json::{Value, json};

use crate::kinds::common;
use crate::kinds::common::cells::{
    Context, age_of, containers, items, label_selector, labels, name, number, row,
};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{annotations, ensure, fill, fill_pointer};
use crate::kinds::common::fields::{Errors, Path, get, text};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{fields, formats, preparation, selectors};
use crate::kinds::core::workloads::{
    counted_status, keeps_running, labels_match, rolling_update, selector_stays, unknown_strategy,
    with_template,
};
use crate::kinds::core::{pod, workloads};
use crate::kinds::kind::Kind;

/// The behavior of `DaemonSet` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "daemonsets",
    kind: "DaemonSet",
    set_defaults: Some(set_defaults),
    through_internal: Some(through_internal),
    into_internal: Some(("v1", into_internal)),
    drop_disabled_fields: workloads::drop_of_template,
    prepare_create: |object| preparation::set_annotation(object, TEMPLATE_GENERATION, "1"),
    finish_update: count_template,
    validate,
    validate_subresources: &[("status", validate_status)],
    warn,
    fill_empty: |object| {
        set(object, &["metadata", "annotations"], json!({TEMPLATE_GENERATION: "0"}));
    },
    cells: Some(cells),
    internal_annotations: &[("v1", &[TEMPLATE_GENERATION])],
    ..Kind::COUNTED
};

const COUNTERS: [&str; 9] = [
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    workloads::counters(errors, object, change, &COUNTERS, &[], "");
}

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let generation = |set| text(get(get(set, "metadata"), "annotations"), TEMPLATE_GENERATION);
    if old.is_none_or(|old| generation(old) != generation(object)) {
        workloads::warn_about_template(warnings, get(object, "spec"));
    }
}

/// Increments the generation of the template if the template changes.
fn count_template(object: &mut Value, old: &Value, of: Type) {
    let pointer = format!("/metadata/annotations/{TEMPLATE_GENERATION}");
    let generation = old.pointer(&pointer).and_then(Value::as_str).unwrap_or_default();
    let mut generation: i64 = generation.parse().unwrap_or(0);
    let path = ["spec", "template"];
    if !same(at(object, &path), at(old, &path), of.member("spec").member("template")) {
        generation = generation.wrapping_add(1);
    }
    preparation::set_annotation(object, TEMPLATE_GENERATION, &generation.to_string());
}

/// Keeps the generation of the template, which the internal type has as a field.
fn into_internal(object: &mut Value, before: &Value) {
    common::defaults::keep_annotations(object, before, &[TEMPLATE_GENERATION]);
    through_internal(object);
}

/// Source: `Convert_v1_DaemonSet_To_apps_DaemonSet` and back.
pub(crate) fn through_internal(object: &mut Value) {
    if let Some(annotations) = annotations(object) {
        fill_pointer(annotations, TEMPLATE_GENERATION, "0");
    }
}

/// Sets the defaults of a `DaemonSet`.
///
/// Source: kubernetes pkg/apis/apps/v1/defaults.go, `SetDefaults_DaemonSet`.
pub(crate) fn set_defaults(object: &mut Value) {
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

/// The `apps/v1` annotation for the template generation of a `DaemonSet`. The internal type has a field for it.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Validates a `DaemonSet`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateDaemonSet` and `ValidateDaemonSetUpdate`;
/// pkg/registry/apps/daemonset/strategy.go, `ValidateUpdate`.
/// Rule: VLO-13, VLO-14, VLO-15.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
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
    pod::validation::template(errors, &path.child("template"), template, None);
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
            let Some(rolling) = fields::set(strategy, "rollingUpdate") else {
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

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let pods = at(object, &["spec", "template", "spec"]);
    let (names, images) = containers(items(pods, &["containers"]));
    row![
        name(object),
        number(object, &["status", "desiredNumberScheduled"]),
        number(object, &["status", "currentNumberScheduled"]),
        number(object, &["status", "numberReady"]),
        number(object, &["status", "updatedNumberScheduled"]),
        number(object, &["status", "numberAvailable"]),
        labels(at(pods, &["nodeSelector"])),
        age_of(object, context),
        names,
        images,
        label_selector(at(object, &["spec", "selector"])),
    ]
}
