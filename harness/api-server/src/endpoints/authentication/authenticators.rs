//! Authenticates clients as kube-apiserver's flags specify: with bearer tokens, client certificates, or anonymously.

use http::HeaderMap;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::status::Status;

use super::certificate::ClientCertificate;
use crate::kinds::service_account_tokens::TokenRejection;
use crate::kinds::service_account_tokens::authenticator::{
    ANONYMOUS, Authenticated, TokenAuthenticator, UNAUTHENTICATED, bearer, with_groups,
};

/// The authenticators of a server, as kube-apiserver's flags configure them.
///
/// The listener verifies client certificates and adds a [`ClientCertificate`] to the extensions of a request.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "each has a default")]
pub struct Authenticators {
    /// `--anonymous-auth`: whether a request without credentials gets the user `system:anonymous`.
    ///
    /// If false, the server rejects the request with 401.
    pub anonymous: bool,
}

impl Authenticators {
    /// Returns the user of a request; the anonymous user if the request does not have credentials.
    ///
    /// # Errors
    /// Returns the Status of [`known`], or 401 for a request without credentials if anonymous requests are disabled.
    ///
    /// Rule: RBAC-26.
    pub(super) fn user(
        &self,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
        tokens: &TokenAuthenticator,
    ) -> Result<Authenticated, Box<Status>> {
        match known(headers, certificate, tokens)? {
            Some(found) => Ok(found),
            None if self.anonymous => Ok(Authenticated::user(UserInfo {
                username: ANONYMOUS.to_owned(),
                groups: vec![UNAUTHENTICATED.to_owned()],
                ..UserInfo::default()
            })),
            None => Err(Box::new(Status::failure(401, "Unauthorized", "Unauthorized"))),
        }
    }
}

/// Returns the user of a request with the groups that the server adds; `None` if the request does not have credentials.
///
/// # Errors
/// Returns 401 for invalid credentials, or 501 for service account tokens from Secrets.
///
/// Source: kubernetes pkg/kubeapiserver/authenticator/config.go, `New`.
/// Rule: RBAC-26.
pub(super) fn known(
    headers: &HeaderMap,
    certificate: Option<&ClientCertificate>,
    tokens: &TokenAuthenticator,
) -> Result<Option<Authenticated>, Box<Status>> {
    if let Some(ClientCertificate::Verified(user)) = certificate {
        return Ok(Some(Authenticated::user(with_groups(user.clone()))));
    }
    let refused = || Box::new(Status::failure(401, "Unauthorized", "Unauthorized"));
    match bearer(headers) {
        Some(token) => match tokens.authenticate(token, tokens.issuer.api_audiences()) {
            Ok(Some(found)) => Ok(Some(Authenticated { user: with_groups(found.user), ..found })),
            Err(TokenRejection::Unsupported(what)) => Err(Box::new(Status::unsupported(&what))),
            Ok(None) | Err(TokenRejection::Invalid(_)) => Err(refused()),
        },
        None if matches!(certificate, Some(ClientCertificate::Invalid)) => Err(refused()),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;
    use crate::kinds::service_account_tokens::authenticator::Tokens;

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        UserInfo { username: name.to_owned(), groups, ..UserInfo::default() }
    }

    fn asked(authorization: Option<&str>, certificate: Option<&ClientCertificate>) -> Result<String, i32> {
        let mut tokens = Tokens::default();
        tokens.insert("secret", user("jane", &["g"]));
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
        }
        Authenticators { anonymous: true }
            .user(&headers, certificate, &TokenAuthenticator::of_tokens(tokens))
            .map(|found| format!("{} {}", found.user.username, found.user.groups.join(",")))
            .map_err(|status| status.code)
    }

    #[test]
    fn first_valid_credentials_win() {
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
        let refused = ClientCertificate::Invalid;
        assert_eq!(asked(None, Some(&refused)), Err(401));
        assert_eq!(
            asked(Some("Bearer secret"), Some(&refused)),
            Ok("jane g,system:authenticated".to_owned())
        );
    }

    #[test]
    fn anonymous_requests_can_be_disabled() {
        let (authenticators, tokens) =
            (Authenticators { anonymous: false }, TokenAuthenticator::of_tokens(Tokens::default()));
        assert_eq!(authenticators.user(&HeaderMap::new(), None, &tokens).unwrap_err().code, 401);
        assert_eq!(known(&HeaderMap::new(), None, &tokens), Ok(None));
    }
}
