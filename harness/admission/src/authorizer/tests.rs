//! Tests RBAC authorization, from roles and bindings to the decision.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn user(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    UserInfo { username: name.to_owned(), groups, ..UserInfo::default() }
}

fn role(namespace: &str, name: &str, resource: &str) -> Arc<Value> {
    let mut role = json!({
        "metadata": {"name": name},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}],
    });
    if !namespace.is_empty() {
        role["metadata"]["namespace"] = namespace.into();
    }
    Arc::new(role)
}

fn binding(namespace: &str, name: &str, role: [&str; 2], subject: &Value) -> Arc<Value> {
    let mut binding = json!({
        "metadata": {"name": name},
        "roleRef": {"kind": role[0], "name": role[1]},
        "subjects": [{"kind": "User", "name": "somebody else"}, subject],
    });
    if !namespace.is_empty() {
        binding["metadata"]["namespace"] = namespace.into();
    }
    Arc::new(binding)
}

fn policies() -> Policies {
    let name = |kind: &str, name: &str| json!({"kind": kind, "name": name});
    let account =
        |namespace: Option<&str>| json!({"kind": "ServiceAccount", "name": "bot", "namespace": namespace});
    Policies::default().updated(&RbacObjects {
        cluster_roles: vec![role("", "nodes", "nodes"), role("", "pods", "pods")],
        roles: vec![role("a", "pods", "secrets")],
        cluster_role_bindings: vec![
            binding("", "group", ["ClusterRole", "nodes"], &name("Group", "ops")),
            binding("", "nowhere", ["Role", "pods"], &name("User", "lost")),
            binding("", "robots", ["ClusterRole", "pods"], &account(Some("x"))),
            binding("", "user", ["ClusterRole", "nodes"], &name("User", "alice")),
        ],
        role_bindings: vec![
            binding("a", "cluster-role", ["ClusterRole", "pods"], &name("User", "alice")),
            binding("a", "gone", ["Role", "gone"], &name("User", "bob")),
            binding("a", "local-robot", ["Role", "pods"], &account(None)),
            binding("a", "role", ["Role", "pods"], &name("User", "bob")),
            binding("a", "zero", ["ClusterRole", "gone"], &name("User", "bob")),
        ],
    })
}

fn get<'a>(user: &'a UserInfo, namespace: &'a str, resource: &'a str) -> AccessRequest<'a> {
    let target = ResourceTarget { resource, namespace, ..ResourceTarget::default() };
    AccessRequest { user, verb: "get", target: AccessTarget::Resource(target) }
}

#[track_caller]
fn check(user: &UserInfo, namespace: &str, resource: &str, allowed: bool, reason: &str) {
    let decision = if allowed { Decision::Allow } else { Decision::NoOpinion };
    let answer = policies().authorize(&get(user, namespace, resource));
    let expected = AccessDecision { decision, reason: reason.to_owned(), error: None };
    assert_eq!(answer, expected, "{} {namespace} {resource}", user.username);
}

#[test]
fn a_binding_grants_its_role_to_its_subjects() {
    let alice = user("alice", &[]);
    let by_cluster = r#"RBAC: allowed by ClusterRoleBinding "user" of ClusterRole "nodes" to User "alice""#;
    check(&alice, "", "nodes", true, by_cluster);
    check(&alice, "b", "nodes", true, by_cluster);
    check(&alice, "", "pods", false, "");
    check(
        &alice,
        "a",
        "pods",
        true,
        r#"RBAC: allowed by RoleBinding "cluster-role/a" of ClusterRole "pods" to User "alice""#,
    );
    check(&alice, "b", "pods", false, "");
    check(
        &user("eve", &["x", "ops"]),
        "",
        "nodes",
        true,
        r#"RBAC: allowed by ClusterRoleBinding "group" of ClusterRole "nodes" to Group "ops""#,
    );
}

#[test]
fn a_service_account_defaults_to_the_namespace_of_the_binding() {
    check(
        &user("system:serviceaccount:x:bot", &[]),
        "b",
        "pods",
        true,
        r#"RBAC: allowed by ClusterRoleBinding "robots" of ClusterRole "pods" to ServiceAccount "bot/x""#,
    );
    check(
        &user("system:serviceaccount:a:bot", &[]),
        "a",
        "secrets",
        true,
        r#"RBAC: allowed by RoleBinding "local-robot/a" of Role "pods" to ServiceAccount "bot/a""#,
    );
    check(&user("system:serviceaccount:y:bot", &[]), "b", "pods", false, "");
}

#[test]
fn a_missing_role_is_reported_if_the_request_is_denied() {
    let gone = r#"rbac: RBAC: [role.rbac.authorization.k8s.io "gone" not found, clusterrole.rbac.authorization.k8s.io "gone" not found]"#;
    check(&user("bob", &[]), "a", "pods", false, gone);
    check(
        &user("bob", &[]),
        "a",
        "secrets",
        true,
        r#"RBAC: allowed by RoleBinding "role/a" of Role "pods" to User "bob""#,
    );
    let rules = policies().rules_for(&user("bob", &[]), "a");
    assert_eq!(rules.rules.len(), 1);
    assert_eq!(format!("rbac: RBAC: {}", rules.error), gone);
}

#[test]
fn members_of_system_masters_may_do_everything() {
    check(&user("x", &[PRIVILEGED_GROUP]), "", "x", true, "");
}

#[test]
fn unchanged_objects_are_not_parsed_again() {
    let alice = user("alice", &[]);
    let mut objects = RbacObjects {
        cluster_roles: vec![role("", "nodes", "nodes")],
        cluster_role_bindings: vec![binding(
            "",
            "user",
            ["ClusterRole", "nodes"],
            &json!({"kind": "User", "name": "alice"}),
        )],
        ..RbacObjects::default()
    };
    let first = Policies::default().updated(&objects);
    objects.cluster_roles[0] = role("", "nodes", "pods");
    let second = first.updated(&objects);
    assert!(first.authorize(&get(&alice, "", "nodes")).is_allowed());
    assert!(!second.authorize(&get(&alice, "", "nodes")).is_allowed());
    assert!(second.authorize(&get(&alice, "", "pods")).is_allowed());
    objects.cluster_role_bindings.clear();
    assert!(!second.updated(&objects).authorize(&get(&alice, "", "pods")).is_allowed());
}
