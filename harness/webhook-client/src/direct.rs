//! Requests that kube-apiserver would not make, for people who want to know what a webhook makes of them.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use kubernetes_admission::caller::{CallError, Reply};
use kubernetes_admission::config::{ClientConfig, Phase};
use tokio::time::Instant;

use super::connection::Prepared;
use super::{HttpsCaller, reply};

/// One request, sent as it is: no redirect is followed, and nothing is sent again.
#[derive(Clone, Debug)]
pub struct DirectRequest<'a> {
    /// Where to, and whom to trust.
    pub client_config: &'a ClientConfig,
    /// Of which plugin the webhook is, whose credentials are sent.
    pub phase: Phase,
    /// The HTTP method.
    pub method: Method,
    /// The `Content-Type`.
    pub content_type: &'static str,
    /// The body, if there is one: without it there is no `Content-Type` either.
    pub body: Option<Bytes>,
    /// What `?timeout=` says, rounded up to whole seconds.
    pub timeout: Duration,
    /// How long connecting, sending and reading may take together.
    pub patience: Duration,
}

impl HttpsCaller {
    /// Sends `request`. To drop the future is to go away: the connection is closed, or its HTTP/2 stream reset.
    ///
    /// # Errors
    /// [`CallError`] when no readable reply arrives in time, in the words of kube-apiserver's client.
    pub async fn send(&self, request: DirectRequest<'_>) -> Result<Reply, CallError> {
        let deadline = Instant::now() + request.patience;
        let prepared = Prepared::new(&request.client_config.target);
        let address = prepared.destination.address(request.timeout).map_err(CallError::Client)?;
        let complete = |headers: &mut HeaderMap| {
            if request.body.is_some() {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(request.content_type));
            }
        };
        let webhook = (request.client_config, &prepared, Some(request.phase));
        let body = request.body.clone().unwrap_or_default();
        let sent = (&request.method, &*address.url, &address.target, body);
        let response = self.once(webhook, sent, deadline, complete).await?;
        reply(response, deadline, self.share()).await
    }
}
