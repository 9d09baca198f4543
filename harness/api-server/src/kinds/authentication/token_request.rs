//! Implements `TokenRequest` objects.

use crate::kinds::kind::Kind;

/// The behavior of `TokenRequest` objects.
pub(crate) const KIND: Kind = Kind {
    group: "authentication.k8s.io",
    resource: "",
    kind: "TokenRequest",
    set_defaults: Some(crate::kinds::defaulting::extensions::token_request),
    ..Kind::PLAIN
};
