//! One fake behind its path: reads a call, writes it down, and answers or does not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::journal::Journal;
use crate::{Answer, Answered, Behaviour, Entry, Limits, Observer, Reply, answer};

/// A body must have arrived within this time.
const BODY_TIME: Duration = Duration::from_secs(30);

/// One fake behind its path.
pub(crate) struct Endpoint {
    doing: Mutex<Arc<Doing>>,
    journal: Mutex<Journal>,
    most_body_bytes: usize,
    observer: Observer,
}

/// A behaviour and how often it was asked. Another behaviour starts to count anew.
struct Doing {
    behaviour: Behaviour,
    calls: AtomicU64,
}

/// In a response that must not be sent: the connection is closed instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CloseConnection;

impl Endpoint {
    pub(crate) fn new(behaviour: Behaviour, limits: &Limits, observer: Observer) -> Self {
        Self {
            doing: Mutex::new(Arc::new(Doing { behaviour, calls: AtomicU64::new(0) })),
            journal: Mutex::new(Journal::new(limits.journal_entries, limits.journal_bytes)),
            most_body_bytes: limits.body_bytes,
            observer,
        }
    }

    pub(crate) fn set_behaviour(&self, behaviour: Behaviour) {
        *lock(&self.doing) = Arc::new(Doing { behaviour, calls: AtomicU64::new(0) });
    }

    pub(crate) fn journal(&self) -> Vec<Entry> {
        lock(&self.journal).entries()
    }

    pub(crate) fn dropped(&self) -> u64 {
        lock(&self.journal).dropped()
    }

    /// Answers any method and any path: it is for the caller to be right about them, and for the journal to tell.
    pub(crate) async fn call(State(endpoint): State<Arc<Self>>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let body = match endpoint.read(body).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        let doing = Arc::clone(&lock(&endpoint.doing));
        let nth = doing.calls.fetch_add(1, Ordering::Relaxed);
        let answer = match serde_json::from_slice(&body) {
            Ok(review) => answer(&doing.behaviour, nth, &review),
            // Those who do not look at the review misbehave for everybody.
            Err(_) => answer(&doing.behaviour, nth, &serde_json::Value::Null),
        };
        let number = lock(&endpoint.journal).add(received(&parts, body));
        let mut call = Call { endpoint: &endpoint, number, answered: Answered::Abandoned };
        match answer {
            Answer::Never => std::future::pending().await,
            Answer::Closed { after } => {
                tokio::time::sleep(after).await;
                call.answered = Answered::Closed;
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(CloseConnection);
                response
            }
            Answer::Bytes { after, script } => {
                tokio::time::sleep(after).await;
                call.answered = Answered::Bytes;
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(script);
                response
            }
            Answer::Reply(reply) => {
                tokio::time::sleep(reply.after).await;
                call.answered = Answered::Sent { status: reply.status, summary: reply.summary.clone() };
                response(reply, &host(&parts))
            }
        }
    }

    async fn read(&self, body: Body) -> Result<Bytes, Response> {
        let limited = Limited::new(body, self.most_body_bytes);
        match tokio::time::timeout(BODY_TIME, limited.collect()).await {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                Err(refusal(http::StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"))
            }
            Ok(Err(_)) => Err(refusal(http::StatusCode::BAD_REQUEST, "the body cannot be read")),
            Err(_) => Err(refusal(http::StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("behaviour", &lock(&self.doing).behaviour).finish_non_exhaustive()
    }
}

/// A call under way. Its end is noted also when the caller gives up and the call is dropped.
struct Call<'a> {
    endpoint: &'a Endpoint,
    number: u64,
    answered: Answered,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let entry = lock(&self.endpoint.journal).answered(self.number, self.answered.clone());
        if let Some(entry) = entry {
            self.endpoint.observer.observe(&entry);
        }
    }
}

fn received(parts: &http::request::Parts, body: Bytes) -> Entry {
    let headers = parts.headers.iter();
    Entry {
        number: 0,
        time: jiff::Timestamp::now(),
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        version: parts.version,
        headers: headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        body,
        answered: Answered::Pending,
    }
}

/// What the request was sent to.
fn host(parts: &http::request::Parts) -> String {
    let header = || parts.headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    parts.uri.authority().map(ToString::to_string).or_else(header).unwrap_or_default()
}

/// `{host}` in a header stands for what the request was sent to.
fn response(reply: Reply, host: &str) -> Response {
    let mut response = (reply.status, Body::from(reply.body)).into_response();
    let headers = response.headers_mut();
    for (name, value) in reply.headers {
        let text = value.to_str().unwrap_or_default();
        let value = if text.contains("{host}") {
            HeaderValue::from_str(&text.replace("{host}", host)).unwrap_or(value)
        } else {
            value
        };
        headers.append(name, value);
    }
    match HeaderValue::from_str(&reply.content_type) {
        Ok(value) if !value.is_empty() => headers.insert(CONTENT_TYPE, value),
        Ok(_) | Err(_) => headers.remove(CONTENT_TYPE),
    };
    response
}

fn refusal(status: http::StatusCode, text: &str) -> Response {
    response(Reply::text(status, text.to_owned(), text.to_owned()), "")
}

/// A panic elsewhere leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
