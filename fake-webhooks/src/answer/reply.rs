//! Describes the response to a call as data, which the endpoint sends.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::{End, Write};

/// The outcome of a call, as the caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing is sent, and the connection stays open.
    Never,
    /// The connection is closed without a response.
    Closed {
        /// The delay before the connection is closed.
        after: Duration,
    },
    /// A complete HTTP response is sent.
    Reply(Reply),
    /// Raw bytes are sent instead of an HTTP response.
    Bytes {
        /// The delay before the first byte.
        after: Duration,
        /// The bytes to send, and how the connection ends.
        script: ByteScript,
    },
}

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The delay before the response.
    pub after: Duration,
    /// The HTTP status of the response.
    pub status: http::StatusCode,
    /// The `Content-Type`. An empty string omits the header.
    pub content_type: Cow<'static, str>,
    /// Headers other than `Content-Type` and `Content-Length`.
    pub headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// The complete body of the response.
    pub body: Bytes,
    /// A summary for the log, such as `denied: not today`.
    pub summary: String,
}

/// The response of a fake to one call, and its side effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// The response to the call.
    pub answer: Answer,
    /// The side effects before the response, in order.
    pub effects: Vec<Effect>,
}

/// A side effect of a call. The sender of the response performs it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Counts a side effect, and sends the request, if any.
    SideEffect(Option<Write>),
    /// Leaks memory on each call, up to a maximum.
    Leak {
        /// The number of bytes to leak for this call.
        bytes: u32,
        /// The maximum total number of bytes to leak across all calls.
        most: u32,
    },
    /// Waits until earlier calls end, and then for this duration, even if the caller has disconnected.
    Queue(Duration),
}

/// The bytes to write to a connection, and how the connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteScript {
    /// The bytes to write first, without delays.
    pub head: Bytes,
    /// The bytes to write next.
    pub bytes: Bytes,
    /// The delay after each of the bytes in `bytes`.
    pub every: Option<Duration>,
    /// How the connection ends.
    pub then: End,
}

impl Act {
    pub(super) fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    pub(super) fn after(self, time: Duration) -> Self {
        let answer = match self.answer {
            Answer::Never => Answer::Never,
            Answer::Closed { after } => Answer::Closed { after: after.saturating_add(time) },
            Answer::Bytes { after, script } => Answer::Bytes { after: after.saturating_add(time), script },
            Answer::Reply(reply) => {
                let summary = format!("{} after {time:?}", reply.summary);
                Answer::Reply(Reply { after: reply.after.saturating_add(time), summary, ..reply })
            }
        };
        Self { answer, ..self }
    }
}

pub(super) const JSON: &str = "application/json";

impl Reply {
    /// Creates the response to a body that is not a review.
    pub(crate) fn not_a_review(fault: &str) -> Self {
        let text = format!("not an AdmissionReview: {fault}");
        Self::text(http::StatusCode::BAD_REQUEST, text.clone(), text)
    }

    /// Creates a plain text response.
    pub(crate) fn text(status: http::StatusCode, text: String, summary: String) -> Self {
        Self {
            after: Duration::ZERO,
            status,
            content_type: "text/plain; charset=utf-8".into(),
            headers: Vec::new(),
            body: Bytes::from(text),
            summary,
        }
    }

    /// Creates a JSON response with status 200.
    pub(crate) fn json(body: &Value, summary: String) -> Self {
        Self {
            after: Duration::ZERO,
            status: http::StatusCode::OK,
            content_type: JSON.into(),
            headers: Vec::new(),
            body: Bytes::from(body.to_string()),
            summary,
        }
    }
}
