//! The credentials that a fake requires.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{HeaderValue, WWW_AUTHENTICATE};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::{Behavior, Reply};

/// Parameters of `demand`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Demand {
    /// The required credentials; callers without them get 401, or 403 if they send another client certificate.
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
    /// `certificate`: a client certificate with this common name, signed by the authority of the fakes.
    Certificate(String),
}

/// Omits tokens and passwords.
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

/// The credentials that a caller sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "there are two places for credentials")]
pub struct Caller {
    /// The `Authorization` header.
    pub authorization: Option<String>,
    /// The common name of the client certificate.
    pub certificate: Option<String>,
}

impl Demand {
    /// Returns the response that rejects a caller, or `None` if the caller sent the required credentials.
    pub(crate) fn refusal(&self, caller: &Caller) -> Option<Reply> {
        let (scheme, expected) = match &self.credentials {
            Credentials::Token(token) => ("Bearer", format!("Bearer {token}")),
            Credentials::Basic { username, password } => {
                ("Basic", format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
            }
            Credentials::Certificate(name) => {
                return refused_certificate(name, caller.certificate.as_deref());
            }
        };
        let shown = caller.authorization.as_deref();
        if shown.is_some_and(|shown| shown.as_bytes().ct_eq(expected.as_bytes()).into()) {
            return None;
        }
        let what = if shown.is_some() { "other credentials" } else { "no credentials" };
        let mut reply = refusal(StatusCode::UNAUTHORIZED, format!("{what}: expected {scheme}"));
        reply.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static(scheme)));
        Some(reply)
    }
}

fn refused_certificate(expected: &str, shown: Option<&str>) -> Option<Reply> {
    match shown {
        None => Some(refusal(StatusCode::UNAUTHORIZED, "no client certificate".to_owned())),
        Some(shown) if shown == expected => None,
        Some(shown) => {
            let text = format!("invalid client certificate {shown:?}: expected {expected:?}");
            Some(refusal(StatusCode::FORBIDDEN, text))
        }
    }
}

fn refusal(status: StatusCode, text: String) -> Reply {
    let summary = format!("{}: {text}", status.as_u16());
    Reply::text(status, text, summary)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(credentials: &Value, caller: &Caller, expected: Option<(u16, &str)>) {
        let demand: Demand = serde_json::from_value(json!({"credentials": credentials})).unwrap();
        let refusal = demand.refusal(caller);
        let found = refusal.as_ref().map(|reply| (reply.status.as_u16(), reply.summary.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn callers_without_the_required_credentials_are_rejected() {
        let header = |value: &str| Caller { authorization: Some(value.to_owned()), certificate: None };
        let nobody = Caller::default();
        let token = json!({"token": "t"});
        check(&token, &header("Bearer t"), None);
        check(&token, &header("Bearer tt"), Some((401, "401: other credentials: expected Bearer")));
        check(&token, &nobody, Some((401, "401: no credentials: expected Bearer")));
        let basic = json!({"basic": {"username": "jane", "password": "doe"}});
        check(&basic, &header("Basic amFuZTpkb2U="), None);
        check(&basic, &header("Bearer t"), Some((401, "401: other credentials: expected Basic")));
        let certificate = json!({"certificate": "jane"});
        let of = |name: &str| Caller { authorization: None, certificate: Some(name.to_owned()) };
        check(&certificate, &of("jane"), None);
        check(
            &certificate,
            &of("joe"),
            Some((403, "403: invalid client certificate \"joe\": expected \"jane\"")),
        );
        check(&certificate, &nobody, Some((401, "401: no client certificate")));
    }

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
