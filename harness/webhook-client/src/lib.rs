//! Calls webhooks over HTTPS.

mod address;
mod body;
mod callable;
mod certificate;
mod connection;
mod credentials;
mod dial;
mod direct;
mod failure;
mod http_client;
mod inspection;
mod name_server;
mod own_server;
mod proxy;
mod stream;
mod target;
mod tls;
mod tls_stream;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use kubernetes_admission::caller::{Call, CallError, Caller, Reply};
use kubernetes_admission::config::{ClientConfig, Phase, ServiceReference};
use kubernetes_types::budget::{Budget, Reservation};
use kubernetes_types::status::Unsupported;
use kubernetes_types::weight::expected;
use tokio::net::lookup_host;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};
use url::Url;

pub use self::address::cleaned_path;
pub use self::callable::CallableWebhooks;
pub use self::credentials::{Credentials, WebhookCredentials};
pub use self::direct::DirectRequest;
pub use self::inspection::{CertificateFacts, Inspection, bundled, verified};
pub use self::own_server::OwnServer;
pub use self::target::percent_decoded;
pub use self::tls::check_bundle;
use address::{Address, Destination, OWN_HOST};
use connection::{Connections, Error, Prepared};
use failure::{SendError, post_failed, reading_failed};
use http_client::Response;
use target::Target;

/// The maximum number of `Retry-After` responses to follow.
const MAX_RETRIES: usize = 10;
/// The maximum number of requests in a chain of redirects.
const MAX_REDIRECTS: usize = 10;
/// The maximum size of a reply, in bytes. kube-apiserver does not have a limit.
///
/// Rule: HTTP-25.
const MAX_REPLY: usize = 32 * 1024 * 1024;
/// The maximum number of JSON values in a reply. Each value takes a few hundred bytes when parsed.
///
/// kube-apiserver does not have a limit.
const MAX_VALUES: usize = 250_000;

/// The number of bytes of a review or a reply that do not count toward the memory budget.
const FREE_BYTES: usize = 32 << 10;
/// The number of copies of a parsed reply that are in memory: the document and its patch.
const COPIES: usize = 2;

/// Resolves the addresses of services.
pub trait ServiceResolver: Send + Sync {
    /// Returns the host (a name or an IP address) and the port of a service.
    ///
    /// # Errors
    /// Returns the error of kube-apiserver's resolver, such as `service "x" not found`.
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String>;
}

/// A resolver that does not find any service.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to know")]
pub struct NoServices;

impl ServiceResolver for NoServices {
    fn resolve(&self, service: &ServiceReference) -> Result<(String, u16), String> {
        Err(format!("service \"{}\" not found", service.name))
    }
}

/// An event during a call: the webhook asks for another request, or a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum RedirectOrRetry {
    /// A redirect: the POST is repeated for 307 and 308; otherwise a GET follows.
    Redirected {
        /// The HTTP status code of the response.
        status: u16,
        /// The absolute URL to send the next request to.
        to: String,
    },
    /// Before it responded, the server closed a connection that an earlier request had used.
    ///
    /// kube-apiserver does not repeat the request.
    KeptConnectionEnded,
    /// A `Retry-After` header: the same request is repeated.
    AskedToWait {
        /// The HTTP status code of the response.
        status: u16,
        /// The time to wait before the next request.
        wait: Duration,
    },
}

/// Which redirects the caller follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a redirect leads to the same origin or to another one")]
pub enum Redirects {
    /// All redirects, as in kube-apiserver: even to other hosts and to plain HTTP.
    #[default]
    All,
    /// Redirects to the same scheme, host, and port. Any other redirect fails the call.
    SameOrigin,
}

impl Redirects {
    fn allow(self, from: &str, to: &str) -> bool {
        let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
        match self {
            Self::All => true,
            Self::SameOrigin => origin(from).is_some_and(|from| Some(from) == origin(to)),
        }
    }
}

/// The [`Caller`] that calls webhooks over HTTPS, as kube-apiserver does.
///
/// The caller reuses connections and uses the proxies in `HTTPS_PROXY`, `HTTP_PROXY`, and `NO_PROXY`.
pub struct HttpsCaller {
    connections: Connections,
    redirects: Redirects,
    /// The webhooks that are called; `None` for all.
    callable: Option<CallableWebhooks>,
    /// The memory budget for reviews and replies; `None` if memory is unlimited.
    memory: Option<Budget>,
    own_server: OnceLock<Box<dyn OwnServer>>,
}

