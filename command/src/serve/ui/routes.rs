//! The HTTP requests of the page.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::middleware::{self, Next as Handler};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use fake_webhooks::{Behavior, BehaviorError, Fleet};
use harness::server::ApiServer;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::access::Access;
use super::listener::Connection;
use super::question::{self, Question};
use super::recent::{Next, Recent};
use crate::html_report::LivePage;
use crate::screen;

/// The maximum number of pages that show requests at the same time.
const MAX_VIEWERS: usize = 8;

/// The maximum size of a question, in bytes: somewhat more than an object in a request to the server.
const MAX_QUESTION_BYTES: usize = 4 << 20;

/// The maximum size of the behavior of a fake, in bytes: the limit of the admin endpoint of fakes.
const MAX_BEHAVIOR_BYTES: usize = 1 << 20;

/// The headers of every response. They prevent other websites from reading, embedding, or framing the page.
const HEADERS: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// The state that all requests share.
#[derive(Clone)]
pub(super) struct Shared {
    access: Arc<Access>,
    recent: Arc<Recent>,
    server: ApiServer,
    fakes: Option<Arc<Fleet>>,
    page: Arc<LivePage>,
    viewers: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn new(
        access: Arc<Access>,
        recent: Arc<Recent>,
        server: ApiServer,
        fakes: Option<Arc<Fleet>>,
    ) -> Self {
        let viewers = Arc::new(Semaphore::new(MAX_VIEWERS));
        Self { access, recent, server, fakes, page: Arc::new(LivePage::new()), viewers }
    }
}

/// Returns the router of the listener.
pub(super) fn router(shared: Shared) -> Router {
    let data = Router::new()
        .route("/requests", get(requests))
        .route("/configurations", get(configurations))
        .route("/question", post(answer).layer(DefaultBodyLimit::max(MAX_QUESTION_BYTES)))
        .route("/fakes", get(fakes).post(set_behavior).layer(DefaultBodyLimit::max(MAX_BEHAVIOR_BYTES)))
        .route_layer(middleware::from_fn_with_state(shared.clone(), require_session));
    Router::new()
        .route("/session", post(session))
        .merge(data)
        .route_layer(middleware::from_fn(reject_cross_site))
        .route("/", get(page))
        .layer(middleware::from_fn_with_state(shared.clone(), require_page))
        .with_state(shared)
}

