//! Records every exchange with webhooks, and answers calls to the webhooks in [`super::other_webhooks::LIBRARY`].
//!
//! Webhooks that repeatedly timed out are not called.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission_webhook_client::{
    DirectRequest, HttpsCaller, RedirectOrRetry, Redirects, ServiceResolver, WebhookCredentials,
};
use bytes::Bytes;
use http::Method;
use kubernetes_admission::caller::{Call, CallError, Caller, Reply};
use kubernetes_admission::config::{Webhook, WebhookId, WebhookTarget};
use tokio::time::Instant;

use super::other_webhooks;
use super::turn::Turn;

/// The number of consecutive timeouts after which the verifier stops calling a webhook.
const MAX_TIMEOUTS: u32 = 5;

/// The `Content-Type` of a review.
pub(super) const JSON: &str = "application/json";

/// A review and its undecoded reply.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The body of the request.
    pub review: Bytes,
    /// The reply, or the reason why there is no reply.
    pub reply: Result<Reply, CallError>,
    /// The time from the request to the reply.
    pub took: Duration,
    /// The redirects and retry requests that preceded the final reply.
    pub redirects_and_retries: Vec<RedirectOrRetry>,
    /// Whether admit itself answered for a webhook of the library, without a call over the network.
    pub is_other_webhook: bool,
    /// How the request was sent if it bypassed the dispatcher; `None` for other requests.
    pub direct: Option<Direct>,
}

/// The properties of a request that bypassed the dispatcher. No API server sends such a request.
#[derive(Clone, Debug)]
pub struct Direct {
    /// The webhook that was called.
    pub webhook: Arc<WebhookId>,
    /// The HTTP method.
    pub method: Method,
    /// The `Content-Type` header; empty if the request does not have a body.
    pub content_type: &'static str,
}

impl Direct {
    /// Creates the properties of a review that is sent directly to `webhook`.
    pub(super) fn review(webhook: &Webhook) -> Self {
        Self { webhook: Arc::clone(&webhook.id), method: Method::POST, content_type: JSON }
    }
}

/// The settings for connections to webhooks.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) services: Arc<dyn ServiceResolver>,
    pub(super) redirects: Redirects,
    pub(super) credentials: WebhookCredentials,
}

impl Connector {
    /// Creates a caller without open connections.
    pub(super) fn caller(&self) -> HttpsCaller {
        HttpsCaller::new(Arc::clone(&self.services))
            .with_redirects(self.redirects)
            .with_credentials(self.credentials.clone())
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("redirects", &self.redirects).finish_non_exhaustive()
    }
}

/// The state that all requests in an environment share.
#[derive(Debug)]
pub(super) struct CallRecorder {
    connector: Connector,
    https: HttpsCaller,
    silent: Mutex<HashMap<WebhookTarget, (u32, CallError)>>,
    calls: AtomicU64,
    /// The duration of each webhook's first call; `None` while that call is in flight.
    first: Mutex<HashMap<WebhookTarget, Option<Duration>>>,
}

