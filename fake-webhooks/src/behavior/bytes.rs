//! Defines the parameters of `bytes`.

use serde::{Deserialize, Serialize};

use super::Hang;

/// The parameters of `bytes`: raw bytes instead of an HTTP response, and how the connection ends.
///
/// Raw bytes work only over HTTP/1.1; an HTTP/2 stream is reset.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RawBytes {
    /// The text to write first, without delays, with the same placeholders as `text`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub head: String,
    /// The text to write. `{review}` is a review that allows the request, `{length}` its size, and `{uid}` its UID.
    pub text: String,
    /// The delay after each byte of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Hang>,
    /// How the connection ends.
    #[serde(default)]
    pub then: End,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// `close`: the connection is closed with a TLS `close_notify`.
    #[default]
    Close,
    /// `cut`: the connection is closed without a TLS `close_notify`.
    Cut,
    /// `hang`: the connection stays open until the caller disconnects.
    Hang,
}
