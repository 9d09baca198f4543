//! Provides the validation that both kinds of `flowcontrol.apiserver.k8s.io` share.

use std::collections::HashSet;

use kubernetes_types::equality::semantically_equal;
use serde_json::{Value, json};

use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, get, list, text};

/// Validates the conditions in the status of a flow schema or a priority level.
///
/// Source: kubernetes pkg/apis/flowcontrol/validation/validation.go, `ValidateFlowSchemaStatus` and
/// `ValidatePriorityLevelConfigurationStatus`.
/// Rule: VLO-43.
pub(crate) fn conditions(errors: &mut Errors, object: &Value, _: Change<'_>) {
    validate_conditions(errors, object);
}

pub(crate) fn validate_conditions(errors: &mut Errors, object: &Value) {
    let path = Path::new("status");
    let path = path.child("conditions");
    let mut seen = HashSet::new();
    for (index, condition) in list(get(object, "status"), "conditions").iter().enumerate() {
        let (path, name) = (path.index(index), text(condition, "type"));
        if !seen.insert(name) {
            errors.duplicate(&path.child("type"), name);
        }
        if name.is_empty() {
            errors.required(&path.child("type"), "");
        }
    }
}

pub(crate) fn semantically_equal_specs(object: &Value, fixed: &Value) -> bool {
    let kind = kubernetes_admission::attributes::GroupVersionKind::from_object(object);
    let spec = |object: &Value| json!({"spec": get(object, "spec")});
    semantically_equal(&spec(object), &spec(fixed), &kind)
}
