//! Converts objects to the internal type of their kind and back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::kinds::common::defaults::{each, ensure, fill_pointer, has, remove, text, with};
use crate::kinds::strategy::TEMPLATE_GENERATION;
use crate::kinds::table;

/// Converts an object to the internal type and back. Returns whether the object may have changed. Is idempotent.
///
/// Source: kubernetes pkg/apis/apps/v1/conversion.go and pkg/apis/core/v1/conversion.go; apiextensions-apiserver
/// pkg/apis/apiextensions/v1/conversion.go.
pub(crate) fn through_internal(object: &mut Value) -> bool {
    let kind = table::of_kind(&GroupVersionKind::from_object(object));
    let Some(through_internal) = kind.and_then(|kind| kind.through_internal) else { return false };
    through_internal(object);
    true
}

/// Returns whether a conversion into an existing internal object of this kind preserves fields of that object.
pub(crate) fn preserves_unpatched_fields(kind: &GroupVersionKind) -> bool {
    converter(kind).is_some()
}

fn converter(kind: &GroupVersionKind) -> Option<fn(&mut Value, &Value)> {
    let (version, convert) = table::of_kind(kind)?.into_internal?;
    (version == kind.version).then_some(convert)
}

/// Converts as [`through_internal`] does, but into the existing internal object `before`.
///
/// Callers must use this function if [`preserves_unpatched_fields`] returns true. Returns whether the object may have
/// changed.
pub(crate) fn into_internal(object: &mut Value, before: &Value) -> bool {
    let Some(convert) = converter(&GroupVersionKind::from_object(object)) else {
        return through_internal(object);
    };
    convert(object, before);
    true
}

/// Copies the annotations `names` from `before` to `object`, but keeps annotations that `object` already has.
pub(crate) fn keep_annotations(object: &mut Value, before: &Value, names: &[&str]) {
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
pub(crate) fn custom_resource_definition(object: &mut Value) {
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
pub(crate) fn daemon_set(object: &mut Value) {
    if let Some(annotations) = annotations(object) {
        fill_pointer(annotations, TEMPLATE_GENERATION, "0");
    }
}

/// Source: `Convert_v1_StatefulSetSpec_To_apps_StatefulSetSpec` and back.
pub(crate) fn stateful_set(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    each(spec, "volumeClaimTemplates", |claim| {
        set(claim, &["apiVersion"], "v1");
        set(claim, &["kind"], "PersistentVolumeClaim");
    });
}

/// Source: `Convert_v1_NodeSpec_To_core_NodeSpec` and back.
pub(crate) fn node(object: &mut Value) {
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
pub(crate) fn secret(object: &mut Value) {
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
