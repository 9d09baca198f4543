//! Keeps the empty lists and maps of a request until its object is stored.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::schema::EmptyFields;
use serde_json::Value;

/// Finds the fields of an object that are set to an empty list or map, before the object is normalized.
///
/// `built_in` is the kind of a resource with a Go type. The server keeps such fields in custom resources and in the
/// objects of subresources.
pub(crate) fn find(
    object: &Value,
    kind: &GroupVersionKind,
    built_in: Option<&GroupVersionKind>,
) -> EmptyFields {
    if built_in == Some(kind) { EmptyFields::find(object, kind) } else { EmptyFields::default() }
}

/// Restores the empty lists that defaults do not replace: the `policies` of a `HorizontalPodAutoscaler`.
///
/// Source: kubernetes pkg/apis/autoscaling/v2/defaults.go, `copyHPAScalingRules`.
pub(crate) fn restore_over_defaults(empty_fields: &EmptyFields, group: &str, object: &mut Value) {
    if group == "autoscaling" {
        empty_fields.restore_over_defaults(object, "policies");
    }
}
