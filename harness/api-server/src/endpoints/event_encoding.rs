//! Encodes watch events as lines of JSON or in protobuf.

use std::io;

use bytes::Bytes;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use crate::apimachinery::media_type::MediaType;
use crate::apimachinery::protobuf;

/// The maximum size of a small event in bytes, including its newline.
pub(crate) const SMALL_EVENT_BYTES: usize = 8 << 10;

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// Encodes an event with this object, as a line of JSON or as a message that is preceded by its length.
pub(crate) fn encode_event(happened: &str, object: &Value, media_type: MediaType) -> Vec<u8> {
    if media_type == MediaType::Protobuf {
        return protobuf::event(happened, &protobuf::encode(object).unwrap_or_default());
    }
    let mut text = json!({"type": happened, "object": object}).to_string().into_bytes();
    text.push(b'\n');
    text
}

/// Encodes an event of the type `ERROR`.
pub(crate) fn encode_error(status: &Status, media_type: MediaType) -> Vec<u8> {
    encode_event("ERROR", &serde_json::to_value(status).unwrap_or_default(), media_type)
}

/// Returns the JSON before and after the object in an event.
pub(crate) fn around(happened: EventType) -> [&'static [u8]; 2] {
    let before: &[u8] = match happened {
        EventType::Added => br#"{"type":"ADDED","object":"#,
        EventType::Modified => br#"{"type":"MODIFIED","object":"#,
        EventType::Deleted => br#"{"type":"DELETED","object":"#,
    };
    [before, b"}\n"]
}

/// Encodes an event with this object; returns `None` if the event is large.
pub(crate) fn encode_small(happened: EventType, object: &Value, media_type: MediaType) -> Option<Bytes> {
    if media_type == MediaType::Protobuf {
        let text = encode_event(happened.name(), object, media_type);
        return (text.len() <= SMALL_EVENT_BYTES).then(|| text.into());
    }
    let [before, behind] = around(happened);
    let mut line = BoundedWriter { text: before.to_vec(), bytes: SMALL_EVENT_BYTES - behind.len() };
    serde_json::to_writer(&mut line, object).ok()?;
    let mut text = line.text;
    text.extend_from_slice(behind);
    Some(text.into())
}

/// A writer that returns an error when its content exceeds a maximum size.
struct BoundedWriter {
    text: Vec<u8>,
    bytes: usize,
}

impl io::Write for BoundedWriter {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.text.len() + more.len() > self.bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
