//! Sends loopback requests. The server authorizes and admits them in the same way as requests from a connection.

use std::pin::Pin;
use std::sync::{Arc, Weak};

use admission_webhook_client::OwnServer;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use kubernetes_admission::attributes::UserInfo;
use kubernetes_admission::authorizer::{AlwaysAllow, Authorizer};
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::apimachinery::limits::MAX_REQUEST_BODY_BYTES;
use crate::endpoints::authentication::Claim;
use crate::endpoints::context::Server;
use crate::endpoints::incoming::Incoming;
use crate::endpoints::request;
use crate::plugins::ObjectWriter;
use crate::registry;
use crate::registry::request::BodyRetention;
use crate::server::definition_controllers::DefinitionControllers;

pub(crate) const JSON: &str = "application/json";

/// A loopback request that changes objects.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) media_type: &'static str,
    pub(crate) body: &'a Value,
}

/// The sender of a request.
pub(crate) struct Requester {
    pub(crate) user: UserInfo,
    /// The `User-Agent` header.
    pub(crate) agent: String,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) keep: BodyRetention,
}

/// Sends a loopback request and discards the body of a successful response.
///
/// # Errors
/// Returns the Status of the response if the request fails.
pub(crate) async fn send(
    server: &Arc<Server>,
    change: Change<'_>,
    requester: Requester,
) -> Result<(), Box<Status>> {
    let Change { method, path, media_type, body } = change;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media_type)
        .header(USER_AGENT, &requester.agent)
        .body(Bytes::from(body.to_string()));
    let request = request.map_err(|error| Box::new(Status::internal_error(&error.to_string())))?;
    let response = Box::pin(respond(server, request, requester)).await;
    if response.status().is_success() {
        return Ok(());
    }
    let code = i32::from(response.status().as_u16());
    let status: Option<Status> = serde_json::from_slice(response.body()).ok();
    Err(Box::new(status.unwrap_or_else(|| Status { code, ..Status::default() })))
}

async fn respond(server: &Arc<Server>, request: Request<Bytes>, requester: Requester) -> Response<Bytes> {
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(Claim::from_user(requester.user));
    let mut body = Incoming::InMemory(body);
    let (response, _) =
        request::respond(server, &parts, &mut body, requester.keep, &requester.authorizer).await;
    let (head, body) = response.into_parts();
    Response::from_parts(head, axum::body::to_bytes(body, MAX_REQUEST_BODY_BYTES).await.unwrap_or_default())
}

/// Updates an object as `system:apiserver`.
///
/// # Errors
/// Returns the Status of the response if the request fails.
pub(crate) async fn put(server: &Arc<Server>, path: String, object: &Value) -> Result<(), Box<Status>> {
    send(
        server,
        Change { method: Method::PUT, path, media_type: JSON, body: object },
        server_requester(server),
    )
    .await
}

/// Returns the server as the sender of a request.
///
/// Source: apiserver pkg/server/config.go, `AuthorizeClientBearerToken`.
fn server_requester(server: &Server) -> Requester {
    let user = UserInfo {
        username: "system:apiserver".to_owned(),
        uid: server.loopback_uid.clone(),
        groups: vec!["system:authenticated".to_owned(), "system:masters".to_owned()],
        ..UserInfo::default()
    };
    Requester {
        user,
        agent: "kube-apiserver".to_owned(),
        authorizer: Arc::new(AlwaysAllow),
        keep: BodyRetention::Nothing,
    }
}

/// The maximum nesting depth of loopback webhook calls.
///
/// A webhook on this server may match the request that calls the webhook. Each nested review contains all earlier
/// reviews.
const MAX_DEPTH: usize = 8;

tokio::task_local! {
    /// The nesting depth of the current request.
    static DEPTH: usize;
}

/// Calls webhooks whose URL is an endpoint of this server, and sends the requests of the registry.
///
/// Rule: HTTP-15.
#[derive(Clone, Debug)]
pub(crate) struct LoopbackCaller {
    server: Weak<Server>,
    definition_controllers: DefinitionControllers,
}

impl LoopbackCaller {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        Self { server: Arc::downgrade(server), definition_controllers: DefinitionControllers::default() }
    }
}

impl ObjectWriter for LoopbackCaller {
    fn put<'a>(
        &'a self,
        path: String,
        object: &'a Value,
    ) -> Pin<Box<dyn Future<Output = Result<(), Box<Status>>> + Send + 'a>> {
        Box::pin(async move {
            let stopped = || Box::new(Status::internal_error("the server has stopped"));
            let server = self.server.upgrade().ok_or_else(stopped)?;
            put(&server, path, object).await
        })
    }
}

impl registry::OwnServer for LoopbackCaller {
    fn starts_definition_controllers(&self) -> bool {
        let server = self.server.upgrade();
        server.is_some_and(|server| self.definition_controllers.write_asynchronously(&server))
    }
}

impl OwnServer for LoopbackCaller {
    fn answer(&self, request: Request<Bytes>) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>> {
        let depth = DEPTH.try_with(|depth| *depth).unwrap_or(0);
        // The caller belongs to the server, so the server still exists.
        let server = self.server.upgrade().filter(|_| depth < MAX_DEPTH);
        let answering = async move {
            let Some(server) = server else { return too_deep() };
            respond(&server, request, server_requester(&server)).await
        };
        // Runs in a separate task, because the request may call the webhook again. Dropping the set aborts the task.
        let mut tasks = JoinSet::new();
        tasks.spawn(DEPTH.scope(depth + 1, answering));
        Box::pin(async move { tasks.join_next().await.and_then(Result::ok).unwrap_or_else(too_deep) })
    }
}

fn too_deep() -> Response<Bytes> {
    let what = format!(
        "a webhook that is the API server itself and whose calls lead to more than {MAX_DEPTH} others"
    );
    let status = Status::unsupported(&Unsupported { what });
    let mut response = Response::new(Bytes::from(serde_json::to_vec(&status).unwrap_or_default()));
    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
