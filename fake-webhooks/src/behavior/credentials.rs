//! Defines the parameters of `demand`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Behavior;

/// The parameters of `demand`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Demand {
    /// The required credentials. Callers without them get 401, or 403 if they send a different client certificate.
    pub credentials: Credentials,
    /// The behavior for callers with these credentials.
    #[serde(default)]
    pub then: Box<Behavior>,
}

/// Credentials of a caller, as in the user of a kubeconfig.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
#[expect(clippy::exhaustive_enums, reason = "a kubeconfig has no other kinds")]
pub enum Credentials {
    /// `token`: a bearer token.
    Token(String),
    /// `basic`: a user name and a password.
    Basic {
        /// The user name to require.
        username: String,
        /// The password to require.
        password: String,
    },
    /// `certificate`: a client certificate with this common name, signed by the fakes' certificate authority.
    Certificate(String),
}

/// Formats the credentials without tokens and passwords.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(_) => f.debug_tuple("Token").finish_non_exhaustive(),
            Self::Basic { username, .. } => {
                f.debug_struct("Basic").field("username", username).finish_non_exhaustive()
            }
            Self::Certificate(name) => f.debug_tuple("Certificate").field(name).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn secrets_are_omitted_from_debug_output() {
        let shown = |credentials: Value| {
            let behavior: Behavior =
                serde_json::from_value(json!({"demand": {"credentials": credentials}})).unwrap();
            format!("{behavior:?}")
        };
        assert!(!shown(json!({"token": "secret"})).contains("secret"));
        assert!(!shown(json!({"basic": {"username": "jane", "password": "secret"}})).contains("secret"));
    }
}
