//! Converts objects to the internal type of their kind and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{each, ensure, fill_pointer, has, remove, text, with};
use crate::kinds::conversion::horizontal_pod_autoscaler::{METRICS, ROUND_TRIP};
use crate::kinds::defaulting::autoscaling;
use crate::kinds::strategy::TEMPLATE_GENERATION;

/// Converts an object to the internal type and back. Returns whether the object may have changed. Is idempotent.
///
/// Source: kubernetes pkg/apis/apps/v1/conversion.go and pkg/apis/core/v1/conversion.go; apiextensions-apiserver
/// pkg/apis/apiextensions/v1/conversion.go.
pub(crate) fn through_internal(object: &mut Value) -> bool {
    match (text(object, "apiVersion"), text(object, "kind")) {
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => custom_resource_definition(object),
        ("apps/v1", "DaemonSet") => daemon_set(object),
        ("apps/v1", "StatefulSet") => stateful_set(object),
        ("autoscaling/v1", "HorizontalPodAutoscaler") => autoscaling::version_1_through_internal(object),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => autoscaling::version_2_through_internal(object),
        ("v1", "Node") => node(object),
        ("v1", "Secret") => secret(object),
        (_, _) => return false,
    }
    true
}

/// Returns whether a conversion into an existing internal object of this kind preserves fields of that object.
pub(crate) fn preserves_unpatched_fields(kind: &GroupVersionKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()),
        ("apps", "v1", "DaemonSet") | ("autoscaling", "v1", "HorizontalPodAutoscaler")
    )
}

/// Converts as [`through_internal`] does, but into the existing internal object `before`.
///
/// Callers must use this function if [`preserves_unpatched_fields`] returns true. Returns whether the object may have
/// changed.
pub(crate) fn into_internal(object: &mut Value, before: &Value) -> bool {
    match (text(object, "apiVersion"), text(object, "kind")) {
        ("apps/v1", "DaemonSet") => {
            keep_annotations(object, before, &[TEMPLATE_GENERATION]);
            daemon_set(object);
        }
        ("autoscaling/v1", "HorizontalPodAutoscaler") => {
            let kept: Vec<&str> = ROUND_TRIP.iter().copied().filter(|name| *name != METRICS).collect();
            keep_annotations(object, before, &kept);
            autoscaling::version_1_into_internal(object, before);
        }
        (_, _) => return through_internal(object),
    }
    true
}

/// Copies the annotations `names` from `before` to `object`, but keeps annotations that `object` already has.
fn keep_annotations(object: &mut Value, before: &Value, names: &[&str]) {
    let Some(before) = before.get("metadata").and_then(|metadata| metadata.get("annotations")) else {
        return;
    };
    for name in names {
        if let Some(value) = before.get(name)
            && let Some(annotations) = annotations(object)
        {
            fill_pointer(annotations, name, value.clone());
        }
    }
}

fn annotations(object: &mut Value) -> Option<&mut Value> {
    ensure(ensure(object, "metadata")?, "annotations")
}

/// Removes a conversion webhook without fields. The internal type cannot represent it.
///
/// Source: `Convert_v1_CustomResourceConversion_To_apiextensions_CustomResourceConversion` and back.
fn custom_resource_definition(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "conversion", |conversion| {
            let is_none =
                |webhook: &Value| !has(webhook, "clientConfig") && !has(webhook, "conversionReviewVersions");
            if conversion.get("webhook").is_some_and(is_none) {
                remove(conversion, "webhook");
            }
        });
    });
}

/// Source: `Convert_v1_DaemonSet_To_apps_DaemonSet` and back.
fn daemon_set(object: &mut Value) {
    if let Some(annotations) = annotations(object) {
        fill_pointer(annotations, TEMPLATE_GENERATION, "0");
    }
}

/// Source: `Convert_v1_StatefulSetSpec_To_apps_StatefulSetSpec` and back.
fn stateful_set(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    each(spec, "volumeClaimTemplates", |claim| {
        set(claim, &["apiVersion"], "v1");
        set(claim, &["kind"], "PersistentVolumeClaim");
    });
}

/// Source: `Convert_v1_NodeSpec_To_core_NodeSpec` and back.
fn node(object: &mut Value) {
    with(object, "spec", |spec| {
        let first = spec.pointer("/podCIDRs/0").and_then(Value::as_str).unwrap_or_default().to_owned();
        let singular = text(spec, "podCIDR").to_owned();
        if singular.is_empty() && !first.is_empty() {
            set(spec, &["podCIDR"], first);
        } else if singular != first {
            set(spec, &["podCIDRs"], json!([singular]));
        }
    });
}

/// Source: `Convert_v1_Secret_To_core_Secret`.
fn secret(object: &mut Value) {
    if let Some(Value::Object(plain)) = remove(object, "stringData")
        && !plain.is_empty()
        && let Some(encoded) = ensure(object, "data")
    {
        for (key, value) in plain {
            let value = STANDARD.encode(value.as_str().unwrap_or_default());
            set(encoded, &[&key], value);
        }
    }
}
