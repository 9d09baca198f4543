//! Reads the calls of a fake, records them, and responds.

mod client_config;
mod memory;
mod write;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use self::memory::Memory;
use crate::journal::{Journal, Subject};
use crate::metrics::{Meter, Metrics};
use crate::socket::{CallPermit, ClientCertificate, CloseConnection};
use crate::{Act, Answer, Behavior, CallOutcome, Caller, Entry, Limits, Observer, Reply, act};

/// The number of request body bytes that one permit allows.
const BODY_PERMIT_BYTES: usize = 1024;
/// The timeout for a request body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A fake that is served at a path.
pub(crate) struct Endpoint {
    name: Arc<str>,
    current: Mutex<Arc<CurrentBehavior>>,
    /// The number of calls that reached a behavior, since the start or the last reset.
    calls: AtomicU64,
    max_body_bytes: usize,
    /// The semaphore that limits the calls in progress.
    permits: Arc<Semaphore>,
    observer: Observer,
    meter: Meter,
    shared: Shared,
}

/// The state that all fakes of a fleet share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) journal: Arc<Journal>,
    pub(crate) metrics: Arc<Metrics>,
    /// The semaphore that limits the total size of bodies in progress; one permit is 1 KiB.
    body_permits: Arc<Semaphore>,
}

/// The current behavior, and its memory, which starts empty.
struct CurrentBehavior {
    behavior: Behavior,
    memory: Memory,
}

impl Shared {
    /// Creates the shared state; `tell` receives a message when the journal first drops a call.
    pub(crate) fn new(limits: &Limits, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            journal: Arc::new(Journal::new(limits, tell)),
            metrics: Arc::new(Metrics::new()),
            body_permits: Arc::new(Semaphore::new(limits.bodies_bytes / BODY_PERMIT_BYTES)),
        }
    }
}

impl CurrentBehavior {
    fn new(behavior: Behavior) -> Arc<Self> {
        Arc::new(Self { behavior, memory: Memory::default() })
    }
}

impl Endpoint {
    pub(crate) fn new(
        name: &str,
        behavior: Behavior,
        limits: &Limits,
        observer: Observer,
        shared: &Shared,
    ) -> Self {
        Self {
            name: name.into(),
            current: Mutex::new(CurrentBehavior::new(behavior)),
            calls: AtomicU64::new(0),
            max_body_bytes: limits.body_bytes,
            permits: Arc::new(Semaphore::new(limits.calls)),
            observer,
            meter: shared.metrics.meter(name),
            shared: shared.clone(),
        }
    }

    pub(crate) fn behavior(&self) -> Behavior {
        lock(&self.current).behavior.clone()
    }

    pub(crate) fn set_behavior(&self, behavior: Behavior) {
        *lock(&self.current) = CurrentBehavior::new(behavior);
    }

    /// Resets the call counter and forgets all calls.
    pub(crate) fn reset(&self) {
        let behavior = self.behavior();
        self.set_behavior(behavior);
        self.calls.store(0, Ordering::Relaxed);
        self.shared.journal.forget(&self.name);
    }

