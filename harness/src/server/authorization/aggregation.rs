//! Keeps the `ClusterRoles` up to date whose rules are gathered from others.
//!
//! kube-controller-manager does that in a cluster. No controller runs here, and without it the roles `admin`, `edit` and
//! `view` would allow nothing.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::storage::{Key, ObjectReader as _, Storage};
use crate::authorizer::{RBAC_GROUP, aggregated_rules};
use crate::json::set;
use crate::ownership::{Manager, Write};

const CONTROLLER: &str = "clusterrole-aggregation-controller";

/// How often roles may gather from roles that gather: more than a sensible cluster has, and an end for one that is not.
const ROUNDS: usize = 8;

/// Fills in the rules of those `objects` that gather them.
pub(super) fn aggregate(objects: &mut [Value]) {
    for _ in 0..ROUNDS {
        let all: Vec<Arc<Value>> = objects.iter().cloned().map(Arc::new).collect();
        let mut changed = false;
        for object in objects.iter_mut() {
            if let Some(rules) = outdated(object, &all) {
                set(object, &["rules"], rules);
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// Fills in the rules of the stored roles that gather them.
pub(in crate::server) fn reconcile(storage: &Storage) {
    for _ in 0..ROUNDS {
        let all = storage.list(RBAC_GROUP, "clusterroles", "");
        let outdated: Vec<(&Arc<Value>, Value)> =
            all.iter().filter_map(|role| Some((role, outdated(role, &all)?))).collect();
        if outdated.is_empty() {
            return;
        }
        for (stored, rules) in outdated {
            let mut role = (**stored).clone();
            set(&mut role, &["rules"], rules);
            let key = Key {
                group: RBAC_GROUP.to_owned(),
                resource: "clusterroles".to_owned(),
                namespace: String::new(),
                name: super::super::metadata::text(stored, "name").to_owned(),
            };
            let by = Manager {
                name: CONTROLLER.to_owned(),
                api_version: format!("{RBAC_GROUP}/v1"),
                subresource: String::new(),
            };
            let write = Write { old: Some(stored), new: &role, by, reset: &[], built_in: true };
            let (owners, _) = storage.owners(&key).after(&write);
            // The writer that was faster aggregates as well.
            let _ = storage.replace(&key, Some(stored), role, owners);
        }
    }
}

/// The rules that a role should have, if it has others.
fn outdated(role: &Value, all: &[Arc<Value>]) -> Option<Value> {
    let rules = aggregated_rules(role, all)?;
    let current = role.get("rules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    (rules != current).then(|| json!(rules))
}
