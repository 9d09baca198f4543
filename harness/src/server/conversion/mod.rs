//! The same object in another version.

mod event;
mod go_json;
mod horizontal_pod_autoscaler;
mod metrics;

pub(super) use self::horizontal_pod_autoscaler::ROUND_TRIP;

use serde_json::Value;

use crate::attributes::GroupVersionKind;
use crate::cluster_state::ConversionError;
use crate::status::Unsupported;

/// By whom objects of a kind are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Converter {
    /// The server's own scheme.
    Scheme,
    /// Nobody: a custom resource whose versions differ in their name only, by `spec.conversion.strategy: None`.
    None,
    /// The webhook of a custom resource's definition, which is not imitated: `spec.conversion.strategy: Webhook`.
    Webhook,
}

/// `object` in the version of `kind`.
///
/// # Errors
/// [`ConversionError`] when the server does not convert between the two kinds, or admit does not.
///
/// Source: apiserver pkg/admission/conversion.go; apiextensions-apiserver pkg/apiserver/conversion/converter.go and `nop_converter.go`.
pub(crate) fn convert(
    object: &Value,
    kind: &GroupVersionKind,
    converter: Converter,
) -> Result<Value, ConversionError> {
    let from = GroupVersionKind::of(object);
    if from == *kind {
        return Ok(object.clone());
    }
    match converter {
        Converter::Webhook if (&from.group, &from.kind) == (&kind.group, &kind.kind) => {
            let what = format!("conversion of {from} to {kind} by the webhook of its definition");
            Err(Unsupported { what }.into())
        }
        Converter::None if (&from.group, &from.kind) == (&kind.group, &kind.kind) => {
            Ok(with_api_version(object, kind))
        }
        Converter::None | Converter::Webhook => Err(ConversionError::Refused(format!(
            "request to convert CR to an invalid group/version: {}",
            kind.api_version()
        ))),
        Converter::Scheme => by_scheme(object, &from, kind),
    }
}

fn by_scheme(
    object: &Value,
    from: &GroupVersionKind,
    kind: &GroupVersionKind,
) -> Result<Value, ConversionError> {
    let versions = (from.group.as_str(), from.version.as_str(), kind.group.as_str(), kind.version.as_str());
    let converted = match (from.kind.as_str(), kind.kind.as_str(), versions) {
        (
            "HorizontalPodAutoscaler",
            "HorizontalPodAutoscaler",
            ("autoscaling", "v1", "autoscaling", "v2"),
        ) => horizontal_pod_autoscaler::to_version_2(object),
        (
            "HorizontalPodAutoscaler",
            "HorizontalPodAutoscaler",
            ("autoscaling", "v2", "autoscaling", "v1"),
        ) => horizontal_pod_autoscaler::to_version_1(object),
        ("Event", "Event", ("", "v1", "events.k8s.io", "v1")) => event::from_core(object),
        ("Event", "Event", ("events.k8s.io", "v1", "", "v1")) => event::to_core(object),
        _ => return Err(unsupported(from, kind)),
    };
    Ok(with_api_version(&converted, kind))
}

fn with_api_version(object: &Value, kind: &GroupVersionKind) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), Value::String(kind.api_version()));
        members.insert("kind".to_owned(), Value::String(kind.kind.clone()));
    }
    object
}

fn unsupported(from: &GroupVersionKind, kind: &GroupVersionKind) -> ConversionError {
    Unsupported { what: format!("conversion of {from} to {kind}") }.into()
}

#[cfg(test)]
mod tests;
