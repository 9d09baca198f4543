//! Generates random roles and bindings, and users who have only the permissions in them.
//!
//! At most one namespaced binding and one cluster-wide binding apply to a user. If several applied, the server could
//! name any of them.

use serde_json::{Value, json};

use super::situation::{GROUP, Generator};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Returns random roles and their bindings.
pub(crate) fn roles(generator: &mut Generator<'_>) -> Vec<Value> {
    let scopes = generator.random.weighted(&[
        (45, &["Role"][..]),
        (35, &["ClusterRole"]),
        (20, &["Role", "ClusterRole"]),
    ]);
    let mut objects = Vec::new();
    for kind in scopes {
        let is_of_the_cluster = *kind == "ClusterRole";
        let name = if is_of_the_cluster { "does-<id>" } else { "does" };
        let count = generator.random.between(1, 2);
        let rules: Vec<Value> = (0..count).map(|_| rule(generator)).collect();
        let subjects = generator.random.some_of(&[
            json!({"apiGroup": RBAC, "kind": "User", "name": "alice-<id>"}),
            json!({"apiGroup": RBAC, "kind": "Group", "name": "devs-<id>"}),
            json!({"kind": "ServiceAccount", "name": "robot", "namespace": "<ns>"}),
        ]);
        let api_version = format!("{RBAC}/v1");
        objects.push(
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "rules": rules}),
        );
        objects.push(json!({
            "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name}, "subjects": subjects,
        }));
    }
    objects
}

fn rule(generator: &mut Generator<'_>) -> Value {
    let verbs: Vec<&str> = match generator.random.below(5) {
        0 | 1 => vec!["*"],
        2 | 3 => vec!["create", "update", "patch", "delete", "get"],
        _ => generator.random.some_of(&[
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
            "breakglass",
        ]),
    };
    let groups = generator.random.one_of(&[json!(["*"]), json!(["*"]), json!(["", GROUP]), json!([""])]);
    let resources: Vec<&str> = match generator.random.below(2) {
        0 => vec!["*"],
        _ => generator.random.some_of(&[
            "configmaps",
            "widgets",
            "secrets",
            "pods",
            "*/status",
            "*/scale",
            "pods/*",
        ]),
    };
    let mut rule = json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
    if generator.random.chance(12) {
        rule["resourceNames"] = json!(["x"]);
    }
    rule
}

/// Returns a user who is not an administrator.
pub(crate) fn user(generator: &mut Generator<'_>) -> Value {
    let name = generator.random.weighted(&[(70, "alice-<id>"), (30, "system:serviceaccount:<ns>:robot")]);
    let groups = generator.random.one_of(&[
        json!(["devs-<id>"]),
        json!(["system:authenticated"]),
        json!(["system:authenticated", "devs-<id>"]),
        json!(["system:unauthenticated"]),
    ]);
    json!({"name": name, "groups": groups})
}
