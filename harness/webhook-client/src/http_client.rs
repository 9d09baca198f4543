//! Sends requests on pooled connections.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{Request, Uri, response};
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;

use super::dial::{Body, DialError, Dialer, Sender};
use super::failure::SendError;
use super::target::Target;

/// The maximum number of idle connections to one host.
const IDLE_CONNECTIONS: usize = 25;
/// The time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(90);

/// An HTTP client with its own connection pool.
pub(super) struct HttpClient {
    dialer: Dialer,
    pool: Arc<Pool>,
}

/// The pool of idle connections.
#[derive(Default)]
struct Pool(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    connections: Vec<Idle>,
    /// Whether a task closes expired connections.
    is_watched: bool,
}

/// A connection in the pool. An HTTP/2 connection may be in use at the same time.
struct Idle {
    sender: Sender,
    /// A URI with the scheme, host, and port of the connection.
    uri: Uri,
    since: Instant,
}

/// A connection for a request, and whether an earlier request has used it.
struct Lease {
    sender: Sender,
    is_reused: bool,
}

impl Sender {
    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender, _) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    fn is_ready(&self) -> bool {
        match self {
            Self::Http1(sender, _) => sender.is_ready(),
            Self::Http2(sender) => sender.is_ready(),
        }
    }

    async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(sender, _) => sender.ready().await,
            Self::Http2(sender) => sender.ready().await,
        }
    }
}

impl Pool {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the most recently used connection to the origin of `target`, if there is one.
    ///
    /// An HTTP/1.1 connection is removed from the pool.
    fn take(&self, target: &Target) -> Option<Sender> {
        let mut waiting = self.waiting();
        waiting.forget_old();
        let connections = &mut waiting.connections;
        let position = connections.iter().rposition(|idle| target.is_at(&idle.uri))?;
        let idle = connections.get_mut(position)?;
        match &idle.sender {
            Sender::Http1(..) => Some(connections.remove(position).sender),
            Sender::Http2(sender) => {
                idle.since = Instant::now();
                Some(Sender::Http2(sender.clone()))
            }
        }
    }

    /// Puts a connection into the pool, unless it is closed or the pool has too many connections to the same host.
    fn put(self: &Arc<Self>, sender: Sender, uri: &Uri) {
        if sender.is_closed() {
            return;
        }
        let mut waiting = self.waiting();
        let same =
            |idle: &&Idle| idle.uri.scheme() == uri.scheme() && idle.uri.authority() == uri.authority();
        if waiting.connections.iter().filter(same).count() >= IDLE_CONNECTIONS {
            return;
        }
        waiting.connections.push(Idle { sender, uri: uri.clone(), since: Instant::now() });
        if !waiting.is_watched {
            waiting.is_watched = true;
            tokio::spawn(close_old(Arc::downgrade(self)));
        }
    }
}

impl Waiting {
    /// Drops connections that have expired or that the peer has closed.
    fn forget_old(&mut self) {
        self.connections.retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < IDLE);
    }
}

/// Closes expired connections of `pool` until it is empty.
async fn close_old(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut waiting = pool.waiting();
        waiting.forget_old();
        if waiting.connections.is_empty() {
            waiting.is_watched = false;
            return;
        }
    }
}

impl HttpClient {
    pub(super) fn new(dialer: Dialer) -> Self {
        Self { dialer, pool: Arc::default() }
    }

    /// Sends `request` to `target`, after setting its URI and `Host`.
    ///
    /// If the peer closes a reused connection before the request is sent, the request is sent on another connection.
    pub(super) async fn send(
        &self,
        mut request: Request<Body>,
        target: &Target,
    ) -> Result<Response, SendError> {
        loop {
            let Some(Lease { mut sender, is_reused }) = self.connection(target).await? else { continue };
            let sent = match &mut sender {
                Sender::Http1(sender, _) => {
                    self.address(&mut request, target);
                    sender.try_send_request(request).await
                }
                Sender::Http2(sender) => {
                    request.headers_mut().remove(HOST);
                    request.uri_mut().clone_from(&target.uri);
                    sender.try_send_request(request).await
                }
            };
            let mut error = match sent {
                Ok(response) => return Ok(Response::new(response, sender, &self.pool, &target.uri)),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if is_reused => request = unsent,
                Some(_) | None => return Err(failed(error.into_error(), sender, is_reused).await),
            }
        }
    }

