//! Converts objects between versions.

pub(crate) mod event;
pub(crate) mod go_json;
pub(crate) mod horizontal_pod_autoscaler;
pub(crate) mod metrics;

use std::sync::Arc;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::{ByWebhook, ConversionError};
use kubernetes_admission::config::ConversionWebhook;
use kubernetes_types::status::Unsupported;
use serde_json::Value;

/// The conversion strategy of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// The server's scheme converts objects.
    Scheme,
    /// Conversion changes only `apiVersion`: `spec.conversion.strategy: None`.
    None,
    /// A webhook converts objects: `spec.conversion.strategy: Webhook`.
    ///
    /// The error is the reason why the configuration is invalid.
    Webhook(Result<Arc<ConversionWebhook>, Unsupported>),
}

/// Converts `object` to the version of `kind`.
///
/// # Errors
/// Returns [`ConversionError`] if the server cannot convert between the two kinds, if admit does not support the
/// conversion, or if a webhook must convert the object.
///
/// Source: apiserver pkg/admission/conversion.go; apiextensions-apiserver pkg/apiserver/conversion/converter.go and
/// `nop_converter.go`.
pub(crate) fn convert(
    object: &Value,
    kind: &GroupVersionKind,
    strategy: Strategy,
) -> Result<Value, ConversionError> {
    let from = GroupVersionKind::from_object(object);
    if from == *kind {
        return Ok(object.clone());
    }
    let is_same_kind = (&from.group, &from.kind) == (&kind.group, &kind.kind);
    match strategy {
        // An object with only `apiVersion` and `kind` does not need the webhook.
        Strategy::Webhook(_)
            if is_same_kind && object.as_object().is_some_and(|members| members.len() == 2) =>
        {
            Ok(with_api_version(object, kind))
        }
        Strategy::Webhook(webhook) if is_same_kind => {
            let asked = ByWebhook { webhook: webhook?, object: object.clone(), kind: kind.clone() };
            Err(ConversionError::ByWebhook(Box::new(asked)))
        }
        Strategy::None if is_same_kind => Ok(with_api_version(object, kind)),
        Strategy::None | Strategy::Webhook(_) => Err(ConversionError::Refused(format!(
            "request to convert CR to an invalid group/version: {}",
            kind.api_version()
        ))),
        Strategy::Scheme => by_scheme(object, &from, kind),
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
