//! Implements the kinds of `authentication.k8s.io`.

pub(crate) mod token_request;
