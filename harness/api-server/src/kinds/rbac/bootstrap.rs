//! Loads the roles and bindings that kube-apiserver creates when it starts.

use kubernetes_admission::authorizer::RBAC_GROUP;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::rbac::aggregation;
use crate::kinds::server_writes;
use crate::storage::InitialObjects;

/// The roles and bindings of a ready kube-apiserver 1.37.1, one per line, without UIDs, times, and `resourceVersion`s.
///
/// Source: kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy.
/// Rule: RBAC-21.
const OBJECTS: &str = include_str!("bootstrap.json");

/// The roles and bindings that a new server contains.
pub(crate) const INITIAL_OBJECTS: InitialObjects = InitialObjects {
    group: RBAC_GROUP,
    count: COUNT,
    read: |time| objects(time).into_iter().map(|object| (resource(&object), object)).collect(),
};

const COUNT: u64 = 141;

/// Returns the bootstrap objects as a server that started at `time` stores them.
fn objects(time: &str) -> Vec<Value> {
    let objects: Vec<Value> = serde_json::from_str(OBJECTS).unwrap_or_default();
    let mut objects: Vec<Value> = objects.into_iter().map(server_writes::made).collect();
    aggregation::aggregate(&mut objects);
    for object in &mut objects {
        metadata::set(object, "uid", uuid::Uuid::new_v4().to_string().into());
        metadata::set(object, "creationTimestamp", time.into());
    }
    objects
}

/// Returns the plural resource name of an object of the RBAC API.
fn resource(object: &Value) -> &'static str {
    match object.get("kind").and_then(Value::as_str) {
        Some("ClusterRole") => "clusterroles",
        Some("ClusterRoleBinding") => "clusterrolebindings",
        Some("Role") => "roles",
        _ => "rolebindings",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bootstrap_objects_are_counted_and_named() {
        let objects = objects("2026-01-01T00:00:00Z");
        assert_eq!(objects.len() as u64, COUNT);
        for object in &objects {
            assert!(!metadata::text(object, "name").is_empty(), "{object}");
            let is_local = ["roles", "rolebindings"].contains(&resource(object));
            assert_eq!(metadata::text(object, "namespace").is_empty(), !is_local, "{object}");
        }
    }

    #[test]
    fn aggregated_roles_have_rules() {
        let objects = objects("2026-01-01T00:00:00Z");
        let rules = |name: &str| {
            let role = objects.iter().find(|object| metadata::text(object, "name") == name).unwrap();
            role["rules"].as_array().unwrap().clone()
        };
        for rule in rules("system:aggregate-to-view") {
            for name in ["view", "edit", "admin"] {
                assert!(rules(name).contains(&rule), "{name}: {rule}");
            }
        }
    }
}