/// Creates the trace span of an HTTP request.
///
/// Source: go.opentelemetry.io/contrib `instrumentation/net/http/otelhttp/transport.go`, `RoundTrip`.
fn span_of(method: &Method, url: &str) -> Span {
    macro_rules! request {
        ($name:literal) => {
            info_span!(
                $name,
                otel.kind = "client",
                "http.request.method" = method.as_str(),
                "http.response.status_code" = Empty,
                // Go sets this for every request, regardless of the connection's protocol.
                "network.protocol.version" = "1.1",
                "server.address" = Empty,
                "server.port" = Empty,
                "url.full" = url,
            )
        };
    }
    // Webhooks are called by POST, and after a redirect by GET.
    let span = if *method == Method::GET { request!("HTTP GET") } else { request!("HTTP POST") };
    if !span.is_disabled()
        && let Ok(url) = Url::parse(url)
    {
        span.record("server.address", url.host_str());
        span.record("server.port", url.port());
    }
    span
}

impl HttpsCaller {
    /// Creates a caller that resolves services with `services` and follows all redirects.
    pub fn new(services: Arc<dyn ServiceResolver>) -> Self {
        let connections = Connections::new(services);
        let (redirects, own_server) = (Redirects::All, OnceLock::new());
        Self { connections, redirects, callable: None, memory: None, own_server }
    }

    /// Sets the credentials. Must be called before any webhook is called.
    #[must_use]
    pub fn with_credentials(self, credentials: WebhookCredentials) -> Self {
        Self { connections: self.connections.with_credentials(credentials), ..self }
    }

    /// Sets which redirects the caller follows.
    #[must_use]
    pub fn with_redirects(self, redirects: Redirects) -> Self {
        Self { redirects, ..self }
    }

    /// Limits the memory for reviews and replies of calls in progress.
    #[must_use]
    pub fn with_memory(self, memory: Budget) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Sets the API server that the caller belongs to. Its own webhooks are called in process.
    ///
    /// Only the first call has an effect.
    pub fn belongs_to(&self, own_server: Box<dyn OwnServer>) {
        let _ = self.own_server.set(own_server);
    }

    /// Returns a reservation in the memory budget; `None` if memory is unlimited.
    fn share(&self) -> Option<Reservation> {
        self.memory.as_ref().map(|memory| memory.share(FREE_BYTES))
    }

    /// Sends a POST request and follows redirects.
    ///
    /// Source: Go net/http/client.go, `redirectBehavior` and `defaultCheckRedirect`.
    /// Rule: HTTP-01, HTTP-11.
    async fn request(
        &self,
        (address, prepared): (&Address, &Prepared),
        call: &Call<'_>,
        deadline: Instant,
        redirects_and_retries: &mut Vec<RedirectOrRetry>,
    ) -> Result<Response, CallError> {
        let mut url = Cow::Borrowed(address.url.as_str());
        let mut target = Cow::Borrowed(&address.target);
        let mut method = Method::POST;
        let mut referer: Option<String> = None;
        let mut last_location = String::new();
        for _ in 0..MAX_REDIRECTS {
            let complete = |headers: &mut HeaderMap| {
                if method == Method::POST {
                    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                }
                if let Some(trace) = call.trace {
                    headers.extend(trace.headers().into_owned());
                }
                if let Some(referer) = referer.as_ref().and_then(|url| HeaderValue::from_str(url).ok()) {
                    headers.insert(header::REFERER, referer);
                }
            };
            let webhook = (call.client_config, prepared, call.phase);
            let body = if method == Method::POST { call.body.clone() } else { Bytes::new() };
            let request = (&method, &*url, &*target, body);
            let response = self.once(webhook, request, deadline, complete, redirects_and_retries).await?;
            let status = response.head.status.as_u16();
            method = match status {
                301..=303 => Method::GET,
                307 | 308 => method,
                _ => return Ok(response),
            };
            let Some(location) = response.head.headers.get(header::LOCATION) else { return Ok(response) };
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            response.discard();
            let next: String = Url::parse(&url)
                .and_then(|base| base.join(&location))
                .map_err(|error| {
                    let text = format!(
                        "failed to parse Location header {}: {error}",
                        kubernetes_types::quoting::quote(&location)
                    );
                    post_failed(&url, &text)
                })?
                .into();
            redirects_and_retries.push(RedirectOrRetry::Redirected { status, to: next.clone() });
            if !self.redirects.allow(&url, &next) {
                let text =
                    format!("the redirect to {next} is not followed: it leaves the webhook's host and port");
                return Err(post_failed(&url, &text));
            }
            referer = (!next.starts_with("http:")).then(|| url.into_owned());
            target = Cow::Owned(prepared.destination.target(&next));
            url = Cow::Owned(next);
            last_location = location;
        }
        Err(post_failed(&last_location, "stopped after 10 redirects"))
    }

