//! Converts between protobuf bodies and the JSON of the same object.

mod encode;
mod fields_v1;
mod json;
mod wire;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::set;
use kubernetes_types::quantity::QuantityError;
use kubernetes_types::schema::MESSAGES;
use serde_json::{Value, json};

pub(crate) use self::encode::{ListEncoder, encode, event};
use self::json::Decoder;
use self::wire::{Fields, WireError};

/// The media type of protobuf bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of a protobuf body.
///
/// Source: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, `protoEncodingPrefix`.
const PREFIX: &[u8] = b"k8s\0";

/// The reason why a body cannot be decoded.
///
/// The messages are kube-apiserver's, except for the last four variants and for a field with the wrong wire type. For
/// the latter, kube-apiserver reports the Go name of the field.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("empty data")]
    Empty,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoPrefix,
    #[error("empty body")]
    EmptyBody,
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(
        "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
    )]
    NotRegistered { version: String, kind: String },
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error("impossible IntOrString.Type")]
    IntOrString,
    #[error("invalid time: must be in the years 1 to 9999")]
    Time,
    #[error("invalid number: must be finite")]
    NotFinite,
    #[error("invalid JSON in the message: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "the object is too large: at most {} messages, nested at most {} levels deep",
        json::MAX_MESSAGES,
        json::MAX_DEPTH
    )]
    TooLarge,
}

/// The envelope of a body: the kind of the object and its bytes.
///
/// Source: apimachinery pkg/runtime/generated.proto, `Unknown` and `TypeMeta`.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// The group, version, and kind; parts that the body does not set are empty.
    pub(crate) kind: GroupVersionKind,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Opens the envelope of a body.
    ///
    /// Source: apimachinery pkg/runtime/serializer/protobuf/protobuf.go, `Decode`.
    ///
    /// # Errors
    /// Returns [`DecodeError`] if the body is not an envelope.
    pub(crate) fn open(body: &'a [u8]) -> Result<Self, DecodeError> {
        if body.is_empty() {
            return Err(DecodeError::Empty);
        }
        let message = body.strip_prefix(PREFIX).ok_or(DecodeError::NoPrefix)?;
        if message.is_empty() {
            return Err(DecodeError::EmptyBody);
        }
        let (mut type_meta, mut raw) = (Vec::new(), &[][..]);
        for field in Fields::new("Unknown", message) {
            match field? {
                (1, wire) => type_meta.push(wire.bytes("TypeMeta")?),
                (2, wire) => raw = wire.bytes("Raw")?,
                (3, wire) => drop(wire.bytes("ContentEncoding")?),
                (4, wire) => drop(wire.bytes("ContentType")?),
                _ => {}
            }
        }
        let (mut api_version, mut kind) = (String::new(), String::new());
        for field in type_meta.into_iter().flat_map(|bytes| Fields::new("TypeMeta", bytes)) {
            match field? {
                (1, wire) => api_version = wire.text("APIVersion")?,
                (2, wire) => kind = wire.text("Kind")?,
                _ => {}
            }
        }
        let kind = GroupVersionKind::from_object(&json!({"apiVersion": api_version, "kind": kind}));
        Ok(Self { kind, raw })
    }

    /// Decodes the object to JSON with its `apiVersion` and `kind`.
    ///
    /// # Errors
    /// Returns [`DecodeError`] if the server does not support `kind`, or if the bytes are not an object of this kind.
    pub(crate) fn decode(&self, kind: &GroupVersionKind) -> Result<Value, DecodeError> {
        let Some(message) = MESSAGES.of_kind(kind) else {
            return Err(DecodeError::NotRegistered { version: kind.api_version(), kind: kind.kind.clone() });
        };
        let mut object = Decoder::default().decode(message, self.raw)?;
        set(&mut object, &["apiVersion"], kind.api_version());
        set(&mut object, &["kind"], &*kind.kind);
        Ok(object)
    }
}

#[cfg(test)]
mod tests;
