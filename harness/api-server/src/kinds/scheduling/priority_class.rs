//! Implements `PriorityClass` objects.

use kubernetes_types::json;
use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, is_true, name, number, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill_pointer};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, flag, get, int, text, word};
use crate::kinds::kind::Kind;

/// The behavior of `PriorityClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "scheduling.k8s.io",
    resource: "priorityclasses",
    kind: "PriorityClass",
    set_defaults: Some(set_defaults),
    starts_generation: true,
    validate,
    forbids_deletion,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Upstream does not check the deletion of a collection.
///
/// Source: kubernetes pkg/registry/scheduling/priorityclass/storage/storage.go, `Delete`.
/// Rule: KND-17.
fn forbids_deletion(name: &str) -> Option<&'static str> {
    let is_system = ["system-node-critical", "system-cluster-critical"].contains(&name);
    is_system.then_some("this is a system priority class and cannot be deleted")
}

/// Sets the defaults of a `PriorityClass`.
///
/// Source: kubernetes pkg/apis/scheduling/v1/defaults.go.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    fill_pointer(object, "preemptionPolicy", "PreemptLowerPriority");
}

/// Validates a `PriorityClass`.
///
/// Source: kubernetes pkg/apis/scheduling/validation/validation.go, `ValidatePriorityClass` and
/// `ValidatePriorityClassUpdate`; pkg/apis/scheduling/v1/helpers.go, `IsKnownSystemPriorityClass`.
/// Rule: VLO-23.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    /// The maximum value of a user-defined priority class.
    const HIGHEST_USER_DEFINABLE_PRIORITY: i64 = 1_000_000_000;
    if let Some(change) = change {
        let value = |object| int(object, "value").unwrap_or(0);
        if value(object) != value(change.old) {
            errors.forbidden(&Path::new("value"), "may not be changed in an update.");
        }
        if !change.is_same(&["preemptionPolicy"]) {
            let policy = encode(get(object, "preemptionPolicy"));
            errors.invalid(&Path::new("preemptionPolicy"), policy, IMMUTABLE);
        }
        return;
    }
    let name = text(get(object, "metadata"), "name");
    let value = int(object, "value").unwrap_or(0);
    if name.starts_with("system-") {
        let known = match name {
            "system-node-critical" => Some(2_000_001_000),
            "system-cluster-critical" => Some(2_000_000_000),
            _ => None,
        };
        let why = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some(known) if known != value => Some(format!("value of {name} PriorityClass must be {known}")),
            Some(_) if flag(object, "globalDefault") => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(why) = why {
            let path = Path::new("metadata");
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            errors.forbidden(&path.child("name"), why);
        }
    } else if value > HIGHEST_USER_DEFINABLE_PRIORITY {
        let why =
            format!("maximum allowed value of a user defined priority is {HIGHEST_USER_DEFINABLE_PRIORITY}");
        errors.forbidden(&Path::new("value"), why);
    }
    if let Some(policy) = word(object, "preemptionPolicy") {
        let policies = ["PreemptLowerPriority", "Never"];
        errors.required_one_of(&Path::new("preemptionPolicy"), policy, &policies);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    row![
        name(object),
        number(object, &["value"]),
        is_true(object, &["globalDefault"]),
        age_of(object, context),
        json::text(object, &["preemptionPolicy"]),
    ]
}
