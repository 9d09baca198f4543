//! Handles requests to the admin endpoint.

use std::sync::Arc;
use std::time::Duration;

use axum::body::BodyDataStream;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use futures::StreamExt as _;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Token;
use super::error::ApiError;
use crate::fakes_file::{self, FakeEntry};
use crate::journal::{Credentials, Filter, document};
use crate::running::Running;
use crate::{Behavior, Certificate};

/// The maximum size of a request body, in bytes.
const BODY_BYTES: usize = 1 << 20;
/// The maximum number of bytes to read from the rest of a body that is too large.
const DRAIN_BYTES: usize = 4 << 20;
/// The maximum time to read the rest of a body that is too large.
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// The maximum value of the query parameter `timeout`.
const MAX_WAIT: Duration = Duration::from_secs(300);
const DEFAULT_WAIT: Duration = Duration::from_secs(10);

type ApiResult = Result<Response, ApiError>;

pub(super) fn router(running: Arc<Running>, token: Token) -> Router {
    let behind_token = Router::new()
        .route("/fakes", get(list))
        .route("/fakes/{name}", put(add).delete(remove))
        .route("/fakes/{name}/behavior", put(behave))
        .route("/fakes/{name}/reset", post(reset))
        .route("/journal", get(journal).delete(clear))
        .route("/certificates/rotate", post(rotate))
        .route("/metrics", get(metrics))
        .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "unknown path"))
        .method_not_allowed_fallback(async || {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not support this method")
        })
        .layer(middleware::from_fn_with_state(Arc::new(token), only_with_token))
        .with_state(running);
    Router::new().route("/healthz", get("ok")).merge(behind_token)
}

/// Rejects requests without the token.
///
/// Requests send the token as a bearer token or in `X-Admit-Token`, because kube-apiserver's proxy strips
/// `Authorization`.
async fn only_with_token(State(token): State<Arc<Token>>, request: Request, next: Next) -> Response {
    if shown(request.headers()).is_some_and(|shown| token.is(shown)) {
        return next.run(request).await;
    }
    let message = "missing or invalid token: send `Authorization: Bearer TOKEN` or `X-Admit-Token: TOKEN`";
    let mut response = ApiError::new(StatusCode::UNAUTHORIZED, message).into_response();
    let challenge = http::HeaderValue::from_static("Bearer");
    response.headers_mut().insert(http::header::WWW_AUTHENTICATE, challenge);
    response
}

fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(token) = headers.get("x-admit-token") {
        return Some(token.as_bytes());
    }
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

async fn list(State(running): State<Arc<Running>>) -> Json<Value> {
    Json(json!({"fakes": running.list().await}))
}

async fn add(State(running): State<Arc<Running>>, Path(name): Path<String>, body: Body) -> ApiResult {
    let mut fields: serde_json::Map<String, Value> = body.json()?;
    if fields.get("name").is_some_and(|inner| inner.as_str().map(fakes_file::full_name) != Some(full(&name)))
    {
        return Err(ApiError::bad_request("`name` is not the name in the path"));
    }
    fields.insert("name".to_owned(), json!(name));
    // One field per line, so that the line in an error message contains the field.
    let entry = FakeEntry::parse(&format!("{:#}", Value::Object(fields)), "the fake")?;
    let (view, is_new) = running.put(entry).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(view)).into_response())
}

async fn remove(State(running): State<Arc<Running>>, Path(name): Path<String>) -> ApiResult {
    running.remove(&full(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn behave(State(running): State<Arc<Running>>, Path(name): Path<String>, body: Body) -> ApiResult {
    let behavior: Behavior = body.json()?;
    Ok(Json(running.set_behavior(&full(&name), behavior).await?).into_response())
}

async fn reset(State(running): State<Arc<Running>>, Path(name): Path<String>) -> ApiResult {
    running.reset(&full(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The query of `GET /journal`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    fake: Option<String>,
    #[serde(default)]
    after: u64,
    operation: Option<String>,
    namespace: Option<String>,
    #[serde(default)]
    wait: usize,
    /// Whether the response contains the values of headers with credentials.
    #[serde(default, rename = "showSecrets")]
    show_secrets: bool,
    timeout: Option<f64>,
}

/// Returns the matching calls, after waiting for `wait` calls or `timeout` seconds.
async fn journal(
    State(running): State<Arc<Running>>,
    query: Result<Query<JournalQuery>, QueryRejection>,
) -> ApiResult {
    let Query(query) = query?;
    let timeout = match query.timeout.map(Duration::try_from_secs_f64) {
        None => DEFAULT_WAIT,
        Some(Ok(timeout)) if timeout <= MAX_WAIT => timeout,
        Some(Ok(_) | Err(_)) => {
            let most = MAX_WAIT.as_secs();
            return Err(ApiError::bad_request(format!("invalid timeout: must be 0 to {most} seconds")));
        }
    };
    let filter = Filter {
        fake: query.fake.as_deref().map(full),
        after: query.after,
        operation: query.operation,
        namespace: query.namespace,
    };
    let journal = &running.shared().journal;
    // The caller checks the number of calls.
    let _ = journal.wait(&filter, query.wait, timeout).await;
    let entries = journal.select(&filter);
    let credentials = if query.show_secrets { Credentials::Shown } else { Credentials::Masked };
    Ok(Json(document(entries.iter().map(|entry| &**entry), journal.dropped(), credentials)).into_response())
}

async fn clear(State(running): State<Arc<Running>>) -> StatusCode {
    running.shared().journal.clear();
    StatusCode::NO_CONTENT
}

/// The body of `POST /certificates/rotate`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotation {
    #[serde(default)]
    certificate: Certificate,
}

async fn rotate(State(running): State<Arc<Running>>, body: Body) -> ApiResult {
    let Rotation { certificate } = body.json()?;
    running.rotate(certificate).await?;
    Ok(Json(json!({"certificate": certificate})).into_response())
}

async fn metrics(State(running): State<Arc<Running>>) -> impl IntoResponse {
    let shared = running.shared();
    ([(http::header::CONTENT_TYPE, "text/plain; version=0.0.4")], shared.metrics.text(shared.journal.fill()))
}

/// A JSON body that is accepted with any `Content-Type`.
struct Body(bytes::Bytes);

impl<S: Send + Sync> axum::extract::FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let mut body = request.into_body();
        let read = Limited::new(&mut body, BODY_BYTES).collect().await;
        match read {
            Ok(read) => Ok(Self(read.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => {
                drain(body.into_data_stream()).await;
                let message = format!("the body is larger than {BODY_BYTES} bytes");
                Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message))
            }
            Err(error) => Err(ApiError::bad_request(format!("cannot read the body: {error}"))),
        }
    }
}

/// Reads part of the rest of a body that is too large, so that a client that is still writing receives the response.
async fn drain(mut pieces: BodyDataStream) {
    let drained = async {
        let mut left = DRAIN_BYTES;
        while let Some(Ok(piece)) = pieces.next().await {
            let Some(rest) = left.checked_sub(piece.len()) else { return };
            left = rest;
        }
    };
    // A slower client loses its connection with the response.
    let _ = tokio::time::timeout(DRAIN_TIME, drained).await;
}

impl Body {
    fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.0)
            .map_err(|error| ApiError::bad_request(format!("invalid body: {error}")))
    }
}

fn full(name: &str) -> String {
    fakes_file::full_name(name)
}