    /// Returns a connection for a request to `target`; `None` if the peer has closed the pooled connection.
    async fn connection(&self, target: &Target) -> Result<Option<Lease>, SendError> {
        match self.pool.take(target) {
            Some(sender) if sender.is_ready() => Ok(Some(Lease { sender, is_reused: true })),
            Some(sender) => Box::pin(self.ready_or_new(sender, target)).await,
            None => Box::pin(self.dial(target)).await.map(Some),
        }
    }

    /// Returns `sender` when it is ready, or a new connection, whichever comes first.
    async fn ready_or_new(&self, mut sender: Sender, target: &Target) -> Result<Option<Lease>, SendError> {
        tokio::select! {
            biased;
            ready = sender.ready() => Ok(ready.ok().map(|()| Lease { sender, is_reused: true })),
            new = self.dial(target) => new.map(Some),
        }
    }

    async fn dial(&self, target: &Target) -> Result<Lease, SendError> {
        let sender = self.dialer.dial(target).await.map_err(|error| match error {
            DialError::Connect(error) => SendError::Connect(error),
            DialError::Http(error) => SendError::Http(error),
        })?;
        if let Sender::Http2(sender) = &sender {
            self.pool.put(Sender::Http2(sender.clone()), &target.uri);
        }
        Ok(Lease { sender, is_reused: false })
    }

    /// Sets the URI and the `Host` header of an HTTP/1.1 request.
    fn address(&self, request: &mut Request<Body>, target: &Target) {
        if !request.headers().contains_key(HOST) {
            request.headers_mut().insert(HOST, target.host.clone());
        }
        let Some(proxy) = self.dialer.forwarder(target) else {
            request.uri_mut().clone_from(&target.path);
            return;
        };
        request.uri_mut().clone_from(&target.uri);
        if let Some(authorization) = &proxy.authorization {
            request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
        }
    }
}

/// Returns the reason why a request on `sender` did not receive a response.
async fn failed(error: hyper::Error, sender: Sender, is_reused: bool) -> SendError {
    match sender {
        Sender::Http1(_, end) if error.is_parse() => {
            let received = end.await.map(|end| end.unread).unwrap_or_default();
            SendError::Malformed { error, received }
        }
        Sender::Http1(..) | Sender::Http2(_) if is_reused && !error.is_parse() => {
            SendError::KeptConnectionEnded(error)
        }
        Sender::Http1(..) | Sender::Http2(_) => SendError::Http(error),
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

/// A response. When its body has been read completely, its connection is returned to the pool.
pub(super) struct Response {
    pub(super) head: response::Parts,
    pub(super) body: Incoming,
    connection: Option<(Sender, Arc<Pool>, Uri)>,
}

impl Response {
    fn new(response: http::Response<Incoming>, sender: Sender, pool: &Arc<Pool>, uri: &Uri) -> Self {
        let (head, body) = response.into_parts();
        // An HTTP/2 connection remains in the pool.
        let is_http1 = matches!(sender, Sender::Http1(..));
        let connection = is_http1.then(|| (sender, Arc::clone(pool), uri.clone()));
        let mut response = Self { head, body, connection };
        if response.body.is_end_stream() {
            response.finish();
        }
        response
    }

    /// Returns the connection to the pool. The body must have been read completely.
    pub(super) fn finish(&mut self) {
        if let Some((sender, pool, uri)) = self.connection.take() {
            pool.put(sender, &uri);
        }
    }

    /// Discards the body. If it has arrived completely, the connection is reused.
    pub(super) fn discard(self) {
        let Self { body, connection, .. } = self;
        drop(body);
        if let Some((mut sender, pool, uri)) = connection {
            tokio::spawn(async move {
                if sender.ready().await.is_ok() {
                    pool.put(sender, &uri);
                }
            });
        }
    }
}
