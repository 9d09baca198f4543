//! The line to the webhooks: keeps every exchange, answers for the other webhooks that admit plays, and gives up on the dead.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission_webhook_client::{HttpsCaller, RedirectOrRetry};
use bytes::Bytes;
use http::Method;
use kubernetes_admission::caller::{Call, CallError, Caller, Reply};
use kubernetes_admission::config::{Webhook, WebhookId, WebhookTarget};
use tokio::time::Instant;

use super::other_webhooks;
use super::turn::Turn;

/// How often in a row a webhook may not answer at all before it is no longer asked: waiting for its timeout hundreds of
/// times tells nothing new.
const PATIENCE: u32 = 5;

/// The `Content-Type` of a review.
pub(super) const JSON: &str = "application/json";

/// One review and what came back, undecoded.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The review as it was sent.
    pub review: Bytes,
    /// The reply, or why there is none.
    pub reply: Result<Reply, CallError>,
    /// How long it took.
    pub took: Duration,
    /// What the webhook asked for before it replied: redirects, and to be asked again later.
    pub redirects_and_retries: Vec<RedirectOrRetry>,
    /// Whether admit answered itself, in the part of another webhook.
    pub is_other_webhook: bool,
    /// How it was sent, if that was past the dispatcher.
    pub direct: Option<Direct>,
}

/// How a request was sent past the dispatcher, as no API server sends one.
#[derive(Clone, Debug)]
pub struct Direct {
    /// To which webhook.
    pub webhook: Arc<WebhookId>,
    /// The HTTP method.
    pub method: Method,
    /// The `Content-Type`; empty without a body.
    pub content_type: &'static str,
}

impl Direct {
    /// A review, sent as reviews are.
    pub(super) fn review(webhook: &Webhook) -> Self {
        Self { webhook: Arc::clone(&webhook.id), method: Method::POST, content_type: JSON }
    }
}

/// What all lines of an environment share.
#[derive(Debug)]
pub(super) struct CallRecorder {
    https: HttpsCaller,
    silent: Mutex<HashMap<WebhookTarget, (u32, CallError)>>,
    calls: AtomicU64,
    /// How long the first call of each webhook took; nothing while it runs.
    first: Mutex<HashMap<WebhookTarget, Option<Duration>>>,
}

impl CallRecorder {
    pub(super) fn new(https: HttpsCaller) -> Self {
        Self { https, silent: Mutex::default(), calls: AtomicU64::new(0), first: Mutex::default() }
    }

    pub(super) fn https(&self) -> &HttpsCaller {
        &self.https
    }

    /// How many calls were made to webhooks.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// One more call is made.
    pub(super) fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// How long the first call of a webhook took: with it the connection came to be.
    pub(super) fn first(&self, target: &WebhookTarget) -> Option<Duration> {
        self.firsts().get(target).copied().flatten()
    }

    /// Whether a call that begins now is the first one.
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

    /// Calls a webhook, unless it was silent too often.
    pub(super) async fn call(
        &self,
        call: Call<'_>,
        redirects_and_retries: &mut Vec<RedirectOrRetry>,
    ) -> Result<Reply, CallError> {
        let target = &call.client_config.target;
        if let Some((count, error)) = self.silences().get(target)
            && *count >= PATIENCE
        {
            return Err(error.clone());
        }
        self.count();
        let is_first = self.begins(target);
        let started = Instant::now();
        let reply = self.https.call_noting(call.clone(), redirects_and_retries).await;
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

    fn silences(&self) -> std::sync::MutexGuard<'_, HashMap<WebhookTarget, (u32, CallError)>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nobody seems to be there. A connection that ends early says that somebody is.
fn is_silence(error: &CallError) -> bool {
    match error {
        CallError::Client(_) => true,
        CallError::TooManyRequests | CallError::Unsupported(_) => false,
        CallError::Transport(text) => {
            ["deadline exceeded", "dial tcp", "x509:", "tls:"].iter().any(|part| text.contains(part))
        }
    }
}

/// The line of one request through the dispatcher.
#[derive(Debug)]
pub(super) struct Line {
    shared: Arc<CallRecorder>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    turn: Option<Arc<Turn>>,
}

/// The exchanges of a [`Line`], oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Exchanges(Arc<Mutex<Vec<Exchange>>>);

impl Exchanges {
    /// What was exchanged until now.
    pub(super) fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Line {
    /// A line whose exchanges take their place in memory when `turn` lets them, if there is any.
    pub(super) fn new(shared: Arc<CallRecorder>, exchanges: &Exchanges, turn: Option<Arc<Turn>>) -> Self {
        Self { shared, exchanges: Arc::clone(&exchanges.0), turn }
    }
}

impl Caller for Line {
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