    /// Returns the number of calls under all behaviors, including calls in progress. Rejected calls do not count.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn side_effects(&self) -> u64 {
        lock(&self.current).memory.side_effects()
    }

    /// Handles a call. The fake accepts any method and path, and the journal records both.
    pub(crate) async fn call(State(endpoint): State<Arc<Self>>, request: Request) -> Response {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let Ok(permit) = Arc::clone(&endpoint.permits).try_acquire_owned() else {
            return endpoint.reject(RejectedCall::TooManyCalls, started);
        };
        let permit = CallPermit(Arc::new(permit));
        let body = match endpoint.read(body).await {
            Ok(body) => body,
            Err(rejected) => return endpoint.reject(rejected, started),
        };
        endpoint.calls.fetch_add(1, Ordering::Relaxed);
        let current = Arc::clone(&lock(&endpoint.current));
        // Behaviors that do not use the review also work without one.
        let review = serde_json::from_slice(&body).unwrap_or_default();
        let caller = caller(&parts);
        let (at, _in_progress) = current.memory.begin(jiff::Timestamp::now(), caller.clone(), &review);
        let Act { answer, effects } = act(&current.behavior, &at, &review);
        let host = host(&parts);
        let entry = endpoint.received(parts, caller, body, Subject::from_review(&review));
        drop(review);
        let mut call = Call {
            endpoint: &endpoint,
            started,
            entry: Some(entry),
            number: 0,
            outcome: CallOutcome::Abandoned,
        };
        if !effects.is_empty() {
            call.is_pending();
        }
        let done = current.memory.perform(effects).await;
        match answer {
            Answer::Never => {
                call.is_pending();
                std::future::pending().await
            }
            Answer::Closed { after } => {
                call.waits(after).await;
                call.outcome = CallOutcome::Closed;
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(CloseConnection);
                response
            }
            Answer::Bytes { after, script } => {
                call.waits(after).await;
                call.outcome = CallOutcome::Bytes;
                let mut response = Response::new(Body::empty());
                response.extensions_mut().insert(script);
                response.extensions_mut().insert(permit);
                response
            }
            Answer::Reply(mut reply) => {
                call.waits(reply.after).await;
                call.outcome = CallOutcome::Sent {
                    status: reply.status,
                    summary: std::mem::take(&mut reply.summary) + &done,
                };
                response(reply, &host)
            }
        }
    }

    fn received(
        &self,
        parts: http::request::Parts,
        caller: Caller,
        body: Bytes,
        subject: Option<Subject>,
    ) -> Entry {
        let headers = parts.headers.iter();
        Entry {
            number: 0,
            time: jiff::Timestamp::now(),
            fake: Arc::clone(&self.name),
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            version: parts.version,
            headers: headers
                .map(|(name, value)| {
                    (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
                })
                .collect(),
            certificate: caller.certificate,
            body,
            subject,
            outcome: CallOutcome::Pending,
            took: None,
        }
    }

    /// Reads the body into a new buffer, because the received chunks can keep a much larger buffer in memory.
    async fn read(&self, mut body: Body) -> Result<Bytes, RejectedCall> {
        let mut read = BytesMut::new();
        let mut permits: Option<OwnedSemaphorePermit> = None;
        let all = async {
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame else { return Err(RejectedCall::Broken) };
                let Some(data) = frame.data_ref() else { continue };
                if read.len() + data.len() > self.max_body_bytes {
                    return Err(RejectedCall::TooLarge);
                }
                read.extend_from_slice(data);
                let held = permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
                let missing = read.len().div_ceil(BODY_PERMIT_BYTES).saturating_sub(held);
                let missing = u32::try_from(missing).unwrap_or(u32::MAX);
                let more = Arc::clone(&self.shared.body_permits).try_acquire_many_owned(missing);
                let Ok(more) = more else { return Err(RejectedCall::TooManyBytes) };
                match &mut permits {
                    Some(permits) => permits.merge(more),
                    None => permits = Some(more),
                }
            }
            Ok(())
        };
        tokio::time::timeout(BODY_TIMEOUT, all).await.unwrap_or(Err(RejectedCall::TooLate))?;
        Ok(Bytes::from(Vec::from(read).into_boxed_slice()))
    }

    /// Creates the response to a rejected call. The call is not recorded.
    fn reject(&self, rejected: RejectedCall, started: Instant) -> Response {
        let response = rejected.response();
        let outcome = CallOutcome::Sent { status: response.status(), summary: String::new() };
        self.meter.ended(&outcome, started.elapsed());
        response
    }
}

/// The reason why a call is rejected.
#[derive(Clone, Copy)]
enum RejectedCall {
    Broken,
    TooLarge,
    TooLate,
    TooManyBytes,
    TooManyCalls,
}

impl RejectedCall {
    fn response(self) -> Response {
        let (status, text) = match self {
            Self::Broken => (http::StatusCode::BAD_REQUEST, "the body cannot be read"),
            Self::TooLarge => (http::StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
            Self::TooLate => (http::StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
            Self::TooManyBytes => (http::StatusCode::SERVICE_UNAVAILABLE, "too many bodies arrive at once"),
            Self::TooManyCalls => {
                (http::StatusCode::SERVICE_UNAVAILABLE, "too many calls of this fake are under way")
            }
        };
        response(Reply::text(status, text.to_owned(), String::new()), "")
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("behavior", &lock(&self.current).behavior).finish_non_exhaustive()
    }
}

/// A call in progress. Its end is recorded even if the call is dropped because the caller disconnects.
struct Call<'a> {
    endpoint: &'a Endpoint,
    started: Instant,
    /// The journal entry, until it is added to the journal.
    entry: Option<Entry>,
    /// The number of the call in the journal; meaningless until the entry is added.
    number: u64,
    outcome: CallOutcome,
}

impl Call<'_> {
    /// Adds the call to the journal as pending, and waits; does nothing if `time` is zero.
    async fn waits(&mut self, time: Duration) {
        if time > Duration::ZERO {
            self.is_pending();
            tokio::time::sleep(time).await;
        }
    }

    fn is_pending(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.number = self.endpoint.shared.journal.add(entry).number;
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let (journal, took) = (&self.endpoint.shared.journal, self.started.elapsed());
        let outcome = std::mem::replace(&mut self.outcome, CallOutcome::Abandoned);
        self.endpoint.meter.ended(&outcome, took);
        let entry = match self.entry.take() {
            Some(entry) => Some(journal.add(Entry { outcome, took: Some(took), ..entry })),
            None => journal.end(self.number, outcome, took),
        };
        if let Some(entry) = entry {
            self.endpoint.observer.observe(&entry);
        }
    }
}

/// Returns the credentials in a request.
fn caller(parts: &http::request::Parts) -> Caller {
    let authorization = parts.headers.get(AUTHORIZATION);
    Caller {
        authorization: authorization.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
        certificate: parts.extensions.get::<ClientCertificate>().map(|certificate| certificate.0.to_string()),
    }
}

/// Returns the host of a request, with the port if there is one.
fn host(parts: &http::request::Parts) -> String {
    let header = || parts.headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    parts.uri.authority().map(ToString::to_string).or_else(header).unwrap_or_default()
}

/// Builds the response and replaces `{host}` in headers.
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

/// Locks a mutex. Ignores poisoning, because updates are atomic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
