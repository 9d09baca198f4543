//! Implements `HorizontalPodAutoscaler` objects.

pub(crate) mod columns;
pub(crate) mod defaults;
pub(crate) mod validation;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::cluster_state::ConversionError;
use kubernetes_types::schema::Type;
use kubernetes_types::status::Unsupported;
use serde_json::Value;

use crate::kinds::autoscaling::horizontal_pod_autoscaler;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::conversion::horizontal_pod_autoscaler::{METRICS, ROUND_TRIP};
use crate::kinds::kind::Kind;
use crate::kinds::{common, conversion};

/// The behavior of `HorizontalPodAutoscaler` objects.
pub(crate) const KIND: Kind = Kind {
    group: "autoscaling",
    resource: "horizontalpodautoscalers",
    kind: "HorizontalPodAutoscaler",
    versions: &["v1", "v2"],
    set_defaults: Some(set_defaults),
    through_internal: Some(through_internal),
    into_internal: Some(("v1", into_internal)),
    validate,
    validate_subresources: &[("status", validate_status)],
    cells: Some(horizontal_pod_autoscaler::columns::cells),
    internal_annotations: &[("v1", &ROUND_TRIP)],
    ..Kind::COUNTED
};

fn is_version_1(object: &Value) -> bool {
    object.get("apiVersion").is_some_and(|version| version == "autoscaling/v1")
}

fn set_defaults(object: &mut Value) {
    if is_version_1(object) {
        horizontal_pod_autoscaler::defaults::version_1(object);
    } else {
        horizontal_pod_autoscaler::defaults::version_2(object);
    }
}

fn through_internal(object: &mut Value) {
    if is_version_1(object) {
        horizontal_pod_autoscaler::defaults::version_1_through_internal(object);
    } else {
        horizontal_pod_autoscaler::defaults::version_2_through_internal(object);
    }
}

fn into_internal(object: &mut Value, before: &Value) {
    let kept: Vec<&str> = ROUND_TRIP.iter().copied().filter(|name| *name != METRICS).collect();
    common::defaults::keep_annotations(object, before, &kept);
    horizontal_pod_autoscaler::defaults::version_1_into_internal(object, before);
}

fn version_2() -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", "v2", "HorizontalPodAutoscaler")
}

/// Returns an autoscaler of any version in `autoscaling/v2`; `None` if admit cannot convert it.
fn in_version_2(errors: &mut Errors, object: &Value) -> Option<Value> {
    let converted = conversion::convert(object, &version_2(), conversion::Strategy::Scheme);
    let unsupported = match converted {
        Ok(converted) => return Some(converted),
        Err(ConversionError::Unsupported(unsupported)) => unsupported,
        Err(
            ConversionError::Refused(_) | ConversionError::ByWebhook(_) | ConversionError::TooManyRequests,
        ) => Unsupported { what: "validation of this HorizontalPodAutoscaler".to_owned() },
    };
    errors.cannot_validate(&unsupported.what);
    None
}

fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let Some(new) = in_version_2(errors, object) else { return };
    let old = match change {
        None => None,
        Some(change) => match in_version_2(errors, change.old) {
            Some(old) => Some(old),
            None => return,
        },
    };
    let change = old.as_ref().map(|old| Change { new: &new, old, of: Type::for_kind(&version_2()) });
    horizontal_pod_autoscaler::validation::autoscaler(errors, &new, change);
}

fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    if let Some(new) = in_version_2(errors, object)
        && in_version_2(errors, change.old).is_some()
    {
        horizontal_pod_autoscaler::validation::status(errors, &new);
    }
}
