//! Bytes that a person has written out, instead of an HTTP response.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hang;
use crate::raw::filled;

/// Parameters of `bytes`: what is written to the connection instead of an HTTP response, and what becomes of the
/// connection then. HTTP/1.1 only: over HTTP/2 the stream is reset.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RawBytes {
    /// What is written first, at once, with the same placeholders as `text`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// What is written. `{review}` stands for a review that allows, `{length}` for its bytes, `{uid}` for its uid.
    pub text: String,
    /// How long after each byte of `text` nothing is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Hang>,
    /// What becomes of the connection then.
    #[serde(default)]
    pub then: End,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// `close`: it is closed, as TLS has it.
    #[default]
    Close,
    /// `cut`: it is closed without a word of TLS about it.
    Cut,
    /// `hang`: nothing more happens until the caller leaves.
    Hang,
}

/// What is to be written to a connection, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// What is written first, at once.
    pub head: Bytes,
    /// What is written then.
    pub bytes: Bytes,
    /// How long after each byte of these nothing is written.
    pub every: Option<Duration>,
    /// What becomes of the connection then.
    pub then: End,
}

/// What `raw` writes in answer to `review`.
pub(crate) fn script(raw: &RawBytes, review: &Value) -> Script {
    let (every, then) = match raw.every {
        None => (None, raw.then),
        Some(Hang::For(time)) => (Some(time), raw.then),
        Some(Hang::Forever) => (None, End::Hang),
    };
    let text = filled(&raw.text, review);
    let bytes = if raw.every == Some(Hang::Forever) { Bytes::new() } else { Bytes::from(text) };
    Script { head: Bytes::from(filled(&raw.head, review)), bytes, every, then }
}
