//! Implements values and encodings that do not depend on the storage or on kinds.
//!
//! Examples are metadata, options, queries, limits, and media types.

pub(crate) mod client_disconnect;
pub(crate) mod empty_fields;
pub(crate) mod go_yaml;
pub(crate) mod label_syntax;
pub(crate) mod limits;
pub(crate) mod media_type;
pub(crate) mod merge_patch;
pub(crate) mod metadata;
pub(crate) mod off_thread;
pub(crate) mod options;
pub(crate) mod protobuf;
pub(crate) mod query;
pub(crate) mod status_conditions;
pub(crate) mod time_limit;
