//! Implements roles and bindings: the initial objects, validation, aggregation, and the authorizer.

pub(crate) mod aggregation;
pub(crate) mod bootstrap;
pub(crate) mod policies;
pub(crate) mod requirements;
pub(crate) mod role_bindings;
pub(crate) mod roles;
pub(crate) mod validation;

use serde_json::Value;

/// The authorization mode of a server: kube-apiserver's `--authorization-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorizationMode {
    /// The server authorizes requests with RBAC. Members of `system:masters` have all permissions.
    #[default]
    Rbac,
    /// The server allows all requests.
    AlwaysAllow,
}

/// Returns a string field; empty if the field is not a string.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of an array field; empty if the field is not an array.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
