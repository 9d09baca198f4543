//! Checks the credentials that a fake requires.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use http::header::{HeaderValue, WWW_AUTHENTICATE};
use subtle::ConstantTimeEq as _;

use super::circumstances::Caller;
use super::reply::Reply;
use crate::Credentials;

/// Returns the response that rejects a caller, or `None` if the caller sent the required credentials.
pub(super) fn rejection(required: &Credentials, caller: &Caller) -> Option<Reply> {
    let (scheme, expected) = match required {
        Credentials::Token(token) => ("Bearer", format!("Bearer {token}")),
        Credentials::Basic { username, password } => {
            ("Basic", format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
        }
        Credentials::Certificate(name) => {
            return rejected_certificate(name, caller.certificate.as_deref());
        }
    };
    let shown = caller.authorization.as_deref();
    if shown.is_some_and(|shown| shown.as_bytes().ct_eq(expected.as_bytes()).into()) {
        return None;
    }
    let what = if shown.is_some() { "other credentials" } else { "no credentials" };
    let mut reply = rejected(StatusCode::UNAUTHORIZED, format!("{what}: expected {scheme}"));
    reply.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static(scheme)));
    Some(reply)
}

fn rejected_certificate(expected: &str, shown: Option<&str>) -> Option<Reply> {
    match shown {
        None => Some(rejected(StatusCode::UNAUTHORIZED, "no client certificate".to_owned())),
        Some(shown) if shown == expected => None,
        Some(shown) => {
            let text = format!("invalid client certificate {shown:?}: expected {expected:?}");
            Some(rejected(StatusCode::FORBIDDEN, text))
        }
    }
}

fn rejected(status: StatusCode, text: String) -> Reply {
    let summary = format!("{}: {text}", status.as_u16());
    Reply::text(status, text, summary)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(credentials: &Value, caller: &Caller, expected: Option<(u16, &str)>) {
        let required: Credentials = serde_json::from_value(credentials.clone()).unwrap();
        let rejection = rejection(&required, caller);
        let found = rejection.as_ref().map(|reply| (reply.status.as_u16(), reply.summary.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn callers_without_the_required_credentials_are_rejected() {
        let header = |value: &str| Caller { authorization: Some(value.to_owned()), certificate: None };
        let anonymous = Caller::default();
        let token = json!({"token": "t"});
        check(&token, &header("Bearer t"), None);
        check(&token, &header("Bearer tt"), Some((401, "401: other credentials: expected Bearer")));
        check(&token, &anonymous, Some((401, "401: no credentials: expected Bearer")));
        let basic = json!({"basic": {"username": "jane", "password": "doe"}});
        check(&basic, &header("Basic amFuZTpkb2U="), None);
        check(&basic, &header("Bearer t"), Some((401, "401: other credentials: expected Basic")));
        let certificate = json!({"certificate": "jane"});
        let certified = |name: &str| Caller { authorization: None, certificate: Some(name.to_owned()) };
        check(&certificate, &certified("jane"), None);
        check(
            &certificate,
            &certified("joe"),
            Some((403, "403: invalid client certificate \"joe\": expected \"jane\"")),
        );
        check(&certificate, &anonymous, Some((401, "401: no client certificate")));
    }
}
