//! Defines the encodings of responses.

use super::protobuf;

/// The encoding of a response. It determines the `Content-Type` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    /// JSON with line breaks and indentation, for human readers.
    IndentedJson,
    Yaml,
    Protobuf,
}

impl MediaType {
    /// Returns the value of the `Content-Type` header.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json | Self::IndentedJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => protobuf::MEDIA_TYPE,
        }
    }

    /// Returns the value of the `Content-Type` header for a watch.
    pub(crate) fn content_type_of_watch(self) -> &'static str {
        if self == Self::Protobuf {
            "application/vnd.kubernetes.protobuf;stream=watch"
        } else {
            self.content_type()
        }
    }
}
