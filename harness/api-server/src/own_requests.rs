//! Requests that the server makes of itself: they are authorized and admitted as those that came over a connection.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, USER_AGENT};
use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{AlwaysAllow, Authorizer};
use kubernetes_types::status::Status;
use serde_json::Value;

use super::Server;
use super::authentication::Claim;
use super::body::LIMIT;
use super::incoming::Incoming;
use super::request::{self, BodyRetention};

pub(super) const JSON: &str = "application/json";

/// What a request asks for.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) media_type: &'static str,
    pub(super) body: &'a Value,
}

/// Who makes a request.
pub(super) struct Requester {
    pub(super) user: UserInfo,
    /// The `User-Agent`.
    pub(super) agent: String,
    pub(super) authorizer: Arc<dyn Authorizer>,
    pub(super) keep: BodyRetention,
}

/// Makes a request.
///
/// # Errors
/// The Status of the answer.
pub(super) async fn send(
    server: &Arc<Server>,
    change: Change<'_>,
    requester: Requester,
) -> Result<(), Box<Status>> {
    let Change { method, path, media_type, body } = change;
    let Requester { user, agent, authorizer, keep } = requester;
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media_type)
        .header(USER_AGENT, agent)
        .body(());
    let (mut parts, ()) =
        request.map_err(|error| Box::new(Status::internal_error(&error.to_string())))?.into_parts();
    parts.extensions.insert(Claim::of(user));
    let mut body = Incoming::InMemory(Bytes::from(body.to_string()));
    let (response, _) = Box::pin(request::respond(server, &parts, &mut body, keep, &authorizer)).await;
    if response.status().is_success() {
        return Ok(());
    }
    let code = i32::from(response.status().as_u16());
    let body = axum::body::to_bytes(response.into_body(), LIMIT).await.unwrap_or_default();
    let status: Option<Status> = serde_json::from_slice(&body).ok();
    Err(Box::new(status.unwrap_or_else(|| Status { code, ..Status::default() })))
}

/// PUT of an object by `system:apiserver`.
///
/// Source for the user: apiserver pkg/server/config.go, `AuthorizeClientBearerToken`.
///
/// # Errors
/// The Status of the answer.
pub(super) async fn put(server: &Arc<Server>, path: String, object: &Value) -> Result<(), Box<Status>> {
    let user = UserInfo {
        username: "system:apiserver".to_owned(),
        uid: server.own_uid.clone(),
        groups: vec!["system:authenticated".to_owned(), "system:masters".to_owned()],
        ..UserInfo::default()
    };
    let requester = Requester {
        user,
        agent: "kube-apiserver".to_owned(),
        authorizer: Arc::new(AlwaysAllow),
        keep: BodyRetention::Nothing,
    };
    send(server, Change { method: Method::PUT, path, media_type: JSON, body: object }, requester).await
}
