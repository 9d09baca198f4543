//! Updates aggregated `ClusterRole`s.
//!
//! In a cluster, kube-controller-manager aggregates the rules of these roles. admit does not run that controller.
//! Without the aggregated rules, the roles `admin`, `edit`, and `view` would not allow any request.

use std::sync::Arc;

use kubernetes_admission::authorizer::{RBAC_GROUP, aggregated_rules};
use kubernetes_types::json::set;
use serde_json::{Value, json};

use crate::apimachinery::metadata;
use crate::kinds::server_writes;
use crate::storage::{Key, ObjectReader as _, Storage};

const CONTROLLER: &str = "clusterrole-aggregation-controller";

/// The maximum number of aggregation rounds. The limit prevents an infinite loop if roles aggregate each other.
const MAX_ROUNDS: usize = 8;

/// Fills in the rules of the aggregated roles among `objects`.
pub(crate) fn aggregate(objects: &mut [Value]) {
    for _ in 0..MAX_ROUNDS {
        let all: Vec<Arc<Value>> = objects.iter().cloned().map(Arc::new).collect();
        let mut changed = false;
        for object in objects.iter_mut() {
            if let Some(rules) = outdated(object, &all) {
                *object = with_rules(object, &rules);
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// Fills in the rules of the stored aggregated roles.
pub(crate) fn reconcile(storage: &Storage) {
    for _ in 0..MAX_ROUNDS {
        let all = storage.list(RBAC_GROUP, "clusterroles", "");
        let outdated: Vec<(&Arc<Value>, Value)> =
            all.iter().filter_map(|role| Some((role, outdated(role, &all)?))).collect();
        if outdated.is_empty() {
            return;
        }
        for (stored, rules) in outdated {
            let role = with_rules(stored, &rules);
            let name = metadata::text(stored, "name");
            let key = Key::cluster_scoped(RBAC_GROUP, "clusterroles", name);
            // If another write came first, that write also aggregates.
            let _ = storage.replace(&key, Some(stored), role);
        }
    }
}

/// Returns the role after the controller has applied these rules.
///
/// Source: k/k `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`, `updateClusterRoles`.
fn with_rules(role: &Value, rules: &Value) -> Value {
    let fields = json!({
        "apiVersion": role["apiVersion"],
        "kind": role["kind"],
        "metadata": {"name": metadata::text(role, "name")},
        "rules": rules,
    });
    let mut applied = server_writes::applied(role, &fields, CONTROLLER);
    set(&mut applied, &["rules"], rules.clone());
    applied
}

/// Returns the aggregated rules of a role; `None` if the role is not aggregated or already has these rules.
fn outdated(role: &Value, all: &[Arc<Value>]) -> Option<Value> {
    let rules = aggregated_rules(role, all)?;
    let current = role.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    (rules != current).then(|| json!(rules))
}
