//! Sends requests to a server without a socket, and checks failures.

use axum::body::Body;
use harness::attributes::UserInfo;
use harness::server::{ApiServer, Authentication, Options};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";

pub(crate) fn server() -> ApiServer {
    ApiServer::new(Options::default())
}

pub(crate) fn administrator() -> UserInfo {
    UserInfo {
        username: "admin".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..UserInfo::default()
    }
}

pub(crate) async fn respond(
    server: &ApiServer,
    method: &Method,
    path: &str,
    content_type: &str,
    body: String,
) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    let router = server.router(Authentication::Always(administrator()));
    router.oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
}

pub(crate) async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    content_type: &str,
    body: String,
) -> (u16, Value) {
    let response = respond(server, &method, path, content_type, body).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    (code, value)
}

pub(crate) async fn get(server: &ApiServer, path: &str) -> (u16, Value) {
    send(server, Method::GET, path, "application/json", String::new()).await
}

pub(crate) async fn post(server: &ApiServer, path: &str, object: &Value) -> (u16, Value) {
    send(server, Method::POST, path, "application/json", object.to_string()).await
}

pub(crate) async fn put(server: &ApiServer, path: &str, object: &Value) -> (u16, Value) {
    send(server, Method::PUT, path, "application/json", object.to_string()).await
}

pub(crate) async fn patch(
    server: &ApiServer,
    path: &str,
    content_type: &str,
    changes: &Value,
) -> (u16, Value) {
    send(server, Method::PATCH, path, content_type, changes.to_string()).await
}

pub(crate) async fn delete(server: &ApiServer, path: &str, options: Option<Value>) -> (u16, Value) {
    let body = options.map(|options| options.to_string()).unwrap_or_default();
    send(server, Method::DELETE, path, "application/json", body).await
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// Creates a server with the ConfigMap `a`.
pub(crate) async fn with_config_map() -> ApiServer {
    let server = server();
    let (code, created) = post(&server, CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(code, 201, "{created}");
    server
}

/// Checks the code, the reason, and the message of an error response.
#[track_caller]
pub(crate) fn check((code, answer): (u16, Value), expected_code: u16, reason: &str, message: &str) {
    assert_eq!(
        (code, answer["reason"].as_str().unwrap_or_default(), answer["message"].as_str().unwrap_or_default()),
        (expected_code, reason, message),
        "{answer}"
    );
}