    /// Sends a single HTTP request. `complete` can add headers.
    ///
    /// Records in `redirects_and_retries` if a kept connection ended before the response.
    ///
    /// Rule: HTTP-32.
    async fn once(
        &self,
        (config, prepared, phase): (&ClientConfig, &Prepared, Option<Phase>),
        (method, url, target, body): (&Method, &str, &Result<Target, String>, Bytes),
        deadline: Instant,
        complete: impl FnOnce(&mut HeaderMap),
        redirects_and_retries: &mut Vec<RedirectOrRetry>,
    ) -> Result<Response, CallError> {
        let sending = async {
            let mut client = self.connections.client((config, prepared), phase, url).await?;
            let plugin = client.take_plugin();
            let another = client.take_diagnostic_connection();
            let response = match client.send(method, target, body, complete).await {
                Ok(response) => response,
                Err(error) if failure::was_not_sent(&error) => {
                    let why = Box::pin(another.why_it_ends(config, url)).await;
                    return Err(why.unwrap_or(Error::Transport(failure::transport(&error, url).await)));
                }
                Err(error) if error.is_connect() => {
                    let why = Box::pin(another.why_no_tunnel(url)).await;
                    return Err(why.unwrap_or(Error::Transport(failure::transport(&error, url).await)));
                }
                Err(error) => {
                    if matches!(error, SendError::KeptConnectionEnded(_)) {
                        redirects_and_retries.push(RedirectOrRetry::KeptConnectionEnded);
                    }
                    return Err(Error::Transport(failure::transport(&error, url).await));
                }
            };
            let status = response.head.status;
            Span::current().record("http.response.status_code", status.as_u16());
            if let Some(plugin) = plugin.filter(|_| status == StatusCode::UNAUTHORIZED) {
                plugin.unauthorized().await;
            }
            Ok(response)
        };
        match timeout_at(deadline, sending).instrument(span_of(method, url)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(connection::Error::Client(text))) => Err(CallError::Client(text)),
            Ok(Err(connection::Error::Unsupported(what))) => Err(CallError::Unsupported(what)),
            Ok(Err(connection::Error::Transport(text))) => Err(post_failed(url, &text)),
            Err(_elapsed) => Err(post_failed(url, "context deadline exceeded")),
        }
    }

    /// Calls a webhook as [`Caller::call`] does, and records its redirects and retries, even if there is no reply.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Caller::call`].
    ///
    /// Source: client-go `rest/{request,with_retry}.go`; apiserver pkg/util/webhook/client.go.
    /// Rule: HTTP-08, HTTP-09, HTTP-10.
    pub async fn call_noting(
        &self,
        call: Call<'_>,
        redirects_and_retries: &mut Vec<RedirectOrRetry>,
    ) -> Result<Reply, CallError> {
        let target = &call.client_config.target;
        if self.callable.as_ref().is_some_and(|callable| !callable.contains(target)) {
            return Err(CallError::NotCalled);
        }
        let deadline = Instant::now() + call.timeout;
        let unkept;
        let kept = call.client_config.cache.get_or_init(|| Prepared::new(target));
        let prepared = if let Some(kept) = kept.filter(|kept| kept.destination.is_of(target)) {
            kept
        } else {
            unkept = Prepared::new(target);
            &unkept
        };
        if prepared.destination.is_the_api_server && self.can_be_dialled(prepared, deadline).await {
            return self.call_own_server(&call, &prepared.destination, deadline).await;
        }
        let address = prepared.destination.address(call.timeout).map_err(CallError::Client)?;
        let mut retries = 0;
        let response = loop {
            let response = self.request((&address, prepared), &call, deadline, redirects_and_retries).await?;
            let Some(wait) = retry_after(&response) else { break response };
            redirects_and_retries
                .push(RedirectOrRetry::AskedToWait { status: response.head.status.as_u16(), wait });
            if retries == MAX_RETRIES {
                break response;
            }
            retries += 1;
            let next = Instant::now() + wait;
            if next >= deadline {
                sleep_until(deadline).await;
                return Err(post_failed(&address.url, "context deadline exceeded"));
            }
            // Read the rest of the body, so that the connection can be reused.
            let _ = timeout_at(deadline, body::read(response, &mut self.share())).await;
            sleep_until(next).await;
        };
        reply(response, deadline, self.share()).await
    }

    /// Returns whether kube-apiserver could send the call: for a URL without a proxy, it must resolve the host name.
    async fn can_be_dialled(&self, prepared: &Prepared, deadline: Instant) -> bool {
        prepared.destination.service().is_some()
            || self.connections.have_proxies()
            || matches!(timeout_at(deadline, lookup_host((OWN_HOST, 443))).await, Ok(Ok(_)))
    }

    /// Calls a webhook that the API server itself serves.
    ///
    /// Rule: HTTP-15.
    async fn call_own_server(
        &self,
        call: &Call<'_>,
        destination: &Destination,
        deadline: Instant,
    ) -> Result<Reply, CallError> {
        let Some(own_server) = self.own_server.get().filter(|_| destination.service().is_some()) else {
            let what = format!("a webhook that is the API server itself (the host {OWN_HOST})");
            return Err(Unsupported { what }.into());
        };
        let address = destination.address(call.timeout).map_err(CallError::Client)?;
        let target = address.target.as_ref().map_err(|why| CallError::Client(why.clone()))?;
        let mut request = http::Request::new(call.body.clone());
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&target.path);
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static(connection::ACCEPT));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(connection::USER_AGENT));
        if let Some(trace) = call.trace {
            headers.extend(trace.headers().into_owned());
        }
        let Ok(response) = timeout_at(deadline, own_server.answer(request)).await else {
            return Err(post_failed(&address.url, "context deadline exceeded"));
        };
        let (head, body) = response.into_parts();
        checked(head.status, content_type(&head.headers), body, self.share())
    }
}

