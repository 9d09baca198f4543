//! Handles requests that do not store the object in their body: reviews, bindings, evictions, tokens, and connections.

pub(crate) mod access_review;
pub(crate) mod binding;
pub(crate) mod connect;
pub(crate) mod eviction;
pub(crate) mod reviews;
pub(crate) mod token;
pub(crate) mod token_review;
