//! Implements `TokenRequest` objects.

use serde_json::Value;

use crate::kinds::common::defaults::{ensure, fill};
use crate::kinds::kind::Kind;

/// The behavior of `TokenRequest` objects.
pub(crate) const KIND: Kind = Kind {
    group: "authentication.k8s.io",
    resource: "",
    kind: "TokenRequest",
    set_defaults: Some(set_defaults),
    ..Kind::PLAIN
};

/// Sets the defaults of a `TokenRequest`.
///
/// Source: kubernetes pkg/apis/authentication/v1/defaults.go, `SetDefaults_TokenRequestSpec`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    if let Some(spec) = ensure(object, "spec") {
        fill(spec, "expirationSeconds", 3600);
    }
}
