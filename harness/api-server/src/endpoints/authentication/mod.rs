//! Identifies the client of a request and the user that the client impersonates.

mod authenticators;
mod certificate;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::status::Status;

pub use self::authenticators::Authenticators;
pub use self::certificate::ClientCertificate;
use super::authorization::impersonation::{self, Impersonated};
pub(crate) use crate::kinds::service_account_tokens::authenticator::{Authenticated, TokenAuthenticator};

/// The authentication mode of the server.
#[derive(Clone)]
#[non_exhaustive]
pub enum Authentication {
    /// Authenticates every request as this user. Use this for a router that is called without a socket.
    Always(UserInfo),
    /// Accepts only requests with this bearer token.
    BearerToken {
        /// The accepted token.
        token: String,
        /// The user of the token.
        user: UserInfo,
    },
    /// Authenticates requests as configured by kube-apiserver's flags.
    Authenticators(Authenticators),
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(user) => f.debug_tuple("Always").field(user).finish(),
            Self::BearerToken { user, .. } => {
                f.debug_struct("BearerToken").field("user", user).finish_non_exhaustive()
            }
            Self::Authenticators(authenticators) => authenticators.fmt(f),
        }
    }
}

/// An extension of a request that contains the authenticated user and the user to impersonate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The authenticated user.
    pub(crate) user: UserInfo,
    /// The user in the impersonation headers; `None` if the request does not have impersonation headers.
    pub(crate) wanted: Option<UserInfo>,
    /// The audit annotations about the credentials.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Claim {
    /// Creates the claim of a user who does not impersonate another user.
    pub(crate) fn from_user(user: UserInfo) -> Self {
        Self { user, wanted: None, annotations: BTreeMap::new() }
    }
}

/// The identity of a client after authentication and impersonation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The authenticated user.
    pub(crate) user: UserInfo,
    /// The impersonated user; `None` if the client does not impersonate a user.
    pub(crate) impersonated: Option<Impersonated>,
}

impl Identity {
    /// Creates the identity of a user who does not impersonate another user.
    pub(crate) fn from_user(user: UserInfo) -> Self {
        Self { user, impersonated: None }
    }

    /// Returns the user for authorization and admission: the impersonated user, if any.
    pub(crate) fn effective(&self) -> &UserInfo {
        self.impersonated.as_ref().map_or(&self.user, |impersonated| &impersonated.user)
    }
}

/// A request that failed authentication or has invalid impersonation headers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AuthenticationFailure {
    /// The user, if authentication succeeded.
    pub(crate) user: Option<UserInfo>,
    /// The Status that the client receives.
    pub(crate) status: Box<Status>,
}

/// Authenticates the requests to one server.
#[derive(Clone, Debug)]
pub struct Authenticator {
    authentication: Authentication,
    tokens: Arc<TokenAuthenticator>,
}

impl Authenticator {
    pub(crate) fn new(authentication: Authentication, tokens: Arc<TokenAuthenticator>) -> Self {
        Self { authentication, tokens }
    }

    /// Returns whether the headers or the certificate of the connection authenticate the client.
    pub fn knows(&self, headers: &HeaderMap, certificate: Option<&ClientCertificate>) -> bool {
        match &self.authentication {
            Authentication::Always(_) => true,
            Authentication::BearerToken { token, .. } => {
                bearer(headers).is_some_and(|text| same(text, token))
            }
            Authentication::Authenticators(_) => {
                matches!(authenticators::known(headers, certificate, &self.tokens), Ok(Some(_)))
            }
        }
    }

    fn user(
        &self,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Authenticated, Box<Status>> {
        match &self.authentication {
            Authentication::Always(user) => Ok(Authenticated::user(user.clone())),
            Authentication::BearerToken { token, user }
                if bearer(headers).is_some_and(|text| same(text, token)) =>
            {
                Ok(Authenticated::user(user.clone()))
            }
            Authentication::BearerToken { .. } => {
                Err(Box::new(Status::failure(401, "Unauthorized", "Unauthorized")))
            }
            Authentication::Authenticators(authenticators) => {
                authenticators.user(headers, certificate, &self.tokens)
            }
        }
    }

    /// Identifies the client of a request from its headers and the certificate of its connection.
    ///
    /// # Errors
    /// Returns [`AuthenticationFailure`] with the Status that the client receives.
    pub(crate) fn identify(
        &self,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Claim, AuthenticationFailure> {
        let found =
            self.user(headers, certificate).map_err(|status| AuthenticationFailure { user: None, status })?;
        let Authenticated { user, annotations, .. } = found;
        let wanted = impersonation::wanted(headers)
            .map_err(|status| AuthenticationFailure { user: Some(user.clone()), status })?;
        Ok(Claim { user, wanted, annotations })
    }
}

/// Adds the [`Claim`] of the client, or [`AuthenticationFailure`], to the extensions of each request.
///
/// Use this function with `axum::middleware::from_fn_with_state`.
pub(crate) async fn authenticate(
    State(authenticator): State<Authenticator>,
    mut request: Request,
    next: Next,
) -> Response {
    let certificate = request.extensions().get::<ClientCertificate>();
    match authenticator.identify(request.headers(), certificate) {
        Ok(claim) => {
            request.extensions_mut().insert(claim);
        }
        Err(refused) => {
            request.extensions_mut().insert(refused);
        }
    }
    next.run(request).await
}

/// Source: apiserver pkg/authentication/request/bearertoken/bearertoken.go.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Returns whether two strings are equal. Compares strings of the same length in constant time.
fn same(text: &str, token: &str) -> bool {
    let (text, token) = (text.as_bytes(), token.as_bytes());
    let differences =
        text.iter().zip(token).fold(0, |found, (one, other)| std::hint::black_box(found | (one ^ other)));
    text.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::kinds::service_account_tokens::authenticator::Tokens;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let parsed = pairs.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap())
        });
        let mut headers = HeaderMap::new();
        for (name, value) in parsed {
            headers.append(name, value);
        }
        headers
    }

    fn admin() -> UserInfo {
        UserInfo { username: "admin".to_owned(), ..UserInfo::default() }
    }

    fn with_token() -> Authenticator {
        let authentication = Authentication::BearerToken { token: "secret".to_owned(), user: admin() };
        Authenticator::new(authentication, Arc::new(TokenAuthenticator::of_tokens(Tokens::default())))
    }

    #[test]
    fn wrong_token_is_rejected() {
        for (value, known) in [
            (Some("Bearer secret"), true),
            (Some("bearer secret"), true),
            (Some("Bearer secreT"), false),
            (Some("Bearer secrets"), false),
            (Some("Bearer secre"), false),
            (Some("Bearer "), false),
            (Some("Basic secret"), false),
            (Some("secret"), false),
            (Some(""), false),
            (None, false),
        ] {
            let pairs: Vec<(&str, &str)> = value.map(|value| ("authorization", value)).into_iter().collect();
            assert_eq!(with_token().identify(&headers(&pairs), None).is_ok(), known, "{value:?}");
        }
    }

    #[test]
    fn unauthenticated_request_gets_401() {
        let Err(AuthenticationFailure { status, .. }) = with_token().identify(&HeaderMap::new(), None) else {
            panic!("the request is authenticated");
        };
        let body = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
        assert_eq!(serde_json::to_string(&status).unwrap(), body);
    }

    #[test]
    fn debug_output_hides_tokens() {
        assert!(!format!("{:?}", with_token()).contains("secret"));
    }
}
