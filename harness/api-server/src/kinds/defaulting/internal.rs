//! Converts objects to the internal type of their kind and back.

use kubernetes_admission::attributes::GroupVersionKind;
use serde_json::Value;

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
