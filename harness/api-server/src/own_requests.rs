//! Requests that the server makes of itself, as `system:apiserver`: they are admitted as those of any client.

use std::pin::Pin;
use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{AlwaysAllow, Authorizer};
use kubernetes_types::status::Status;
use serde_json::Value;

use super::Server;
use super::authentication::Claim;
use super::body::LIMIT;
use super::incoming::Incoming;
use super::request::{self, BodyRetention};

/// PUT of an object.
///
/// Source for the user: apiserver pkg/server/config.go, `AuthorizeClientBearerToken`.
///
/// # Errors
/// The Status of the answer.
pub(super) async fn put(server: Arc<Server>, path: String, object: &Value) -> Result<(), Box<Status>> {
    let own = http::Request::builder()
        .method(Method::PUT)
        .uri(path)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "kube-apiserver")
        .body(());
    let (mut parts, ()) =
        own.map_err(|error| Box::new(Status::internal_error(&error.to_string())))?.into_parts();
    let user = UserInfo {
        username: "system:apiserver".to_owned(),
        uid: server.own_uid.clone(),
        groups: vec!["system:authenticated".to_owned(), "system:masters".to_owned()],
        ..UserInfo::default()
    };
    parts.extensions.insert(Claim::of(user));
    let response = exchange(server, parts, Bytes::from(object.to_string())).await;
    if response.status().is_success() {
        return Ok(());
    }
    let code = i32::from(response.status().as_u16());
    let body = axum::body::to_bytes(response.into_body(), LIMIT).await.unwrap_or_default();
    let status: Option<Status> = serde_json::from_slice(&body).ok();
    Err(Box::new(status.unwrap_or_else(|| Status { code, ..Status::default() })))
}

/// It may be a request within a request. Without the box its future would hold itself.
fn exchange(
    server: Arc<Server>,
    parts: Parts,
    body: Bytes,
) -> Pin<Box<dyn Future<Output = Response> + Send>> {
    Box::pin(async move {
        let authorizer: Arc<dyn Authorizer> = Arc::new(AlwaysAllow);
        let mut body = Incoming::InMemory(body);
        request::respond(&server, &parts, &mut body, BodyRetention::Nothing, &authorizer).await.0
    })
}
