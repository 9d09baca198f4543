//! Tests for impersonation headers, modes, and errors.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use kubernetes_admission::authorizer::{AccessDecision, AccessRules, AlwaysAllow, Decision};

use super::*;
use crate::apimachinery::query::Query;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap());
    }
    headers
}

fn user(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    UserInfo { username: name.to_owned(), groups, ..UserInfo::default() }
}

fn list_pods() -> RequestInfo {
    RequestInfo::new(&Method::GET, "/api/v1/namespaces/ns/pods", &Query::default())
}

/// An authorizer that allows the listed `VERB RESOURCE NAME` requests and records each check.
#[derive(Debug)]
struct Allows(BTreeSet<&'static str>);

impl Authorizer for Allows {
    fn authorize(&self, request: &AccessRequest<'_>) -> AccessDecision {
        let AccessTarget::Resource(target) = request.target else { unreachable!("no path is asked for") };
        let asked = format!("{} {} {}", request.verb, target.resource, target.name);
        let decision = if self.0.contains(asked.trim()) { Decision::Allow } else { Decision::NoOpinion };
        AccessDecision { decision, reason: String::new(), error: None }
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> AccessRules {
        AccessRules::default()
    }
}

#[track_caller]
fn check(pairs: &[(&str, &str)], expected: &UserInfo, constraint: &str) {
    let wanted = wanted(&headers(pairs)).unwrap().unwrap();
    let resolved = Impersonation::default().resolve(&AlwaysAllow, &user("admin", &[]), &wanted, &list_pods());
    assert_eq!(resolved.unwrap(), Impersonated { user: expected.clone(), constraint: constraint.to_owned() });
}

#[test]
fn no_headers_mean_no_impersonation() {
    for pairs in [&[][..], &[("impersonate-user", "")]] {
        assert_eq!(wanted(&headers(pairs)).unwrap(), None);
    }
}

#[test]
fn impersonated_user_is_authenticated_by_default() {
    let mode = "impersonate:user-info";
    check(&[("impersonate-user", "bob")], &user("bob", &["system:authenticated"]), mode);
    check(
        &[("impersonate-user", "bob"), ("impersonate-group", "a"), ("impersonate-group", "b")],
        &user("bob", &["a", "b", "system:authenticated"]),
        mode,
    );
    for group in ["system:authenticated", "system:unauthenticated"] {
        let pairs = [("impersonate-user", "bob"), ("impersonate-group", group)];
        check(&pairs, &user("bob", &[group]), mode);
    }
    let anonymous = "system:anonymous";
    check(&[("impersonate-user", anonymous)], &user(anonymous, &["system:unauthenticated"]), mode);
    check(
        &[("impersonate-user", anonymous), ("impersonate-group", "system:authenticated")],
        &user(anonymous, &["system:authenticated", "system:unauthenticated"]),
        mode,
    );
}

#[test]
fn service_accounts_and_nodes_get_their_groups() {
    let name = "system:serviceaccount:ns:default";
    let groups = ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"];
    check(&[("impersonate-user", name)], &user(name, &groups), "impersonate:serviceaccount");
    let pairs = [("impersonate-user", name), ("impersonate-group", "g")];
    check(&pairs, &user(name, &["g", "system:authenticated"]), "");
    let name = "system:node:n";
    let groups = ["system:nodes", "system:authenticated"];
    check(&[("impersonate-user", name)], &user(name, &groups), "impersonate:arbitrary-node");
}

#[test]
fn extra_keys_are_decoded() {
    let expected = |key: &str| UserInfo {
        uid: "7".to_owned(),
        extra: BTreeMap::from([(key.to_owned(), vec!["x".to_owned()])]),
        ..user("bob", &["system:authenticated"])
    };
    for (header, key, constraint) in [
        ("impersonate-extra-Foo.io%2fBar", "foo.io/bar", "impersonate:user-info"),
        ("impersonate-extra-a", "a", ""),
        ("impersonate-extra-a%", "a%", ""),
        ("impersonate-extra-a%zz", "a%zz", ""),
    ] {
        let pairs = [("impersonate-user", "bob"), ("impersonate-uid", "7"), (header, "x")];
        check(&pairs, &expected(key), constraint);
    }
}

#[test]
fn system_masters_requires_legacy_impersonation() {
    let impersonation = Impersonation::default();
    let admin = user("admin", &[]);
    let constraint = |wanted: &UserInfo| {
        impersonation.resolve(&AlwaysAllow, &admin, wanted, &list_pods()).unwrap().constraint
    };
    assert_eq!(constraint(&user("bob", &[])), "impersonate:user-info");
    assert_eq!(constraint(&user("bob", &["system:masters"])), "");
    assert_eq!(constraint(&user("bob", &[])), "");
}

#[track_caller]
fn check_refused(allowed: &[&'static str], wanted: &UserInfo, message: Option<&str>) {
    let authorizer = Allows(allowed.iter().copied().collect());
    let resolved = Impersonation::default().resolve(&authorizer, &user("alice", &[]), wanted, &list_pods());
    let refusal = resolved.err().map(|status| status.message);
    assert_eq!(refusal.as_deref(), message, "{allowed:?}");
}

#[test]
fn first_denial_is_returned() {
    let bob = user("bob", &[]);
    let on = r#"pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns""#;
    let user_info = r#"users.authentication.k8s.io "bob" is forbidden: User "alice" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope"#;
    check_refused(&[], &bob, Some(on));
    check_refused(&["impersonate:user-info users bob"], &bob, Some(on));
    check_refused(&["impersonate-on:user-info:list pods"], &bob, Some(user_info));
    check_refused(&["impersonate-on:user-info:list pods", "impersonate:user-info users bob"], &bob, None);
    check_refused(&["impersonate users bob"], &bob, None);
    let grouped = user("bob", &["a", "b"]);
    check_refused(&["impersonate users bob", "impersonate groups a", "impersonate groups b"], &grouped, None);
    check_refused(&["impersonate users bob", "impersonate groups a"], &grouped, Some(on));
    let node = user("system:node:n", &[]);
    check_refused(
        &["impersonate-on:arbitrary-node:list pods", "impersonate:arbitrary-node nodes n"],
        &node,
        None,
    );
}

#[test]
fn groups_without_a_user_return_400() {
    for (pairs, requested) in [
        (
            &[("impersonate-group", "g")][..],
            r#"&user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)}"#,
        ),
        (
            &[("impersonate-uid", "g")],
            r#"&user.DefaultInfo{Name:"", UID:"g", Groups:[]string(nil), Extra:map[string][]string(nil)}"#,
        ),
        (
            &[("impersonate-extra-Foo", "g")],
            r#"&user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"foo":[]string{"g"}}}"#,
        ),
    ] {
        let status = wanted(&headers(pairs)).unwrap_err();
        assert_eq!(status.message, format!("requested {requested} without impersonating a user name"));
        assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    }
}
