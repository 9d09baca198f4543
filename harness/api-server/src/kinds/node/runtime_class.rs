//! Implements `RuntimeClass` objects.

use std::collections::BTreeSet;

use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;
use kubernetes_types::{json, names};
use serde_json::{Value, json};

use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, Path, entries, get, list, set, text};
use crate::kinds::common::resources::Owner;
use crate::kinds::common::warnings::Warnings;
use crate::kinds::common::{formats, resources};
use crate::kinds::core::pod;
use crate::kinds::core::pod::validation::scheduling;
use crate::kinds::kind::Kind;

/// The behavior of `RuntimeClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "node.k8s.io",
    resource: "runtimeclasses",
    kind: "RuntimeClass",
    has_core_finalizers: false,
    requires_resource_version: true,
    is_created_by_update: true,
    validate,
    warn,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Validates a `RuntimeClass`.
///
/// Source: kubernetes pkg/apis/node/validation/validation.go; `pkg/apis/node/v1/zz_generated.validations.go`.
/// Rule: VLO-34.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, handler) = (Path::new("handler"), text(object, "handler"));
    // Generated validation reports a change.
    let is_changed = change.is_some_and(|change| !change.is_same(&["handler"]));
    if is_changed {
        formats::stays_by_type(errors, &path);
    }
    if handler.is_empty() {
        errors.required_by_type(&path);
    } else {
        for why in names::dns1123_label(handler) {
            let error = |why| FieldError::invalid(path.to_string(), quote(handler), why);
            // In this case, generated validation reports only the change and does not replace the handwritten error.
            if is_changed {
                errors.push(error(why));
            } else {
                errors.generated(error(why.replace("63 characters", "63 bytes")));
            }
        }
    }
    if let Some(overhead) = set(object, "overhead") {
        let limits = json!({"limits": get(overhead, "podFixed")});
        let claims = BTreeSet::new();
        resources::requirements(errors, &Path::new("overhead"), &limits, Owner::Container, &claims);
    }
    if let Some(scheduling) = set(object, "scheduling") {
        let path = Path::new("scheduling");
        formats::labels(errors, &path.child("nodeSelector"), get(scheduling, "nodeSelector"));
        let path = path.child("tolerations");
        scheduling::tolerations(errors, &path, list(scheduling, "tolerations"));
    }
}

/// Warns about deprecated node labels in a `RuntimeClass`.
///
/// Source: kubernetes pkg/api/node/util.go.
pub(crate) fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    for (label, _) in entries(get(object, "scheduling"), "nodeSelector") {
        if let Some(message) = pod::warnings::deprecated_label(label) {
            warnings.push(format!("scheduling.nodeSelector: {message}"));
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![name(object), json::text(object, &["handler"]), age_of(object, context)]
}
