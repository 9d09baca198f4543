//! Defines the interface between the dispatcher and the HTTP client: the calls to webhooks and their replies.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use kubernetes_types::budget::Exhausted;
use kubernetes_types::status::Unsupported;

use crate::config::{ClientConfig, Phase};
use crate::trace_context::TraceContext;

/// Sends reviews to webhooks. This is the only I/O of the dispatcher.
pub trait Caller: Send + Sync {
    /// Sends a review to the webhook and returns the reply.
    ///
    /// # Errors
    /// Returns [`CallError`] if no readable reply arrives within `call.timeout`.
    fn call(&self, call: Call<'_>) -> impl Future<Output = Result<Reply, CallError>> + Send;

    /// Accounts for the memory of a review until its bytes are dropped.
    ///
    /// # Errors
    /// Returns [`CallError::TooManyRequests`] if other requests use all the memory.
    fn keep(&self, review: Bytes) -> Result<Bytes, CallError> {
        Ok(review)
    }
}

/// One POST request to a webhook.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The webhook's address and CA bundle.
    pub client_config: &'a ClientConfig,
    /// The phase whose plugin calls the webhook and provides the credentials; `None` for a conversion.
    pub phase: Option<Phase>,
    /// The `AdmissionReview` or `ConversionReview` as JSON, with the trailing newline that the API server adds.
    pub body: Bytes,
    /// The time limit for connecting, sending, retrying, and reading together.
    ///
    /// The limit is sent as `?timeout=`, rounded up to whole seconds.
    pub timeout: Duration,
    /// The trace context of the request, if it has one.
    pub trace: Option<&'a TraceContext>,
}

/// The response to a call, undecoded.
///
/// Rule: HTTP-27.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// The `Content-Type`; `None` if the header is missing.
    pub content_type: Option<String>,
    /// The decompressed body.
    pub body: Bytes,
}

/// The reason why a call does not have a reply. Messages are kube-apiserver's, without the dispatcher's prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum CallError {
    /// No client can be created from the `clientConfig`: `unable to load root certificates: …`.
    #[error("{0}")]
    Client(String),
    /// The call failed: `Post "https://…": dial tcp …: connect: connection refused`.
    #[error("{0}")]
    Transport(String),
    /// The body of the response could not be read.
    #[error("{reason}")]
    Body {
        /// The HTTP status code of the response.
        status: u16,
        /// The reason, as [`Self::Transport`] has it.
        reason: String,
    },
    /// The caller does not call this webhook, so its response is unknown.
    #[error("the webhook was not called: its response is unknown")]
    NotCalled,
    /// Other requests use the memory that the review or the reply needs.
    #[error("too many requests, please try again later")]
    TooManyRequests,
    /// The reply uses a feature that kube-apiserver supports and admit does not.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

impl From<Exhausted> for CallError {
    fn from(exhausted: Exhausted) -> Self {
        match exhausted {
            Exhausted::InUse => Self::TooManyRequests,
            Exhausted::ExceedsTotal(all) => {
                let what = format!(
                    "calls of webhooks that take more than {} KiB of memory (admit serve --max-inflight-bytes)",
                    all >> 10
                );
                Unsupported { what }.into()
            }
        }
    }
}
