//! Tests authorization: modes, bootstrap roles, and their cost.

use axum::body::Body;
use harness::attributes::UserInfo;
use harness::authorizer::{AccessRequest, AccessTarget, ResourceTarget};
use harness::server::{ApiServer, Authentication, AuthorizationMode, Options};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::client::{CONFIG_MAPS, config_map, get, post, put, server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn user(name: &str) -> UserInfo {
    UserInfo {
        username: name.to_owned(),
        groups: vec!["system:authenticated".to_owned()],
        ..UserInfo::default()
    }
}

/// Sends a request as a user who is not an administrator, and returns the status code and the body.
async fn ask(
    server: &ApiServer,
    requestor: UserInfo,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let router = server.router(Authentication::Always(requestor));
    let response = router.oneshot(request.body(Body::from("{}")).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

fn role(verbs: &[&str]) -> Value {
    json!({
        "metadata": {"name": "r"},
        "rules": [{"verbs": verbs, "apiGroups": [""], "resources": ["configmaps"]}],
    })
}

#[tokio::test]
async fn changed_role_takes_effect_immediately() {
    let server = server();
    let alice = || user("alice");
    let roles = format!("{RBAC}/namespaces/default/roles");
    let binding = json!({
        "metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "alice"}],
    });
    assert_eq!(ask(&server, alice(), Method::GET, CONFIG_MAPS, &[]).await.0, 403);
    assert_eq!(post(&server, &roles, &role(&["get"])).await.0, 201);
    assert_eq!(post(&server, &format!("{RBAC}/namespaces/default/rolebindings"), &binding).await.0, 201);
    assert_eq!(ask(&server, alice(), Method::GET, CONFIG_MAPS, &[]).await.0, 403);
    assert_eq!(put(&server, &format!("{roles}/r"), &role(&["list"])).await.0, 200);
    assert_eq!(ask(&server, alice(), Method::GET, CONFIG_MAPS, &[]).await.0, 200);
}

#[tokio::test]
async fn always_allow_allows_all_requests() {
    let options = Options { authorization_mode: AuthorizationMode::AlwaysAllow, ..Options::default() };
    let server = ApiServer::new(options);
    assert_eq!(ask(&server, user("alice"), Method::GET, CONFIG_MAPS, &[]).await.0, 200);
    let role = format!("{RBAC}/clusterroles?dryRun=All");
    assert_eq!(ask(&server, user("alice"), Method::POST, &role, &[]).await.0, 422);
    let target = AccessTarget::Resource(ResourceTarget { resource: "pods", ..ResourceTarget::default() });
    let request = AccessRequest { user: &user("alice"), verb: "escalate", target };
    assert!(server.authorizer().authorize(&request).is_allowed());
}

#[tokio::test]
async fn impersonation_without_permission_is_denied() {
    let server = server();
    let headers = [("impersonate-user", "bob")];
    let (code, status) = ask(&server, user("alice"), Method::GET, CONFIG_MAPS, &headers).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "configmaps is forbidden: User \"alice\" cannot impersonate-on:user-info:list resource \"configmaps\" in API \
         group \"\" in the namespace \"default\""
    );
}

#[tokio::test]
async fn bootstrap_roles_can_be_listed_changed_and_watched() {
    let server = server();
    let (_, before) = post(&server, CONFIG_MAPS, &config_map("a")).await;
    let (_, list) = get(&server, &format!("{RBAC}/clusterroles")).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 73);
    // They existed before the first created object.
    let version =
        |object: &Value| -> u64 { object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap() };
    assert!(list["items"].as_array().unwrap().iter().all(|role| version(role) < version(&before)));
    assert_eq!(version(&list), version(&before));
    let path = format!("{RBAC}/clusterroles/system:basic-user");
    let (_, mut role) = get(&server, &path).await;
    role["rules"] = json!([]);
    assert_eq!(put(&server, &path, &role).await.0, 200);
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    assert_eq!(ask(&server, user("alice"), Method::POST, reviews, &[]).await.0, 403);
}

#[tokio::test]
async fn aggregated_view_rules_are_effective() {
    let server = server();
    let binding = json!({
        "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "alice"}],
    });
    let things = json!({
        "metadata": {"name": "things", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]}],
    });
    assert_eq!(post(&server, &format!("{RBAC}/clusterrolebindings"), &binding).await.0, 201);
    assert_eq!(ask(&server, user("alice"), Method::GET, CONFIG_MAPS, &[]).await.0, 200);
    let path = "/apis/example.com/v1/namespaces/default/things/a";
    assert_eq!(ask(&server, user("alice"), Method::GET, path, &[]).await.0, 403);
    assert_eq!(post(&server, &format!("{RBAC}/clusterroles"), &things).await.0, 201);
    assert_eq!(ask(&server, user("alice"), Method::GET, path, &[]).await.0, 404);
    // `admin` also gets it, through `edit`, which aggregates `view`.
    let (_, admin) = get(&server, &format!("{RBAC}/clusterroles/admin")).await;
    assert!(admin["rules"].as_array().unwrap().contains(&things["rules"][0]));
}
