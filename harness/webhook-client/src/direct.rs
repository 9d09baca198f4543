//! Sends requests that kube-apiserver would not send, to test how a webhook handles them.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use kubernetes_admission::caller::{CallError, Reply};
use kubernetes_admission::config::{ClientConfig, Phase};
use tokio::time::Instant;

use super::connection::Prepared;
use super::{HttpsCaller, RedirectOrRetry, reply};

/// A request that is sent once, without following redirects.
#[derive(Clone, Debug)]
pub struct DirectRequest<'a> {
    /// The webhook's address and CA bundle.
    pub client_config: &'a ClientConfig,
    /// The phase whose credentials are sent.
    pub phase: Phase,
    /// The HTTP method.
    pub method: Method,
    /// The value of the `Content-Type` header.
    pub content_type: &'static str,
    /// The body; if `None`, no `Content-Type` header is sent.
    pub body: Option<Bytes>,
    /// The value of `?timeout=`, rounded up to whole seconds.
    pub timeout: Duration,
    /// The time limit for connecting, sending, and reading together.
    pub patience: Duration,
}

impl HttpsCaller {
    /// Sends `request`. Dropping the future closes the connection, or resets its HTTP/2 stream.
    ///
    /// Records in `redirects_and_retries` if a kept connection ended before the response.
    ///
    /// # Errors
    /// Returns [`CallError`] if no readable reply arrives in time, with the message of kube-apiserver's client.
    pub async fn send(
        &self,
        request: DirectRequest<'_>,
        redirects_and_retries: &mut Vec<RedirectOrRetry>,
    ) -> Result<Reply, CallError> {
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
        let response = self.once(webhook, sent, deadline, complete, redirects_and_retries).await?;
        reply(response, deadline, self.share()).await
    }
}