/// Rejects requests that are addressed to another host or come from another website.
///
/// Only clients with a session can keep their connections, so that other programs cannot occupy all connections.
async fn require_page(State(shared): State<Shared>, request: Request, handler: Handler) -> Response {
    let has_session = shared.access.has_session(request.headers());
    let mut response = if shared.access.is_from_page(request.headers()) {
        handler.run(request).await
    } else {
        (StatusCode::FORBIDDEN, "this address does not belong to admit serve").into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if !has_session {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn reject_cross_site(request: Request, handler: Handler) -> Response {
    if Access::is_cross_site(request.headers()) {
        return (StatusCode::FORBIDDEN, "another website caused this request").into_response();
    }
    handler.run(request).await
}

async fn require_session(State(shared): State<Shared>, request: Request, handler: Handler) -> Response {
    if !shared.access.has_session(request.headers()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    handler.run(request).await
}

async fn page(State(shared): State<Shared>) -> Response {
    let LivePage { html, policy } = &*shared.page;
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, policy)];
    (headers, html.clone()).into_response()
}

/// Exchanges the token of the link for a session, and prints the next link.
async fn session(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    match shared.access.exchange(&headers) {
        Ok(Some((token, next))) => {
            if let Err(failure) = screen::print(&super::announcement(&next)) {
                screen::report(&failure);
            }
            Json(json!({ "token": token })).into_response()
        }
        Ok(None) => StatusCode::UNAUTHORIZED.into_response(),
        Err(failure) => (StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()).into_response(),
    }
}

async fn configurations(State(shared): State<Shared>) -> Response {
    Json(question::configurations(&shared.server)).into_response()
}

async fn answer(State(shared): State<Shared>, Json(question): Json<Question>) -> Response {
    // Match conditions may take a while.
    let answered = tokio::task::spawn_blocking(move || question.answer(&shared.server)).await;
    match answered {
        Ok(Ok(answer)) => Json(answer).into_response(),
        Ok(Err(message)) => (StatusCode::BAD_REQUEST, message).into_response(),
        Err(_panic) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Responds with the status of each fake, sorted by name; with an empty list if the server was started without fakes.
async fn fakes(State(shared): State<Shared>) -> Response {
    let fakes = match &shared.fakes {
        Some(fleet) => fleet.fakes().await,
        None => Vec::new(),
    };
    Json(fakes).into_response()
}

/// A behavior for a fake.
#[derive(Deserialize)]
struct NewBehavior {
    /// The full name of the fake.
    name: String,
    /// The behavior in YAML or JSON, as in a fakes file.
    behavior: String,
}

/// Changes the behavior of a fake for new calls, and responds with the status of each fake.
async fn set_behavior(
    State(shared): State<Shared>,
    Json(NewBehavior { name, behavior }): Json<NewBehavior>,
) -> Response {
    let rejected = |status, error: &dyn std::error::Error| (status, error.to_string()).into_response();
    let Some(fleet) = &shared.fakes else {
        return (StatusCode::NOT_FOUND, "the server was started without --fakes").into_response();
    };
    let behavior = match Behavior::parse(&behavior, "behavior") {
        Ok(behavior) => behavior,
        Err(error) => return rejected(StatusCode::BAD_REQUEST, &error),
    };
    match fleet.set_behavior(&name, behavior).await {
        Ok(()) => Json(fleet.fakes().await).into_response(),
        Err(error @ BehaviorError::Unknown(_)) => rejected(StatusCode::NOT_FOUND, &error),
        Err(error) => rejected(StatusCode::BAD_REQUEST, &error),
    }
}

/// Where the page wants to continue.
#[derive(Deserialize)]
struct Position {
    /// The number of the last request that the page has.
    #[serde(default)]
    after: u64,
}

/// Responds with a line of JSON for each request, without an end.
async fn requests(
    State(shared): State<Shared>,
    Query(Position { after }): Query<Position>,
    Extension(connection): Extension<Connection>,
) -> Response {
    let Ok(viewer) = Arc::clone(&shared.viewers).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{MAX_VIEWERS} pages are open")).into_response();
    };
    let (lines, mut unread) = mpsc::channel(1);
    tokio::spawn(follow(Arc::clone(&shared.recent), after, lines, connection, viewer));
    let stream = futures::stream::poll_fn(move |context| {
        unread.poll_recv(context).map(|line| line.map(Ok::<Bytes, Infallible>))
    });
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(stream)).into_response()
}

/// Sends each request to a page. Ends the connection of a page that is slower than the requests.
///
/// A page is too slow if the next request is removed before the page has read the previous ones. Otherwise, its unread
/// requests would stay in memory.
async fn follow(
    recent: Arc<Recent>,
    after: u64,
    lines: mpsc::Sender<Bytes>,
    connection: Connection,
    _viewer: OwnedSemaphorePermit,
) {
    let mut position = recent.start(after);
    let mut changes = recent.changes();
    loop {
        changes.mark_unchanged();
        match recent.next(position) {
            Next::Removed => return connection.end(),
            Next::None => tokio::select! {
                () = lines.closed() => return,
                more = changes.changed() => if more.is_err() { return },
            },
            Next::Request(number, line) => tokio::select! {
                slot = lines.reserve() => match slot {
                    Ok(slot) => {
                        slot.send(line);
                        position = number;
                    }
                    Err(_closed) => return,
                },
                // The request may have been removed.
                more = changes.changed() => if more.is_err() { return },
            },
        }
    }
}