impl Caller for HttpsCaller {
    async fn call(&self, call: Call<'_>) -> Result<Reply, CallError> {
        self.call_noting(call, &mut Vec::new()).await
    }

    fn keep(&self, review: Bytes) -> Result<Bytes, CallError> {
        let Some(mut share) = self.share() else { return Ok(review) };
        share.try_grow(review.len())?;
        Ok(share.hold(review))
    }
}

/// Returns the time to wait before a retry, for a 429 or 5xx response with a `Retry-After` header in seconds.
///
/// Source: client-go `rest/with_retry.go`, `checkWait`.
/// Rule: HTTP-09.
fn retry_after(response: &Response) -> Option<Duration> {
    let status = response.head.status;
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let seconds: i64 = response.head.headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.max(0).unsigned_abs().min(24 * 3600)))
}

/// Reads the body of a response and returns the reply.
async fn reply(
    response: Response,
    deadline: Instant,
    mut share: Option<Reservation>,
) -> Result<Reply, CallError> {
    let (status, content_type) = (response.head.status, content_type(&response.head.headers));
    let body = match timeout_at(deadline, body::read(response, &mut share)).await {
        Ok(body) => body?,
        Err(_elapsed) => return Err(reading_failed(status, "context deadline exceeded")),
    };
    checked(status, content_type, body, share)
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Creates a reply, or returns an error if it exceeds a limit.
fn checked(
    status: StatusCode,
    content_type: Option<String>,
    body: Bytes,
    share: Option<Reservation>,
) -> Result<Reply, CallError> {
    let expected = expected(&body);
    if expected.values > MAX_VALUES {
        let what = format!("responses of webhooks with more than {MAX_VALUES} JSON values");
        return Err(Unsupported { what }.into());
    }
    let body = match share {
        Some(mut share) => {
            share.resize(body.len() + COPIES * expected.weight)?;
            share.hold(body)
        }
        None => body,
    };
    Ok(Reply { status: status.as_u16(), content_type, body })
}

impl fmt::Debug for HttpsCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpsCaller").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
