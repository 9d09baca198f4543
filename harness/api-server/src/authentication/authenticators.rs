//! The users of kube-apiserver's flags: bearer tokens, client certificates, and who shows neither.

use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::certificate::ClientCertificate;

/// The group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";
/// The group of requests that are not authenticated.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user name of requests that are not authenticated.
const ANONYMOUS: &str = "system:anonymous";

/// The users of bearer tokens. Tokens are kept as their SHA-256 sums, so that looking one up takes a time that tells
/// nothing of the others.
#[derive(Clone, Default)]
pub struct Tokens(HashMap<[u8; 32], UserInfo>);

impl Tokens {
    /// Adds a token, and returns the user that had it before.
    pub fn insert(&mut self, token: &str, user: UserInfo) -> Option<UserInfo> {
        self.0.insert(Sha256::digest(token).into(), user)
    }

    fn get(&self, token: &str) -> Option<&UserInfo> {
        let sum: [u8; 32] = Sha256::digest(token).into();
        self.0.get(&sum)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("users", &self.0.len()).finish_non_exhaustive()
    }
}

/// How a server finds out who makes a request, as kube-apiserver does by its flags. Client certificates are verified by
/// the listener, which puts a [`ClientCertificate`] into the extensions of a request.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct Authenticators {
    /// `--token-auth-file`.
    pub tokens: Tokens,
    /// `--service-account-issuer`: tokens of these issuers are answered with 501.
    pub service_account_issuers: Vec<String>,
    /// `--anonymous-auth`: whether a request without credentials is one of the user `system:anonymous`; otherwise it is
    /// answered with 401.
    pub anonymous: bool,
}

impl Authenticators {
    /// The user of a request, with the groups that the server adds; none if the request shows nothing.
    ///
    /// # Errors
    /// 401 for credentials that are not valid, 501 for tokens of service accounts.
    ///
    /// Source: kubernetes pkg/kubeapiserver/authenticator/config.go, `New`.
    /// Rule: RBAC-26.
    pub(super) fn known(
        &self,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Option<UserInfo>, Box<Status>> {
        if let Some(ClientCertificate::Verified(user)) = certificate {
            return Ok(Some(with_groups(user.clone())));
        }
        let refused = || Box::new(Status::failure(401, "Unauthorized", "Unauthorized"));
        match bearer(headers) {
            Some(token) => match self.tokens.get(token) {
                Some(user) => Ok(Some(with_groups(user.clone()))),
                None if self.is_of_a_service_account(token) => {
                    let what = "tokens of service accounts as credentials".to_owned();
                    Err(Box::new(Status::unsupported(&Unsupported { what })))
                }
                None => Err(refused()),
            },
            None if matches!(certificate, Some(ClientCertificate::Refused)) => Err(refused()),
            None => Ok(None),
        }
    }

    /// The user of a request.
    ///
    /// # Errors
    /// As [`Authenticators::known`]; and 401 for who is not known, if nobody is let in without credentials.
    ///
    /// Rule: RBAC-26.
    pub(super) fn user(
        &self,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
    ) -> Result<UserInfo, Box<Status>> {
        match self.known(headers, certificate)? {
            Some(user) => Ok(user),
            None if self.anonymous => Ok(UserInfo {
                username: ANONYMOUS.to_owned(),
                groups: vec![UNAUTHENTICATED.to_owned()],
                ..UserInfo::default()
            }),
            None => Err(Box::new(Status::failure(401, "Unauthorized", "Unauthorized"))),
        }
    }

    /// Whether a token is a JSON Web Token of one of the issuers.
    fn is_of_a_service_account(&self, token: &str) -> bool {
        let mut parts = token.split('.');
        let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let claims = URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
        let claims: Value = serde_json::from_slice(&claims).unwrap_or_default();
        let issuer = claims.get("iss").and_then(Value::as_str);
        issuer.is_some_and(|issuer| self.service_account_issuers.iter().any(|known| known == issuer))
    }
}

/// Source: apiserver `pkg/authentication/group/authenticated_group_adder.go`.
fn with_groups(mut user: UserInfo) -> UserInfo {
    let is_there = user.groups.iter().any(|group| [AUTHENTICATED, UNAUTHENTICATED].contains(&group.as_str()));
    if user.username != ANONYMOUS && !is_there {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// The token of the `Authorization` header; none if there is no such header, it is of another kind, or has no token.
///
/// Source: apiserver pkg/authentication/request/bearertoken/bearertoken.go, `AuthenticateRequest`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut words = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().splitn(3, ' ');
    let (scheme, token) = (words.next()?, words.next()?);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        UserInfo { username: name.to_owned(), groups, ..UserInfo::default() }
    }

    fn authenticators() -> Authenticators {
        let mut tokens = Tokens::default();
        tokens.insert("secret", user("jane", &["g"]));
        let service_account_issuers = vec!["https://issuer".to_owned()];
        Authenticators { tokens, service_account_issuers, anonymous: true }
    }

    fn asked(authorization: Option<&str>, certificate: Option<&ClientCertificate>) -> Result<String, i32> {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
        }
        authenticators()
            .user(&headers, certificate)
            .map(|user| format!("{} {}", user.username, user.groups.join(",")))
            .map_err(|status| status.code)
    }

    #[test]
    fn the_first_credentials_that_are_valid_decide() {
        let anonymous = "system:anonymous system:unauthenticated";
        for (authorization, expected) in [
            (None, Ok(anonymous)),
            (Some("Basic secret"), Ok(anonymous)),
            (Some("Bearer "), Ok(anonymous)),
            (Some("Bearer secret"), Ok("jane g,system:authenticated")),
            (Some("bearer secret more"), Ok("jane g,system:authenticated")),
            (Some("Bearer other"), Err(401)),
        ] {
            assert_eq!(asked(authorization, None), expected.map(str::to_owned), "{authorization:?}");
        }
        let verified = ClientCertificate::Verified(user("joe", &[]));
        assert_eq!(asked(None, Some(&verified)), Ok("joe system:authenticated".to_owned()));
        assert_eq!(asked(Some("Bearer other"), Some(&verified)), Ok("joe system:authenticated".to_owned()));
        let refused = ClientCertificate::Refused;
        assert_eq!(asked(None, Some(&refused)), Err(401));
        assert_eq!(
            asked(Some("Bearer secret"), Some(&refused)),
            Ok("jane g,system:authenticated".to_owned())
        );
    }

    #[test]
    fn nobody_is_anonymous_where_that_is_off() {
        let authenticators = Authenticators { anonymous: false, ..authenticators() };
        assert_eq!(authenticators.user(&HeaderMap::new(), None).unwrap_err().code, 401);
        assert_eq!(authenticators.known(&HeaderMap::new(), None), Ok(None));
    }

    #[test]
    fn tokens_of_service_accounts_are_not_imitated() {
        let token = |issuer: &str| {
            let claims = URL_SAFE_NO_PAD.encode(serde_json::json!({ "iss": issuer }).to_string());
            format!("Bearer e30.{claims}.e30")
        };
        assert_eq!(asked(Some(&token("https://issuer")), None), Err(501));
        assert_eq!(asked(Some(&token("https://other")), None), Err(401));
    }
}
