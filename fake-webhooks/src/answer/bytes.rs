//! Creates the raw bytes that a fake sends instead of an HTTP response.

use bytes::Bytes;
use serde_json::Value;

use super::raw::filled;
use super::reply::ByteScript;
use crate::{End, Hang, RawBytes};

/// Creates the bytes that `raw` specifies in response to `review`.
pub(super) fn script(raw: &RawBytes, review: &Value) -> ByteScript {
    let (every, then) = match raw.every {
        None => (None, raw.then),
        Some(Hang::For(time)) => (Some(time), raw.then),
        Some(Hang::Forever) => (None, End::Hang),
    };
    let text = filled(&raw.text, review);
    let bytes = if raw.every == Some(Hang::Forever) { Bytes::new() } else { Bytes::from(text) };
    ByteScript { head: Bytes::from(filled(&raw.head, review)), bytes, every, then }
}
