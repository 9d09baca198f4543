//! Implements `ReplicationController` objects.

use kubernetes_types::json::{at, set};
use kubernetes_types::quoting::encode;
use serde_json::{Value, json};

use crate::kinds::common::cells::{Context, labels};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill, is_empty, with};
use crate::kinds::common::fields::{Errors, NEGATIVE, Path, get, int, map};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{fields, formats, selectors};
use crate::kinds::core::workloads::{
    SELECTOR_MISMATCH, counted_status, keeps_running, labels_of_template, replicated,
};
use crate::kinds::core::{pod, workloads};
use crate::kinds::kind::Kind;

/// The behavior of `ReplicationController` objects.
pub(crate) const KIND: Kind = Kind {
    group: "",
    resource: "replicationcontrollers",
    kind: "ReplicationController",
    set_defaults: Some(set_defaults),
    has_name_by_type: true,
    orphans_dependents: true,
    drop_disabled_fields: workloads::drop_of_template,
    validate,
    validate_subresources: &[("status", workloads::replica_status)],
    warn,
    cells: Some(cells),
    selectable_fields: Some(&["metadata.name", "metadata.namespace", "status.replicas"]),
    ..Kind::COUNTED
};

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    // An update warns about the replaced template.
    let spec = get(old.unwrap_or(object), "spec");
    workloads::warn_about_name_and_template(warnings, object, old, spec);
}

/// Sets the defaults of a `ReplicationController`: its labels and selector default to the labels of its template.
///
/// Source: kubernetes pkg/apis/core/v1/defaults.go, `SetDefaults_ReplicationController`.
pub(crate) fn set_defaults(object: &mut Value) {
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
    with(spec, "template", pod::defaults::template);
}

/// Validates a `ReplicationController`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateReplicationControllerSpec`;
/// `pkg/apis/core/v1/zz_generated.validations.go`.
/// Rule: VLO-13, VLO-14.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let labels = get(spec, "selector");
    let selector = json!({"matchLabels": labels});
    if selectors::is_empty(&selector) {
        errors.required(&path.child("selector"), "");
    }
    match fields::set(spec, "template") {
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
            pod::validation::template(errors, &path.child("template"), template, None);
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

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    replicated(object, context, labels(at(object, &["spec", "selector"])))
}
