//! Sends requests on connections that are kept for the next ones.

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

/// How many connections to one host are kept that nobody uses, and how long.
const IDLE_CONNECTIONS: usize = 25;
const IDLE: Duration = Duration::from_secs(90);

/// An HTTP client with connections of its own.
pub(super) struct HttpClient {
    dialer: Dialer,
    pool: Arc<Pool>,
}

/// The connections that wait for requests.
#[derive(Default)]
struct Pool(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    connections: Vec<Idle>,
    /// Whether a task looks after those that wait too long.
    is_watched: bool,
}

/// A connection that waits for a request; one that speaks HTTP/2 may have others meanwhile.
struct Idle {
    sender: Sender,
    /// The origin to which it leads.
    uri: Uri,
    since: Instant,
}

/// A connection with a request, and whether it had another one before.
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

    /// The connection to the origin of `target` that was used last, out of the pool unless others can use it, too.
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

    /// A connection waits for the next request.
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
    /// Closes what has waited too long, and lets go of what the other side has closed.
    fn forget_old(&mut self) {
        self.connections.retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < IDLE);
    }
}

/// Closes the connections of `pool` that wait too long, until there are none.
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

    /// Sends `request` to `target`, which its URI and `Host` do not say yet. One that was not sent because the other side
    /// closed a connection that waited is sent on another one.
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
                Some(_) | None => return Err(failed(error.into_error(), sender).await),
            }
        }
    }

    /// A connection for a request to `target`; none if one was closed meanwhile.
    async fn connection(&self, target: &Target) -> Result<Option<Lease>, SendError> {
        match self.pool.take(target) {
            Some(sender) if sender.is_ready() => Ok(Some(Lease { sender, is_reused: true })),
            Some(sender) => Box::pin(self.ready_or_new(sender, target)).await,
            None => Box::pin(self.dial(target)).await.map(Some),
        }
    }

    /// This connection, on which something is still sent, or a new one: whichever comes first.
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

    /// What a request over HTTP/1.1 says of where it goes.
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

/// Why a request got no response from `sender`.
async fn failed(error: hyper::Error, sender: Sender) -> SendError {
    match sender {
        Sender::Http1(_, end) if error.is_parse() => {
            let received = end.await.map(|end| end.unread).unwrap_or_default();
            SendError::Malformed { error, received }
        }
        Sender::Http1(..) | Sender::Http2(_) => SendError::Http(error),
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

/// What came back; its connection waits for the next request once the body is read to its end.
pub(super) struct Response {
    pub(super) head: response::Parts,
    pub(super) body: Incoming,
    connection: Option<(Sender, Arc<Pool>, Uri)>,
}

impl Response {
    fn new(response: http::Response<Incoming>, sender: Sender, pool: &Arc<Pool>, uri: &Uri) -> Self {
        let (head, body) = response.into_parts();
        // One that speaks HTTP/2 never left the pool.
        let is_http1 = matches!(sender, Sender::Http1(..));
        let connection = is_http1.then(|| (sender, Arc::clone(pool), uri.clone()));
        let mut response = Self { head, body, connection };
        if response.body.is_end_stream() {
            response.finish();
        }
        response
    }

    /// The body has been read to its end.
    pub(super) fn finish(&mut self) {
        if let Some((sender, pool, uri)) = self.connection.take() {
            pool.put(sender, &uri);
        }
    }

    /// Nobody reads the body. If all of it has come already, the connection can be used again.
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
