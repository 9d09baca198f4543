//! The edge of the dispatcher, as types only: what is carried to a webhook, and what comes back.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use kubernetes_types::budget::Exhausted;
use kubernetes_types::status::Unsupported;

use crate::config::{ClientConfig, Phase};
use crate::trace_context::TraceContext;

/// Carries a review to a webhook: the only I/O of the dispatcher.
pub trait Caller: Send + Sync {
    /// # Errors
    /// [`CallError`] when no readable reply arrives within `call.timeout`.
    fn call(&self, call: Call<'_>) -> impl Future<Output = Result<Reply, CallError>> + Send;

    /// Takes note that a review is in memory until the last of these bytes is gone.
    ///
    /// # Errors
    /// [`CallError::TooManyRequests`] when others have the memory.
    fn keep(&self, review: Bytes) -> Result<Bytes, CallError> {
        Ok(review)
    }
}

/// One POST to a webhook.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Where to, and whom to trust.
    pub client_config: &'a ClientConfig,
    /// Which plugin calls: each may have credentials of its own. None for a conversion, which has none.
    pub phase: Option<Phase>,
    /// The `AdmissionReview` or `ConversionReview` as JSON, with the newline that the API server ends it with.
    pub body: Bytes,
    /// How long connecting, sending, retrying and reading may take together. Goes out as `?timeout=`, rounded up to
    /// whole seconds.
    pub timeout: Duration,
    /// The trace to which the call belongs, if the request came with one.
    pub trace: Option<&'a TraceContext>,
}

/// What came back, undecoded.
///
/// Rule: HTTP-27.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status code.
    pub status: u16,
    /// The `Content-Type`, if there is one.
    pub content_type: Option<String>,
    /// The body, already decompressed.
    pub body: Bytes,
}

/// Why there is no reply. The texts are those of kube-apiserver's client, without the prefix that the dispatcher adds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a match that forgets one must not compile")]
pub enum CallError {
    /// No client can be made from the `clientConfig`: `unable to load root certificates: …`.
    #[error("{0}")]
    Client(String),
    /// The call was made and failed: `Post "https://…": dial tcp …: connect: connection refused`.
    #[error("{0}")]
    Transport(String),
    /// Nobody is to blame: other requests have the memory that the review or the reply takes.
    #[error("too many requests, please try again later")]
    TooManyRequests,
    /// kube-apiserver would read the reply; admit cannot.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

impl From<Exhausted> for CallError {
    fn from(exhausted: Exhausted) -> Self {
        match exhausted {
            Exhausted::ForNow => Self::TooManyRequests,
            Exhausted::For(all) => {
                let what = format!(
                    "calls of webhooks that take more than {} KiB of memory (admit serve --max-inflight-bytes)",
                    all >> 10
                );
                Unsupported { what }.into()
            }
        }
    }
}