impl CallRecorder {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            https: connector.caller(),
            connector,
            silent: Mutex::default(),
            calls: AtomicU64::new(0),
            first: Mutex::default(),
        }
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(super) fn https(&self) -> &HttpsCaller {
        &self.https
    }

    /// Returns the number of calls to webhooks so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Counts a call to a webhook.
    pub(super) fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the duration of a webhook's first call, including the time to connect.
    pub(super) fn first(&self, target: &WebhookTarget) -> Option<Duration> {
        self.firsts().get(target).copied().flatten()
    }

    /// Returns whether the call to `target` that starts now is the first call, and records its start.
    fn begins(&self, target: &WebhookTarget) -> bool {
        let mut firsts = self.firsts();
        if firsts.contains_key(target) {
            return false;
        }
        firsts.insert(target.clone(), None);
        true
    }

    fn firsts(&self) -> std::sync::MutexGuard<'_, HashMap<WebhookTarget, Option<Duration>>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a webhook, unless too many earlier calls timed out.
    pub(super) async fn call(
        &self,
        call: Call<'_>,
        redirects_and_retries: &mut Vec<RedirectOrRetry>,
    ) -> Result<Reply, CallError> {
        let target = &call.client_config.target;
        if let Some((count, error)) = self.silences().get(target)
            && *count >= MAX_TIMEOUTS
        {
            return Err(error.clone());
        }
        // Without an address for the Service, the call fails before a connection is opened.
        let has_address = match target {
            WebhookTarget::Service(service) => self.connector.services.resolve(service).is_ok(),
            WebhookTarget::Url(_) => true,
        };
        if has_address {
            self.count();
        }
        let is_first = self.begins(target);
        let started = Instant::now();
        let reply = Box::pin(self.send_review(call, redirects_and_retries)).await;
        if is_first {
            self.firsts().insert(target.clone(), Some(started.elapsed()));
        }
        let mut silent = self.silences();
        match &reply {
            Err(error) if is_silence(error) => {
                let entry = silent.entry(target.clone()).or_insert((0, error.clone()));
                entry.0 += 1;
            }
            Ok(_) | Err(_) => {
                silent.remove(target);
            }
        }
        drop(silent);
        reply
    }

    /// Forgets the earlier calls to a webhook that timed out, because it answers again.
    pub(super) fn forget_timeouts(&self, target: &WebhookTarget) {
        self.silences().remove(target);
    }

    /// Sends a review on a kept connection, or on a new connection if the server closed the kept connection.
    ///
    /// Many servers close connections after an error or when they are idle.
    pub(super) async fn send_review(
        &self,
        call: Call<'_>,
        redirects_and_retries: &mut Vec<RedirectOrRetry>,
    ) -> Result<Reply, CallError> {
        let reply = self.https.call_noting(call.clone(), redirects_and_retries).await;
        if has_ended(redirects_and_retries) {
            let new = self.connector.caller();
            return Box::pin(new.call_noting(call, redirects_and_retries)).await;
        }
        reply
    }

    /// Sends a request that no API server sends. Connections are reused and renewed as in [`Self::send_review`].
    pub(super) async fn send_direct(&self, request: DirectRequest<'_>) -> Result<Reply, CallError> {
        let mut notes = Vec::new();
        let reply = self.https.send(request.clone(), &mut notes).await;
        if has_ended(&mut notes) {
            let new = self.connector.caller();
            return Box::pin(new.send(request, &mut notes)).await;
        }
        reply
    }

    fn silences(&self) -> std::sync::MutexGuard<'_, HashMap<WebhookTarget, (u32, CallError)>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the entries about kept connections that ended, and returns whether there were any.
fn has_ended(redirects_and_retries: &mut Vec<RedirectOrRetry>) -> bool {
    redirects_and_retries.extract_if(.., |note| *note == RedirectOrRetry::KeptConnectionEnded).count() > 0
}

/// Returns whether the webhook did not respond at all. A connection that the webhook closed early counts as a response.
fn is_silence(error: &CallError) -> bool {
    match error {
        CallError::Client(_) => true,
        CallError::NotCalled | CallError::TooManyRequests | CallError::Unsupported(_) => false,
        CallError::Transport(text) | CallError::Body { reason: text, .. } => {
            ["deadline exceeded", "dial tcp", "x509:", "tls:"].iter().any(|part| text.contains(part))
        }
    }
}

/// Records the calls of one request through the dispatcher.
#[derive(Debug)]
pub(super) struct RecordingCaller {
    shared: Arc<CallRecorder>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    turn: Option<Arc<Turn>>,
}

/// The exchanges of a [`RecordingCaller`], oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchanges(Arc<Mutex<Vec<Exchange>>>);

impl Exchanges {
    /// Takes the exchanges that have been recorded so far.
    pub(super) fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RecordingCaller {
    /// Creates a caller. If `turn` is set, large exchanges wait for it.
    pub(super) fn new(shared: Arc<CallRecorder>, exchanges: &Exchanges, turn: Option<Arc<Turn>>) -> Self {
        Self { shared, exchanges: Arc::clone(&exchanges.0), turn }
    }
}

impl Caller for RecordingCaller {
    async fn call(&self, call: Call<'_>) -> Result<Reply, CallError> {
        let started = Instant::now();
        let own = match &call.client_config.target {
            WebhookTarget::Url(url) => other_webhooks::answer(url, &call.body),
            WebhookTarget::Service(_) => None,
        };
        let is_other_webhook = own.is_some();
        let review = call.body.clone();
        let mut redirects_and_retries = Vec::new();
        let reply = match own {
            Some(reply) => Ok(reply),
            None => self.shared.call(call, &mut redirects_and_retries).await,
        };
        let took = started.elapsed();
        if let Some(turn) = &self.turn {
            let replied = reply.as_ref().map_or(0, |reply| reply.body.len());
            turn.keep(review.len().saturating_add(replied)).await;
        }
        let exchange = Exchange {
            review,
            reply: reply.clone(),
            took,
            redirects_and_retries,
            is_other_webhook,
            direct: None,
        };
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
        reply
    }
}
